from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from river import stream

from pipeline.kafka.partitioner import partition
from pipeline.sources.kuairec import Events
from pipeline.sources.schedule import Schedule, merge_by_time

# Few different times and delays, so that there are many ties.
plays = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), max_size=40).map(sorted)


def events(plays: list[tuple[int, int]]) -> Events:
    frame = pl.DataFrame(
        {
            "event_id": [f"event-{number}" for number in range(len(plays))],
            "user_id": [number * 7 % 5 for number in range(len(plays))],
            "timestamp": [timestamp for timestamp, _ in plays],
            "label_timestamp": [timestamp + delay for timestamp, delay in plays],
        },
        schema_overrides=dict.fromkeys(("user_id", "timestamp", "label_timestamp"), pl.Int64),
    )
    return Events(frame, len(plays), {})


@given(plays=plays)
def test_the_order_is_that_of_rivers_question_and_answer_simulation(plays: list[tuple[int, int]]) -> None:
    dataset: list[tuple[dict[Hashable, int], int]]
    dataset = [({"time": timestamp, "delay": delay}, delay) for timestamp, delay in plays]
    simulated = stream.simulate_qa(dataset, moment="time", delay="delay")
    expected = [number if answer is None else len(plays) + number for number, _, answer in simulated]
    times = np.array(plays, dtype=np.int64).reshape(-1, 2)
    assert merge_by_time(times[:, 0], times.sum(axis=1)).tolist() == expected


@given(plays=plays, partitions=st.integers(1, 4))
def test_every_record_is_in_one_partition_its_users_in_order(
    plays: list[tuple[int, int]], partitions: int
) -> None:
    schedule = Schedule(events(plays), partitions)
    users = schedule.events.frame["user_id"].to_list()
    by_partition = schedule.records_by_partition()
    order = schedule.order.tolist()
    assert sorted(record for topic in by_partition for part in topic for record in part.tolist()) == sorted(
        order
    )
    for topic in by_partition:
        for number, part in enumerate(topic):
            assert part.tolist() == sorted(part.tolist(), key=order.index)
            for record in part.tolist():
                assert partition(str(users[record % len(users)]).encode(), partitions) == number
