"""Changed messages are accepted or refused alike, with the same bits, one by one and in columns."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

import numpy as np

from pipeline.records.column_decoder import ColumnDecoder
from pipeline.records.decoding import (
    INTERACTION_DECODER,
    LABEL_DECODER,
    InputDecoder,
    RejectedRecord,
    decode,
    times_of,
)
from pipeline.records.input_columns import InputColumns
from pipeline.records.inputs import RawMessage
from tests.fuzz.mutations import mutated_bytes, mutated_json
from tests.support.entries import delivered

MESSAGES: Final = 1_000
"""Messages of a case, of one input."""
LATEST: Final = 10**9
PIECES: Final = (
    *(b'" \\ { } , : - 0 1 9 1e5 .5 null true [] "a":1, "timestamp":7, "event_id":"x",'.split()),
    *(b"1e999 1.0 -0 -0.0 00 01 1. 1e 1e+5 1E400 9007199254740993".split()),
    *(b"9223372036854775808 9999999999999999".split()),
    *(b'0.1234567890123456789 123456789012345678901234567890 "\\u0041" "\\ud800"'.split()),
    *(b" ", b"\n", b"\t", b"\x00", b"\x7f", b"\xff", "é".encode(), "😀".encode()),
)
"""What is written into a message, or over a byte of it."""


def fuzz(rng: Random) -> str:
    """Decode messages in both ways."""
    decoder: InputDecoder[Any] = rng.choice([INTERACTION_DECODER, LABEL_DECODER])
    keys, values = zip(*(_message(rng, decoder is LABEL_DECODER) for _ in range(MESSAGES)), strict=True)
    records = decode([*keys], [*values], decoder, LATEST)
    pairs = enumerate(zip(keys, values, strict=True))
    messages = [delivered(RawMessage("t", 0, offset, *pair)) for offset, pair in pairs]
    found = ColumnDecoder(decoder).decode(messages, LATEST)
    assert found.times.tolist() == times_of(records).tolist()
    for value, record, other in zip(values, records, found.records, strict=True):
        made = decoder.decode(value or b"") if other is None else other
        assert (type(made), made) == (type(record), record), value
    rows = [row for row, record in enumerate(records) if not isinstance(record, RejectedRecord)]
    accepted: list[Any] = [records[row] for row in rows]
    columns = found.columns
    assert columns is not None
    kept = InputColumns(
        columns.texts.select(np.array(rows, dtype=np.int64)),
        {name: column[rows] for name, column in columns.numbers.items()},
    )
    assert _exact(kept.ids(0)) == _exact([record.event_id for record in accepted])
    for entity in range(2):
        assert _exact(kept.ids(1 + entity)) == _exact([record.ids[entity] for record in accepted])
    for name in columns.numbers:
        assert _bits(kept.field(name)) == _bits([getattr(record, name) for record in accepted])
    assert found.records.count(None) > MESSAGES // 10, "hardly a message is usual"
    return "both decode alike"


def _message(rng: Random, is_label: bool) -> tuple[bytes | None, bytes | None]:
    event, user, video = rng.randrange(10**6), rng.randrange(1_000), rng.randrange(1_000)
    record: dict[str, Any] = {
        "event_id": rng.choice([event, f"{event:012d}", f"{event}-é", -event]),
        "user_id": user,
        "video_id": rng.choice([video, f"v{video}"]),
        "timestamp": rng.randrange(LATEST + LATEST // 100),
    }
    numbers = ("play_duration", "watch_ratio") if is_label else ("video_duration",)
    for name in numbers:
        scale = 10.0 ** rng.randrange(-8, 9)
        record[name] = rng.choice([rng.random() * scale, rng.randrange(10_000), round(rng.random(), 3), 1e12])
    if rng.random() < 0.3:
        record["further"] = rng.choice(["text", "é", None, True, 1.5, -1e300, [1], {"a": {}}])
    if rng.random() < 0.2:
        record = dict(rng.sample([*record.items()], len(record)))
    key: bytes | None = str(user).encode()
    if rng.random() < 0.03:
        key = rng.choice([None, b"", b"7", str(user).encode() + b" "])
    changed = rng.random()
    if changed < 0.2:
        record = mutated_json(rng, record)
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,\n", "\t:")])
    text = json.dumps(record, separators=separators, ensure_ascii=rng.random() < 0.5).encode()
    if 0.2 < changed < 0.4:
        text = mutated_bytes(rng, text)
    elif 0.4 < changed < 0.7:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(PIECES) + text[at + rng.randrange(3) :]
    return key, None if changed > 0.998 else text


def _exact(values: list[Any]) -> list[tuple[type, Any]]:
    return [(type(value), value) for value in values]


def _bits(values: list[float]) -> bytes:
    return np.array(values, dtype=np.float64).tobytes()
