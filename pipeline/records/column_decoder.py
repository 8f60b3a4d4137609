"""Decode messages of an input to columns, without a record for each.

What is accepted and refused, and why, is what `pipeline.records.decoding.decode` says, which decodes message
by message. It is asked for every message that is not usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    times_of,
)
from pipeline.records.encoding import encode
from pipeline.records.input_columns import InputColumns
from pipeline.records.inputs import KafkaMessage, sizes
from pipeline.records.message_texts import MessageTexts, headers_of, key_of, value_of
from pipeline.records.places import flagged
from pipeline.records.scanner import Field, Scanner
from pipeline.records.texts import Integers, Texts, joined_texts
from pipeline.records.words import SPARE

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
    texts_of
        Reads keys and values of messages.
    """

    def __init__(
        self,
        decoder: InputDecoder[Any],
        fewest: int = FEWEST,
        texts_of: Callable[[Sequence[KafkaMessage]], MessageTexts] = MessageTexts.of,
    ) -> None:
        self._decoder = decoder
        self._fewest = fewest
        self._texts_of = texts_of
        fields = _fields(decoder)
        self.to_columns = fields is not None
        """Whether it decodes to columns."""
        if fields is not None:
            self._numbers = [field.name for field in fields if field.kind == scan.NUMBER]
            self._ids = len(fields) - len(self._numbers) - 1
            self._key = [field.member for field in fields].index(decoder.key_field)
            self._scanner = Scanner(fields, only=False, needed=self._numbers)

    def decode(self, messages: Sequence[KafkaMessage], latest: int) -> Decoded:
        """Decode messages in the order of their offsets: see `pipeline.records.decoding.decode`."""
        if self.to_columns and len(messages) >= self._fewest:
            texts = self._texts_of(messages)
            records, times, columns = self._columns(messages, texts, latest)
            return Decoded(messages, texts.sizes, times, records, columns, self._decoder.decode)
        keys, values = [*map(key_of, messages)], [*map(value_of, messages)]
        found, headers = decode(keys, values, self._decoder, latest), [*map(headers_of, messages)]
        return Decoded(messages, sizes(keys, values, headers), times_of(found), found)

    def _columns(
        self, messages: Sequence[KafkaMessage], found: MessageTexts, latest: int
    ) -> tuple[list[Record | None], Integers, InputColumns]:
        """Return records of what is not usual, times, and the columns of all."""
        scanned, ids = self._scanner.scan(found.values), self._ids
        texts, usual, keys = scanned.values, scanned.usual, found.keys
        own = texts.column(self._key)
        scan.are_keys(own.text, own.begins, own.ends, keys.text, keys.ends, usual)
        times = scanned.integers[ids]
        usual &= times <= latest
        numbers = dict(zip(self._numbers, scanned.numbers[ids + 1 :], strict=True))
        columns = InputColumns(Texts(texts.text, texts.begins[:ids], texts.ends[:ids]), numbers)
        records: list[Record | None] = [None] * len(messages)
        others = flagged(~usual).tolist()
        if not others:
            return records, times, columns
        alone = [messages[row] for row in others]
        plain = decode([*map(key_of, alone)], [*map(value_of, alone)], self._decoder, latest)
        for row, record in zip(others, plain, strict=True):
            records[row] = record
        columns = self._with_others(dict(zip(others, plain, strict=True)), times, columns)
        return records, times, columns

    def _with_others(self, others: dict[int, Record], times: Integers, columns: InputColumns) -> InputColumns:
        """Write to times and columns what the records of other messages hold, and return the columns."""
        (begins, ends), text = (columns.texts.begins, columns.texts.ends), columns.texts.text
        added, end = list[bytes](), len(text)
        for row, record in others.items():
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
        return InputColumns(Texts(text, begins, ends), columns.numbers)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    value = b'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"play_duration":900,"watch_ratio":0.5}'
    texts = MessageTexts.sized(joined_texts([b"7"]), joined_texts([value], SPARE))
    ColumnDecoder(LABEL_DECODER, fewest=1)._columns((), texts, latest=5)[2].ids(0)
