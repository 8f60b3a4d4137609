from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import polars as pl
import pytest

from bench.event_chunks import EventChunks
from bench.memory import Sample, slope
from bench.waiting_bytes import bytes_of_waiting
from pipeline.config.topics import Topics
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.sources.kuairec import Events, read_events
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size

TOPICS = Topics()


@pytest.fixture
def chunks() -> EventChunks:
    """Twenty plays in a row, each seen for a shorter time than the one before."""
    frame = pl.DataFrame({"timestamp": range(1_000_000, 3_000_000, 100_000)}).with_columns(
        user_id=pl.int_range(20) % 3,
        video_id=pl.int_range(20) % 7,
        label_timestamp=pl.col("timestamp") + 3_000_000 - 150_000 * pl.int_range(20),
        play_duration=pl.lit(500.0),
        video_duration=pl.lit(1_000.0),
        watch_ratio=pl.lit(0.5),
    )
    return EventChunks(Events(frame, 20, {}))


def records(chunks: EventChunks, chunk: int) -> tuple[list[KuaiRecInteraction], list[WatchLabel]]:
    of_topic: dict[str, list[bytes]] = {topic: [] for topic in TOPICS.inputs}
    for topic, key, value, timestamp in chunks.records(TOPICS, chunk):
        record = msgspec.json.decode(value)
        assert (key, timestamp) == (str(record["user_id"]).encode(), record["timestamp"])
        of_topic[topic].append(value)
    interactions, labels = of_topic.values()
    return (
        [msgspec.json.decode(value, type=KuaiRecInteraction) for value in interactions],
        [msgspec.json.decode(value, type=WatchLabel) for value in labels],
    )


def test_chunks_follow_one_another_with_events_of_their_own(chunks: EventChunks) -> None:
    found = [records(chunks, number) for number in range(3)]
    assert [event.event_id for interactions, _ in found for event in interactions] == list(range(60))
    for kind in range(2):
        times = [record.timestamp for both in found for record in both[kind]]
        assert times == sorted(times)
    for (_, before), (after, _) in pairwise(found):
        assert before[-1].timestamp < after[0].timestamp


def test_a_fifth_of_the_events_has_no_label(chunks: EventChunks) -> None:
    interactions, labels = records(chunks, 1)
    assert (len(interactions), len(labels)) == (chunks.events, chunks.messages - chunks.events) == (20, 16)
    by_id = {event.event_id: event for event in interactions}
    assert all(by_id[label.event_id].user_id == label.user_id for label in labels)
    assert all(by_id[label.event_id].timestamp <= label.timestamp for label in labels)


def test_the_slope_is_that_of_a_line() -> None:
    assert slope([Sample(n, 3.0 + 0.25 * n) for n in (0, 1, 5, 7)]) == pytest.approx(0.25)


def test_a_spilled_prediction_takes_a_fraction_of_one_in_memory(tmp_path: Path) -> None:
    write_files(tmp_path, Size(events=1_500, users=40, videos=100, days=1))
    found = bytes_of_waiting(read_events(tmp_path), spilled=40_000)
    assert found["bytes_each_spilled"] < found["bytes_each_in_memory"] / 2
    assert 250 < found["bytes_each_in_memory"] - found["bytes_each_beside_text"] < 400
