"""Records of tables on their way into a task: how much is read ahead, and when a table is at its end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.config.settings import Config, Join, Worker
from pipeline.config.topics import Topics
from pipeline.task.live_tables import LiveTable, LiveTables
from pipeline.worker.table_source import PREFETCH, TableSource
from tests.integration.harness import Follower, Message, Pipeline, until
from tests.support.live_tables import STREAM, new_task

BUFFER = 2**21
LARGE = 100_000
RECORDS = 100


@contextmanager
def reading(pipeline: Pipeline, join: Join) -> Iterator[tuple[TableSource, LiveTables]]:
    """Read the tables of one partition."""
    config = Config(kafka=pipeline.kafka, join=join, worker=Worker(buffer=BUFFER), stream=STREAM)
    source, tables = TableSource(config), new_task().tables
    source.connect(0, tables)
    try:
        yield source, tables
    finally:
        source.clear()


def couriers_of(pipeline: Pipeline, count: int, padding: int = 0) -> None:
    value = json.dumps({"speed": 1.0, "description": "x" * padding}).encode()
    topic = pipeline.topics.table("couriers")
    pipeline.produce(Message(topic, b"c%d" % number, value, number) for number in range(count))


def drained(table: LiveTable) -> bool:
    while table.queue.time is not None:
        table.apply_next()
    return len(table.rows) == RECORDS


def test_large_records_of_a_table_do_not_fill_the_memory(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, topics=Topics(topic_prefix, stream=STREAM))
    couriers_of(pipeline, RECORDS, LARGE)
    with reading(pipeline, Join()) as (source, tables):
        table, seen = tables.tables[1], list[int]()

        def read() -> None:
            source.poll()
            seen.append(table.queue.bytes)

        def full() -> bool:
            read()
            return table.queue.bytes > BUFFER // 16

        until(full, "as much as may be read ahead")
        for _ in range(3):  # as long as another consumer takes for all records
            with pipeline.follow(pipeline.topics.table("couriers")) as follower:

                def others_have_all(follower: Follower = follower) -> bool:
                    read()
                    return follower.reached(RECORDS)

                until(others_have_all, "all records, elsewhere")
        assert not table.queue.at_end
        assert max(seen) < RECORDS * LARGE // 2
        assert max(seen) <= BUFFER // 16 + PREFETCH + 2**20 + LARGE

        def all_applied() -> bool:
            read()
            return drained(table)

        until(all_applied, "all records")


def test_a_table_is_at_its_end_when_it_was_quiet_for_long_enough(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, topics=Topics(topic_prefix, stream=STREAM))
    couriers_of(pipeline, RECORDS)
    for max_idle in ("0ms", "1h"):
        with reading(pipeline, Join.model_validate({"max_idle": max_idle})) as (source, tables):
            table = tables.tables[1]

            def all_applied(source: TableSource = source, table: LiveTable = table) -> bool:
                source.poll()
                return drained(table)

            def at_end(source: TableSource = source, tables: LiveTables = tables) -> bool:
                source.poll()
                return tables.ready

            until(all_applied, "all records")
            if max_idle == "0ms":
                until(at_end, "the end of both tables")
            else:
                assert not any(at_end() for _ in range(1_000))
