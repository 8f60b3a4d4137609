"""Rows of live tables: records of compacted topics, compiled to the features of an entity's events.

A row is a fold over the records of its topic in the order of their offsets: no clock and no other topic
decides what becomes of a record. So reading the topic again, up to the same offset, gives the same rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.config.feature_layout import table_names_of
from pipeline.config.stream import Stream
from pipeline.config.stream_features import CategoryFeature, LiveTable, TextFeature, VectorFeature
from pipeline.features.event_features import conversion
from pipeline.records.decoding import NO_TIMESTAMP, LoneSurrogateError, RejectedRecord
from pipeline.records.fields import Id
from pipeline.records.input_decoders import table_value_decoder
from pipeline.records.names import Fault
from pipeline.records.nesting import shallow
from pipeline.records.surrogates import replace_lone_surrogates

MAX_KEY: Final = 256
"""Characters of a key, at most: as many as an id in a message."""
DIGEST_BYTES: Final = 16
_DIGESTS: Final = 1 << 8 * DIGEST_BYTES


class TableRecord(NamedTuple):
    """A record of a table's topic."""

    key: bytes
    timestamp: int
    """From when on it holds, in milliseconds; `NO_TIMESTAMP` for at once."""
    row: bytes | None
    """Its numbers, float64; None where the row is deleted."""


class TableFeatures:
    """What a table's definition says of its records.

    Parameters
    ----------
    name
        The table's name.
    table
        Its definition.
    entity
        The number of the entity whose id is the key.

    Attributes
    ----------
    names
        Names of the numbers in a row: whether there is one, then the features.
    categories
        Of each category that has columns, its place among `names` and its columns.
    unknown
        The row of an entity that has none.

    Examples
    --------
    >>> price = {"kind": "number", "field": "/price"}
    >>> features = TableFeatures("items", LiveTable(topic="i", entity="item", features={"price": price}), 0)
    >>> array("d", features.decode(b"i7", b'{"price":3.5}', 5).row).tolist()
    [1.0, 3.5]
    >>> features.decode(b"i7", b'{"price":"x"}', 5).fault
    <Fault.INVALID: 'invalid'>
    """

    def __init__(self, name: str, table: LiveTable, entity: int) -> None:
        self.name = name
        self.entity = entity
        self.max_rows = table.max_rows
        self.names = tuple(table_names_of(name, table))
        self._value = table_value_decoder(table)
        self._conversions: list[Callable[[Any], object]] = []
        missing = [0.0]
        self.categories: list[tuple[int, int]] = []
        for key, feature in table.features.items():
            if isinstance(feature, CategoryFeature) and feature.columns is not None:
                self.categories.append((len(missing), feature.columns))
            convert = conversion(f"{name}_{key}", feature)
            self._conversions.append(convert)
            always = isinstance(feature, CategoryFeature | TextFeature | VectorFeature)
            known = always or feature.missing is not None
            _append(missing, convert(None) if known else 0.0)
        self.unknown = array("d", missing).tobytes()

    def decode(self, key: bytes | None, value: bytes | None, time: int) -> TableRecord | RejectedRecord:
        """Decode a record.

        Parameters
        ----------
        key, value
            As in the topic.
        time
            The time that Kafka has of the record, in milliseconds.
        """
        if not _is_id(key):
            reason = f"the key is {key!r:.80}: it has to be the id of a row, 1 to {MAX_KEY} characters"
            return RejectedRecord(Fault.WRONG_KEY, reason)
        assert key is not None
        if value is None:
            return TableRecord(key, time, None)
        try:
            own, at, *fields = self._decode_value(value)
        except msgspec.ValidationError as error:
            return RejectedRecord(Fault.INVALID, str(error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            used = isinstance(error, LoneSurrogateError)
            reason = str(error) if used else f"the value is not a JSON object: {error}"
            return RejectedRecord(Fault.UNDECODABLE, reason)
        if own is not None and str(own).encode() != key:
            reason = f"the key is {key!r:.80}, but the record names {own!r}"
            return RejectedRecord(Fault.WRONG_KEY, reason)
        numbers = [1.0]
        for convert, field in zip(self._conversions, fields, strict=True):
            _append(numbers, convert(field))
        return TableRecord(key, time if at is None else at, array("d", numbers).tobytes())

    def _decode_value(self, value: bytes) -> tuple[Any, ...]:
        """Decode a value; half of a surrogate pair is accepted in fields that are ignored, as in messages."""
        shallow(value)
        try:
            return self._value(value)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            first, second = (replace_lone_surrogates(value, escape) for escape in (rb"\ufffd", rb"\ufffc"))
            if first == second:  # there is none, and something else is wrong
                raise
        found = self._value(first)
        if found != self._value(second):
            raise LoneSurrogateError("a field has half a surrogate pair, which stands for no character")
        return found


def tables_of(stream: Stream) -> tuple[TableFeatures, ...]:
    """Return the tables of a stream, in the order of its definition."""
    entities = [*stream.entities]
    return tuple(
        TableFeatures(name, table, entities.index(table.entity)) for name, table in stream.tables.items()
    )


class Rows:
    """The rows of a table, at most `max_rows`.

    Attributes
    ----------
    digest
        Of all rows, whatever their order.
    """

    def __init__(self, features: TableFeatures) -> None:
        self.features = features
        self._rows: dict[bytes, bytes] = {}
        self._sum = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def digest(self) -> str:
        """Sum of the hashes of all rows, in hexadecimal digits: the same for the same rows."""
        return f"{self._sum:0{2 * DIGEST_BYTES}x}"

    def apply(self, record: TableRecord) -> RejectedRecord | None:
        """Insert, replace or delete a row; return why not, where the table is full."""
        key, _, row = record
        before = self._rows.get(key)
        if before is None and row is not None and len(self._rows) >= self.features.max_rows:
            reason = f"the table {self.features.name} has {len(self)} rows, its max_rows"
            return RejectedRecord(Fault.TABLE_FULL, reason)
        if before is not None:
            self._sum -= _hash(key, before)
        if row is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row
            self._sum += _hash(key, row)
        self._sum %= _DIGESTS
        return None

    def of(self, entity: Id) -> bytes:
        """Return the row of an entity, that of an unknown one if it has none."""
        return self._rows.get(str(entity).encode(), self.features.unknown)

    def of_all(self, entities: Sequence[Id]) -> bytes:
        """Return the rows of entities, one after the other."""
        unknown, find = self.features.unknown, self._rows.get
        return b"".join([find(str(each).encode(), unknown) for each in entities])


def in_force(record: TableRecord, latest: int) -> TableRecord:
    """Return the record, to be applied at once if its time lies beyond `latest` or is no time."""
    if 0 <= record.timestamp <= latest:
        return record
    return record._replace(timestamp=NO_TIMESTAMP)


def _append(numbers: list[float], converted: Any) -> None:
    if isinstance(converted, list):
        numbers.extend(converted)
    else:
        numbers.append(float(converted))


def _is_id(key: bytes | None) -> bool:
    try:
        return 1 <= len((key or b"").decode()) <= MAX_KEY
    except UnicodeDecodeError:
        return False


def _hash(key: bytes, row: bytes) -> int:
    text = b"%d:%b%b" % (len(key), key, row)
    return int.from_bytes(blake2b(text, digest_size=DIGEST_BYTES).digest(), "little")
