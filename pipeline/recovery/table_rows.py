"""Restore live tables: read their topics from the beginning to where a state record has applied them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

import structlog

from pipeline.errors import StateError
from pipeline.features.live_tables import Rows, TableFeatures
from pipeline.kafka.access.errors import timed_out
from pipeline.log.partition_log import PartitionLog
from pipeline.records.decoding import NO_TIMESTAMP, RejectedRecord
from pipeline.records.inputs import KafkaMessage
from pipeline.task.live_tables import LiveTable
from pipeline.task.state import State, TableState

_log = structlog.get_logger()


def restore_tables(
    log: PartitionLog, features: Sequence[TableFeatures], state: State | None
) -> Generator[int, None, list[LiveTable]]:
    """Build the tables of a partition as they were when a state record was written.

    Parameters
    ----------
    log
        The log of the partition.
    features
        What the stream's definition says of its tables.
    state
        The last committed state record; None for empty tables.

    Returns
    -------
    list of LiveTable
        In the order of `features`.

    Yields
    ------
    int
        Offsets of a table that are left to read.

    Raises
    ------
    StateError
        A topic ends before the offset up to which it was applied, or the state record lacks a table.
    KafkaException
        A topic cannot be read that far for now.
    """
    saved = {} if state is None else state.tables or {}
    tables = []
    for each in features:
        topic, found, rows = log.topics.table(each.name), saved.get(each.name), Rows(each)
        number, partition = log.table_partition(topic), log.partition
        if state is not None and found is None:
            raise StateError(f"the state record of partition {partition} does not name the table {each.name}")
        if found is None:
            tables.append(LiveTable(rows, reports=number == partition))
            continue
        log.refuse_end_before(topic, found.offset, number)
        yield from replay(log, topic, number, rows, found.offset)
        table = LiveTable(rows, found.offset, reports=number == partition)
        table.lost_versions = int(_differs(table, found, topic, partition))
        tables.append(table)
    return tables


def replay(log: PartitionLog, topic: str, number: int, rows: Rows, end: int) -> Generator[int]:
    """Apply the records below an offset.

    Parameters
    ----------
    log
        The log of the partition.
    topic, number
        The topic of the table, and the partition that is read.
    rows
        The rows, of which there are none yet.
    end
        The offset.

    Yields
    ------
    int
        Offsets that are left to read.

    Raises
    ------
    KafkaException
        The topic cannot be read that far for now.
    """
    left = end
    for messages, left in log.table_below(topic, number, end):
        replay_rows(rows, messages, end)
        if left > 0:
            yield left
    if left > 0:
        raise timed_out(f"{topic} cannot be read up to offset {end} of partition {number}")


def replay_rows(rows: Rows, messages: Iterable[KafkaMessage], end: int) -> None:
    """Apply those messages of a table's topic that lie below an offset."""
    for message in messages:
        if (message.offset() or 0) >= end:
            return
        record = rows.features.decode(message.key(), message.value(), NO_TIMESTAMP)
        if not isinstance(record, RejectedRecord):
            rows.apply(record)


def _differs(table: LiveTable, saved: TableState, topic: str, partition: int) -> bool:
    """Return whether the rows are others than they were, and warn of it."""
    if (len(table.rows), table.rows.digest) == (saved.rows, saved.digest):
        return False
    _log.warning(
        "a table is not as it was: compaction took away versions that were still in force. A longer "
        "min.compaction.lag.ms of its topic keeps them while workers are away",
        table=table.features.name,
        topic=topic,
        partition=partition,
        rows=len(table.rows),
        rows_before=saved.rows,
    )
    return True
