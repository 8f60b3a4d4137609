"""Decode messages of an input to columns, without a record for each.

What is accepted and refused, and why, is what `pipeline.records.decoding.decode` says, which decodes message
by message. It is asked for every message that is not usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Self

import msgspec
import numpy as np
from msgspec.structs import FieldInfo

from pipeline.records import scan
from pipeline.records.decoding import (
    LABEL_DECODER,
    NO_TIMESTAMP,
    InputDecoder,
    Record,
    RejectedRecord,
    decode,
)
from pipeline.records.encoding import encode
from pipeline.records.input_columns import Floats, InputColumns, Integers, decode_list, joined
from pipeline.records.scan import Flags
from pipeline.records.texts import Bytes
from pipeline.records.words import SPARE

_decode_numbers = msgspec.json.Decoder(list[float]).decode
FEWEST: Final = 16
"""Messages below which it costs less to decode them one by one."""
_PLAIN: Final = frozenset(map(chr, range(32, 127))) - {'"', "\\"}
"""Characters of names that stand for themselves."""


def no_record(_value: bytes) -> Record:
    """Stand for the decoder of messages that all have records."""
    raise AssertionError("the message was decoded to nothing")


class DecodedColumns(NamedTuple):
    """What messages were decoded to, in their order."""

    records: list[Record | None]
    """None for what is in the columns only."""
    times: Integers
    """Timestamps, in milliseconds, shape (n,); `NO_TIMESTAMP` for what cannot be used."""
    columns: InputColumns | None = None
    """None where each message has a record; what cannot be used has a row of no meaning."""
    decode: Callable[[bytes], Record] = no_record
    """Makes the record of a message that is in the columns only, given its value."""


class Scanner:
    """Decodes messages of one input to columns.

    Parameters
    ----------
    decoder
        Decodes messages one by one.
    ids, time, numbers
        The fields of its records: ids, that of the event first, the time, and numbers with their ranges.
    """

    def __init__(
        self,
        decoder: InputDecoder[Any],
        ids: Sequence[FieldInfo],
        time: FieldInfo,
        numbers: Sequence[tuple[FieldInfo, tuple[float, float]]],
    ) -> None:
        members = [field.encode_name for field in (*ids, time, *(field for field, _ in numbers))]
        self._decoder = decoder
        names = [f'"{member}":' for member in members]
        self._names = _bytes_of("".join(names).encode() + bytes(SPARE))
        self._name_ends = np.cumsum([*map(len, names)])
        self._kinds = np.array([scan.ID] * len(ids) + [scan.TIME] + [scan.NUMBER] * len(numbers))
        self._ids, self._key = len(ids), members.index(decoder.key_field)
        self._limits = {field.name: limits for field, limits in numbers}

    @classmethod
    def of(cls, decoder: InputDecoder[Any]) -> Self | None:
        """Return the scanner of a decoder, if its records are nothing but ids, a time and numbers."""
        if decoder.record is None:
            return None
        fields = {field.name: field for field in msgspec.structs.fields(decoder.record)}
        id_names = ("event_id", *decoder.record.id_fields)
        others = [field for name, field in fields.items() if name not in {*id_names, "timestamp"}]
        numbers = [(field, limits) for field in others if (limits := _limits(field)) is not None]
        names = [field.encode_name for field in fields.values()]
        if (
            len(numbers) < len(others)
            or len(fields) > scan.MAX_FIELDS
            or not all(name and _PLAIN.issuperset(name) for name in names)
        ):
            return None
        return cls(decoder, [fields[name] for name in id_names], fields["timestamp"], numbers)

    def decode(self, keys: list[bytes | None], values: list[bytes | None], latest: int) -> DecodedColumns:
        """Decode messages: see `pipeline.records.decoding.decode`."""
        n, fields, ids = len(values), len(self._kinds), self._ids
        text, text_ends = _joined(values, SPARE)
        key_text, key_ends = _joined(keys)
        begins, ends = np.zeros((2, fields, n), dtype=np.int64)
        integers, numbers = np.empty((fields, n), dtype=np.int64), np.empty((fields, n))
        usual = np.empty(n, dtype=np.bool_)
        scan.scan(
            text, text_ends, self._names, self._name_ends, self._kinds, begins, ends, integers, numbers, usual
        )
        scan.are_keys(text, begins[self._key], ends[self._key], key_text, key_ends, usual)
        usual &= integers[ids] <= latest
        for at, (lowest, highest) in enumerate(self._limits.values(), ids + 1):
            _parse(text, begins[at], ends[at], numbers[at], usual)
            usual &= (numbers[at] >= lowest) & (numbers[at] <= highest)
        columns = dict(zip(self._limits, numbers[ids + 1 :], strict=True))
        found = DecodedColumns(
            [None] * n,
            integers[ids],
            InputColumns(text, begins[:ids], ends[:ids], columns),
            self._decoder.decode,
        )
        others = np.flatnonzero(~usual).tolist()
        return self._with_others(others, keys, values, latest, found) if others else found

    def _with_others(
        self,
        others: list[int],
        keys: list[bytes | None],
        values: list[bytes | None],
        latest: int,
        decoded: DecodedColumns,
    ) -> DecodedColumns:
        """Decode the other messages one by one, and write what they hold to the columns."""
        records, times, columns, _ = decoded
        assert columns is not None
        added, end = list[bytes](), len(columns.text)
        plain = decode([keys[row] for row in others], [values[row] for row in others], self._decoder, latest)
        for row, record in zip(others, plain.records, strict=True):
            records[row] = record
            if isinstance(record, RejectedRecord):
                times[row] = NO_TIMESTAMP
                columns.begins[:, row] = columns.ends[:, row] = 0
                continue
            times[row] = record.timestamp
            for name, column in columns.numbers.items():
                column[row] = getattr(record, name)
            for number, each in enumerate((record.event_id, *record.ids)):
                added.append(encode(each))
                columns.begins[number, row], end = end, end + len(added[-1])
                columns.ends[number, row] = end
        text = joined([columns.text, _bytes_of(b"".join(added))])
        moved = InputColumns(text, columns.begins, columns.ends, columns.numbers)
        return DecodedColumns(records, times, moved, decoded.decode)


class ColumnDecoder:
    """Decodes messages of one input: to columns where that can be done, else to records.

    Parameters
    ----------
    decoder
        Decodes messages one by one.
    """

    def __init__(self, decoder: InputDecoder[Any]) -> None:
        self._decoder = decoder
        self._scanner = Scanner.of(decoder)

    def decode(self, keys: list[bytes | None], values: list[bytes | None], latest: int) -> DecodedColumns:
        """Decode messages: see `pipeline.records.decoding.decode`."""
        if self._scanner is not None and len(values) >= FEWEST:
            return self._scanner.decode(keys, values, latest)
        records, times = decode(keys, values, self._decoder, latest)
        return DecodedColumns([*records], times)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    value = b'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"play_duration":900,"watch_ratio":0.5}'
    scanner = Scanner.of(LABEL_DECODER)
    assert scanner is not None
    columns = scanner.decode([b"7"], [value], latest=5).columns
    assert columns is not None
    columns.ids(0)


def _limits(field: FieldInfo) -> tuple[float, float] | None:
    """Return the range of a field that is a number and has to be there; None for another one."""
    info = msgspec.inspect.type_info(field.type)
    if (
        not field.required
        or not isinstance(info, msgspec.inspect.FloatType)
        or info.ge is None
        or info.le is None
    ):
        return None
    return float(info.ge), float(info.le)


def _joined(texts: Sequence[bytes | None], spare: int = 0) -> tuple[Bytes, Integers]:
    """Return texts one behind the other, with spare bytes behind them, and where each ends; None is empty."""
    try:
        text = b"".join([*texts, bytes(spare)])  # type: ignore[list-item]  # see below
    except TypeError:  # None, which is rare, cannot be joined
        return _joined([each or b"" for each in texts], spare)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))  # type: ignore[arg-type]  # none is None
    return _bytes_of(text), np.cumsum(lengths)


def _parse(text: Bytes, begins: Integers, ends: Integers, numbers: Floats, usual: Flags) -> None:
    """Parse those numbers that the scan has left to a parser."""
    rows = np.flatnonzero(np.isnan(numbers) & usual)
    if len(rows):
        numbers[rows] = np.array(decode_list(text, begins[rows], ends[rows], _decode_numbers))


def _bytes_of(text: bytes) -> Bytes:
    return np.frombuffer(text, dtype=np.uint8)
