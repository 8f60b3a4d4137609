"""The live tables of one partition: their queues, their rows, and how far they have been applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from pipeline.features.live_tables import Rows, TableFeatures, TableRecord
from pipeline.join.prediction_columns import PredictionColumns
from pipeline.records.decoding import NO_TIMESTAMP, Decoded, Record, RejectedRecord, times_of
from pipeline.records.inputs import KafkaMessage, sizes
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.state import TableState

ANY_TIME: Final = 2**62
"""A table may be silent for months, and its records do not move stream time: they may jump."""


class LiveTable:
    """One table of a partition.

    Parameters
    ----------
    rows
        Its rows.
    offset
        The next record to apply.
    reports
        Whether records that cannot be used become dead letters of this partition. Where all partitions read
        the same records, only the first one reports.

    Attributes
    ----------
    queue
        Its records that were read and not yet applied.
    applied
        Records applied since the task began.
    rejected
        Records that could not be used since then.
    lost_versions
        1 if the rows were not restored as they were, because compaction had taken versions away.
    """

    def __init__(self, rows: Rows, offset: int = 0, *, reports: bool = True) -> None:
        self.rows = rows
        self.queue = RecordQueue(Position(offset), ANY_TIME, ANY_TIME)
        self.reports = reports
        self.applied = self.rejected = self.lost_versions = 0

    @property
    def features(self) -> TableFeatures:
        """What its definition says."""
        return self.rows.features

    @property
    def offset(self) -> int:
        """The next record to apply."""
        return self.queue.position.offset

    def feed(self, messages: Sequence[KafkaMessage], records: Sequence[TableRecord | RejectedRecord]) -> None:
        """Append messages, decoded."""
        keys, values = [each.key() for each in messages], [each.value() for each in messages]
        decoded = cast(list[Record], list(records))  # a queue needs of a record its time alone
        size = sizes(keys, values, [each.headers() for each in messages])
        self.queue.feed(Decoded(messages, size, times_of(decoded), decoded))

    def apply_next(self) -> RejectedRecord | None:
        """Apply the next record; return why not, if it cannot be used."""
        record = cast(TableRecord | RejectedRecord, self.queue.pop())
        fault = record if isinstance(record, RejectedRecord) else self.rows.apply(record)
        self.applied += fault is None
        self.rejected += fault is not None
        return fault

    def state(self) -> TableState:
        """Return what a state record says of it."""
        return TableState(self.offset, len(self.rows), self.rows.digest)


class LiveTables:
    """The tables of a partition, in the order of the stream's definition.

    Attributes
    ----------
    tables
        The tables.
    versions
        The offset up to which each has been applied, by name: a new dictionary after each record.
    """

    def __init__(self, tables: Sequence[LiveTable]) -> None:
        self.tables = tuple(tables)
        self.versions = self._versions()

    def __bool__(self) -> bool:
        return bool(self.tables)

    @property
    def ready(self) -> bool:
        """Whether the next record of each is known, or that there is none for now."""
        return all(table.queue.ready for table in self.tables)

    @property
    def next(self) -> LiveTable | None:
        """The table whose next record comes first: the earlier one in the definition, of equal times."""
        waiting = [table for table in self.tables if table.queue.time is not None]
        return min(waiting, key=_time, default=None)

    def apply(self, table: LiveTable) -> RejectedRecord | None:
        """Apply the next record of a table; return why not, if it cannot be used."""
        fault = table.apply_next()
        self.versions = self._versions()
        return fault

    def fill(self, predictions: PredictionColumns) -> None:
        """Append the features of the tables to those of messages, and say up to where they were applied."""
        blocks = [predictions.values]
        for each in self.tables:
            found = each.rows.of_all(predictions.ids_of(1 + each.features.entity))
            blocks.append(np.frombuffer(found).reshape(len(predictions), -1))
        predictions.values = np.hstack(blocks)
        predictions.tables = [self.versions] * len(predictions)

    def states(self) -> dict[str, TableState]:
        """Return what a state record says of them, by name."""
        return {table.features.name: table.state() for table in self.tables}

    def rewind(self) -> None:
        """Drop the records that were read and not yet applied."""
        for table in self.tables:
            table.queue.rewind()

    def _versions(self) -> dict[str, int]:
        return {table.features.name: table.offset for table in self.tables}


def _time(table: LiveTable) -> int:
    time = table.queue.time
    return NO_TIMESTAMP if time is None else time
