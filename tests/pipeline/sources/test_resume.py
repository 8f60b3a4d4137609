from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.sources.kuairec import Events
from pipeline.sources.resume import Tail, Tails, count_by_partition, remaining_records
from pipeline.sources.schedule import Integers, Schedule

TOPICS = ("interactions", "watch-labels")


def schedule(count: int, partitions: int, seed: int = 0) -> Schedule:
    rng = np.random.default_rng(seed)
    timestamp = np.sort(rng.integers(0, count, count))
    frame = pl.DataFrame(
        {
            "event_id": [f"event-{number}" for number in range(count)],
            "user_id": rng.integers(0, 9, count),
            "timestamp": timestamp,
            "label_timestamp": timestamp + rng.integers(0, 30, count),
        }
    )
    return Schedule(Events(frame, count, {}), partitions)


def named(event_id: str) -> bytes:
    return msgspec.json.encode({"event_id": event_id})


def tails_after(schedule: Schedule, counts: list[list[int]]) -> Tails:
    """The tails of topics whose partitions hold the first so many records of what they are sent."""
    ids = schedule.events.frame["event_id"]

    def tail(records: Integers, count: int) -> Tail:
        return Tail(count, named(ids[int(records[count - 1] % len(ids))]) if count else None)

    first, second = (
        [tail(records, count) for records, count in zip(parts, of_topic, strict=True)]
        for parts, of_topic in zip(schedule.records_by_partition(), counts, strict=True)
    )
    return first, second


@given(data=st.data(), partitions=st.integers(1, 4), seed=st.integers(0, 5))
def test_what_remains_is_what_no_partition_holds_wherever_each_of_them_stopped(
    data: st.DataObject, partitions: int, seed: int
) -> None:
    plan = schedule(40, partitions, seed)
    by_partition = plan.records_by_partition()
    counts = [[data.draw(st.integers(0, len(records))) for records in parts] for parts in by_partition]
    rest = remaining_records(plan, TOPICS, tails_after(plan, counts))
    held = [
        record
        for parts, of_topic in zip(by_partition, counts, strict=True)
        for records, count in zip(parts, of_topic, strict=True)
        for record in records[:count].tolist()
    ]
    assert rest.tolist() == [record for record in plan.order.tolist() if record not in held]
    left = [[len(records) for records in parts] for parts in by_partition]
    assert [by.tolist() for by in count_by_partition(plan, rest)] == [
        [whole - count for whole, count in zip(*pair, strict=True)] for pair in zip(left, counts, strict=True)
    ]


def test_topics_filled_from_another_file_are_refused() -> None:
    plan = schedule(10, 1)
    tails = [Tail(1, named("other"))], [Tail(0, None)]
    with pytest.raises(DataError, match=r"interactions, partition 0: .*'other', which is not in the file"):
        remaining_records(plan, TOPICS, tails)


@pytest.mark.parametrize("end", [3, 20])
def test_topics_that_hold_more_than_a_replay_are_refused(end: int) -> None:
    plan = schedule(10, 1)
    [records], _ = plan.records_by_partition()
    last = plan.events.frame["event_id"][int(records[1])]
    with pytest.raises(DataError, match=f"'{last}' and number {end} there, which is not its number"):
        remaining_records(plan, TOPICS, ([Tail(end, named(last))], [Tail(0, None)]))


@pytest.mark.parametrize("last", [None, b"", b"{}", b"\xff"])
def test_topics_whose_last_record_is_no_event_are_refused(last: bytes | None) -> None:
    with pytest.raises(DataError, match="its last record is no event"):
        remaining_records(schedule(10, 1), TOPICS, ([Tail(4, last)], [Tail(0, None)]))
