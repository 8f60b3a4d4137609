"""Decode messages of an input to columns, without a record for each.

What is accepted and refused, and why, is what `pipeline.records.decoding.decode` says, which decodes message
by message. It is asked for every message that is not usual.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from pipeline.records import scan
from pipeline.records.decoding import (
    LABEL_DECODER,
    NO_TIMESTAMP,
    Decoded,
    InputDecoder,
    Record,
    RejectedRecord,
    decode,
)
from pipeline.records.encoding import encode
from pipeline.records.input_columns import InputColumns
from pipeline.records.places import flagged
from pipeline.records.scanner import Field, Scanner
from pipeline.records.texts import Texts, joined_texts

FEWEST: Final = 16
"""`ColumnDecoder.fewest` of workers."""


def _fields(decoder: InputDecoder[Any]) -> list[Field] | None:
    """Return the fields of an input's records, if these are nothing but ids, a time and numbers.

    They are in this order, and the id of the event is the first.
    """
    if decoder.record is None:
        return None
    fields = {field.name: field for field in msgspec.structs.fields(decoder.record)}
    ids = ["event_id", *decoder.record.id_fields]
    others = [name for name in fields if name not in {*ids, "timestamp"}]
    kinds = [scan.ID] * len(ids) + [scan.INTEGER] + [scan.NUMBER] * len(others)
    found = [Field.of(fields[name]) for name in (*ids, "timestamp", *others)]
    known = [field for field in found if field is not None and not field.nullable]
    every = all(field.required for field in fields.values()) and len(fields) <= scan.MAX_FIELDS
    return known if every and [field.kind for field in known] == kinds else None


class ColumnDecoder:
    """Decodes messages of one input: to columns where that can be done, else to records.

    Parameters
    ----------
    decoder
        Decodes messages one by one.
    fewest
        Messages below which it costs less to decode them one by one.
    """

    def __init__(self, decoder: InputDecoder[Any], fewest: int = FEWEST) -> None:
        self._decoder = decoder
        self._fewest = fewest
        fields = _fields(decoder)
        self.to_columns = fields is not None
        """Whether it decodes to columns."""
        if fields is not None:
            self._numbers = [field.name for field in fields if field.kind == scan.NUMBER]
            self._ids = len(fields) - len(self._numbers) - 1
            self._key = [field.member for field in fields].index(decoder.key_field)
            self._scanner = Scanner(fields, only=False, needed=self._numbers)

    def decode(
        self, keys: list[bytes | None], values: list[bytes | None], latest: int
    ) -> Decoded[Record | None]:
        """Decode messages: see `pipeline.records.decoding.decode`."""
        if self.to_columns and len(values) >= self._fewest:
            return self._columns(keys, values, latest)
        records, times, *_ = decode(keys, values, self._decoder, latest)
        return Decoded([*records], times)

    def _columns(
        self, keys: list[bytes | None], values: list[bytes | None], latest: int
    ) -> Decoded[Record | None]:
        scanned, ids = self._scanner.scan(values), self._ids
        texts, usual, joined = scanned.values, scanned.usual, joined_texts(keys)
        own = texts.column(self._key)
        scan.are_keys(own.text, own.begins, own.ends, joined.text, joined.ends, usual)
        times = scanned.integers[ids]
        usual &= times <= latest
        columns = dict(zip(self._numbers, scanned.numbers[ids + 1 :], strict=True))
        found = Decoded[Record | None](
            [None] * len(values),
            times,
            InputColumns(Texts(texts.text, texts.begins[:ids], texts.ends[:ids]), columns),
            self._decoder.decode,
        )
        others = flagged(~usual).tolist()
        return self._with_others(others, keys, values, latest, found) if others else found

    def _with_others(
        self,
        others: list[int],
        keys: list[bytes | None],
        values: list[bytes | None],
        latest: int,
        decoded: Decoded[Record | None],
    ) -> Decoded[Record | None]:
        """Decode the other messages one by one, and write what they hold to the columns."""
        records, times, columns, _ = decoded
        assert columns is not None
        (begins, ends), text = (columns.texts.begins, columns.texts.ends), columns.texts.text
        added, end = list[bytes](), len(text)
        plain = decode([keys[row] for row in others], [values[row] for row in others], self._decoder, latest)
        for row, record in zip(others, plain.records, strict=True):
            records[row] = record
            if isinstance(record, RejectedRecord):
                times[row] = NO_TIMESTAMP
                begins[:, row] = ends[:, row] = 0
                continue
            times[row] = record.timestamp
            for name, column in columns.numbers.items():
                column[row] = getattr(record, name)
            for number, each in enumerate((record.event_id, *record.ids)):
                added.append(encode(each))
                begins[number, row], end = end, end + len(added[-1])
                ends[number, row] = end
        text = np.frombuffer(text.tobytes() + b"".join(added), dtype=np.uint8)
        moved = InputColumns(Texts(text, begins, ends), columns.numbers)
        return Decoded(records, times, moved, decoded.decode)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    value = b'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"play_duration":900,"watch_ratio":0.5}'
    columns = ColumnDecoder(LABEL_DECODER, fewest=1).decode([b"7"], [value], latest=5).columns
    assert columns is not None
    columns.ids(0)
