"""Restore live tables: read their topics from the beginning to where a state record has applied them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

import structlog

from pipeline.errors import StateError
from pipeline.features.live_tables import Rows, TableFeatures
from pipeline.kafka.log import LogReader
from pipeline.kafka.topics import Topics
from pipeline.records.decoding import NO_TIMESTAMP, RejectedRecord
from pipeline.records.inputs import KafkaMessage
from pipeline.task.live_tables import LiveTable
from pipeline.task.state import State, TableState

_log = structlog.get_logger()


def restore_tables(
    log: LogReader, topics: Topics, partition: int, features: Sequence[TableFeatures], state: State | None
) -> Generator[int, None, list[LiveTable]]:
    """Build the tables of a partition as they were when a state record was written.

    Parameters
    ----------
    log
        Reads their topics.
    topics
        The names of the topics.
    partition
        The number of the partition.
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
    """
    saved = {} if state is None else state.tables or {}
    tables = []
    for each in features:
        topic, found, rows = topics.table(each.name), saved.get(each.name), Rows(each)
        number = log.table_partition(topic, partition)
        if state is not None and found is None:
            raise StateError(f"the state record of partition {partition} does not name the table {each.name}")
        if found is None:
            tables.append(LiveTable(rows, reports=number == partition))
            continue
        log.refuse_end_before(topic, number, found.offset)
        for messages in log.read(topic, number):
            replay_rows(rows, messages, found.offset)
            read = (messages[-1].offset() or 0) + 1 if messages else found.offset
            if read >= found.offset:
                break
            yield found.offset - read
        table = LiveTable(rows, found.offset, reports=number == partition)
        table.lost_versions = int(_differs(table, found, topic, partition))
        tables.append(table)
    return tables


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
