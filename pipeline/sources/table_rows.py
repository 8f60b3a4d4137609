"""Send the rows of a file to the topic of a live table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any, Final, NamedTuple

import msgspec
import polars as pl

from pipeline.config.pointer import nested, parts_of
from pipeline.config.settings import Kafka
from pipeline.config.stream import Stream
from pipeline.config.stream_features import LiveTable
from pipeline.config.topics import Topics
from pipeline.errors import ConfigError, DataError, TopicError
from pipeline.features.live_tables import tables_of
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import existing_topics
from pipeline.records.decoding import RejectedRecord
from pipeline.records.encoding import encode
from pipeline.records.input_times import time_writer
from pipeline.sources.sender import Sender
from pipeline.sources.table_columns import TableFile
from pipeline.truncate import truncate

BEGINNING: Final = 1
"""Time of a row without one, in milliseconds: before all events. For 0, a Kafka client puts its own time."""
ACK_TIMEOUT: Final = 120.0
"""Seconds without any acknowledgement after which loading fails."""
POLL_EVERY: Final = 2_000
"""Rows between two looks at what was acknowledged."""


class TableRow(NamedTuple):
    """A record of a live table, made of a row of a file."""

    key: bytes
    value: bytes
    timestamp: int
    """From when on it holds, in milliseconds."""


class Summary(msgspec.Struct, frozen=True):
    """What became of the rows of a file."""

    rows: int
    sent: int
    skipped: dict[str, int]
    """Rows that cannot be used, by reason."""
    example: str | None
    """What is wrong with the first of them."""
    complete: bool
    """Whether all rows were looked at."""


class TableRows:
    """The rows of a file, as records of a live table.

    A field is in the column of its name, as in `pipeline.sources.rows.read_rows`. The id is in the column
    that the table's definition or the entity names. Where the definition names no time, rows hold from the
    beginning.

    Parameters
    ----------
    path
        A table: ``.csv``, ``.parquet``, ``.jsonl`` or ``.ndjson``.
    stream
        Definition of the stream.
    name
        The name of the live table.

    Attributes
    ----------
    stream, name
        As given.
    skipped
        Rows that could not be used so far, by reason.
    example
        What is wrong with the first of them.

    Raises
    ------
    ConfigError
        The stream has no such table.
    DataError
        There is no such file, it is no such table, or a column is missing.
    """

    def __init__(self, path: Path, stream: Stream, name: str) -> None:
        if name not in stream.tables:
            there = ", ".join(stream.tables) or "none"
            raise ConfigError(f"the stream {stream.name} has no table {name!r}; there are: {there}")
        table = stream.tables[name]
        self.stream, self.name = stream, name
        self._features = next(each for each in tables_of(stream) if each.name == name)
        self._frame = _columns(path, stream, table)
        self._fields = _fields(table)
        self.skipped: Counter[str] = Counter()
        self.example: str | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._frame.height

    def records(self) -> Iterator[TableRow | None]:
        """Yield the record of each row; None for a row that cannot be used."""
        for number, (row_id, time, *features) in enumerate(self._frame.iter_rows(), 1):
            record = None if row_id is None or time is None else self._record(row_id, time, features)
            if isinstance(record, TableRow):
                yield record
                continue
            if record is not None:
                reason, text = record.fault.value, record.reason
            else:
                reason, text = ("no_id", "it has no id") if row_id is None else ("no_time", "it has no time")
            self.skipped[reason] += 1
            self.example = self.example or f"row {number}: {truncate(text)}"
            yield None

    def _record(self, row_id: object, time: int, features: list[Any]) -> TableRow | RejectedRecord:
        given = zip(self._fields, (row_id, time, *features), strict=True)
        value = encode(
            nested((parts, make(each)) for (parts, make), each in given if parts and each is not None)
        )
        key = str(row_id).encode()
        decoded = self._features.decode(key, value, time)
        return decoded if isinstance(decoded, RejectedRecord) else TableRow(key, value, time)


def load(
    rows: TableRows, kafka: Kafka, stop: Event, progress: Callable[[int], None] = lambda _: None
) -> Summary:
    """Send rows to the topic of their table, and wait until all that were sent are acknowledged.

    Parameters
    ----------
    rows
        What to send.
    kafka
        Address of Kafka and prefix of the topics.
    stop
        Ends it early.
    progress
        Called with the number of rows that were looked at.

    Raises
    ------
    BrokerError
        The broker refuses records, or acknowledges none for two minutes.
    TopicError
        The topic is missing.
    """
    topic = Topics(kafka.prefix, input_prefix=kafka.input_prefix, stream=rows.stream).table(rows.name)
    if topic not in existing_topics(Admin(kafka), [topic]):
        raise TopicError(f"no topic {topic} at {kafka.bootstrap}; create it with: forks topics create")
    sender = Sender(kafka, ACK_TIMEOUT, "run the command again: a row that comes twice changes nothing")
    seen = 0
    for record in rows.records():
        if stop.is_set():
            break
        seen += 1
        if record is not None:
            sender.send(topic, *record)
        if seen % POLL_EVERY == 0:
            sender.poll()
            progress(seen)
    sender.flush()
    progress(seen)
    return Summary(len(rows), sender.sent, dict(rows.skipped), rows.example, seen == len(rows))


def _columns(path: Path, stream: Stream, table: LiveTable) -> pl.DataFrame:
    """Return the columns of id and time, then of the features."""
    file = TableFile.read(path)
    pointer = table.id
    if pointer is None:
        named = f"/{table.entity}"
        pointer = named if file.find(named) is not None else stream.entities[table.entity]
    time = pl.lit(BEGINNING) if table.time is None else file.time(table.time, table)
    columns = {
        "id": file.ids(pointer),
        "time": time,
        **{f"features.{name}": file.feature(feature) for name, feature in table.features.items()},
    }
    try:
        return file.frame.select(**columns)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path}: {truncate(str(error).splitlines()[0])}") from error


def _fields(table: LiveTable) -> list[tuple[tuple[str, ...], Callable[[Any], object]]]:
    """Return where each column goes in a record's value, nowhere if empty, and what converts it."""
    fields: list[tuple[tuple[str, ...], Callable[[Any], object]]] = [
        (() if table.id is None else parts_of(table.id), _same),
        (() if table.time is None else parts_of(table.time), time_writer(table)),
    ]
    return fields + [(parts_of(feature.field), _same) for feature in table.features.values()]


def _same(value: object) -> object:
    return value
