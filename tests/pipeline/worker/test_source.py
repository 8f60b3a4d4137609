"""Messages go to the inlets of their places, however a client mixes them; `tests/integration` has the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

from confluent_kafka import KafkaError, Message, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.tree import Config, Worker
from pipeline.kafka.topics import Topics
from pipeline.records.encoding import encode
from pipeline.records.inputs import Source
from pipeline.task.record_queue import Inlet
from pipeline.task.task import Task
from pipeline.worker.source import SLICE, Intake, Place
from tests.support.builders import interaction, join_settings, label, new_task
from tests.support.entries import delivered

TOPICS = Topics("")
PARTITIONS = 2
HERE: list[Place] = [(topic, partition) for topic in TOPICS.inputs for partition in range(PARTITIONS)]
GONE: Place = (TOPICS.interactions, PARTITIONS)
UNKNOWN = -1001
"""What a client says of a watermark that it has not seen."""


class Queue:
    """A consumer that hands over what was put in."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.left = list(messages)

    def poll(self, timeout: float) -> Message | None:  # noqa: ARG002 - as the client has it
        return self.left.pop(0) if self.left else None

    def consume(self, most: int, timeout: float) -> list[Message]:  # noqa: ARG002 - as the client has it
        taken, self.left = self.left[:most], self.left[most:]
        return taken

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        return UNKNOWN, UNKNOWN

    def __getattr__(self, _: str) -> Mock:
        return Mock()


def message(place: Place, offset: int) -> Message:
    record = interaction(offset, 5) if place[0] == TOPICS.interactions else label(offset, 5)
    return delivered(Source(*place, offset, b"1", encode(record)))


def end_of(place: Place, offset: int) -> Message:
    error = KafkaError(KafkaError._PARTITION_EOF)
    return Message(topic=place[0], partition=place[1], offset=offset, error=error)


def intake_of(queue: Queue, batch: int = 5_000) -> tuple[Intake, dict[Place, Inlet]]:
    """One that has read nothing, and the inlets that it reads into."""
    config = Config(join=join_settings(max_idle="0s"), worker=Worker(batch=batch))
    intake = Intake(queue, config)  # type: ignore[arg-type]  # all of a consumer that it uses
    intake.assign([TopicPartition(*place, 0) for place in HERE])
    inlets: dict[Place, Inlet] = {}
    for partition in range(PARTITIONS):
        task: Task = new_task(config.join, partition)
        intake.connect(task)
        inlets |= {
            (TOPICS.interactions, partition): task.interactions,
            (TOPICS.labels, partition): task.labels,
        }
    return intake, inlets


places = st.lists(st.sampled_from([*HERE, GONE]) | st.just(HERE[0]), max_size=30)


ends = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(HERE)), max_size=4)


@given(order=places, ends=ends)
def test_each_message_goes_to_its_place_in_its_order(
    order: list[Place], ends: list[tuple[int, Place]]
) -> None:
    messages = [message(place, order[:n].count(place)) for n, place in enumerate(order)]
    for at, place in ends:
        messages.insert(at, end_of(place, order.count(place)))
    queue = Queue(messages)
    intake, inlets = intake_of(queue)
    intake.receive(0.0)
    assert not queue.left
    for place, inlet in inlets.items():
        assert len(inlet) == order.count(place)
        for offset in range(len(inlet)):
            inlet.pop()
            source = inlet.source()
            assert (source.topic, source.partition, source.offset) == (*place, offset)
    intake.receive(0.0)
    assert {place for place, inlet in inlets.items() if inlet.at_end} == {place for _, place in ends}


def test_no_more_is_taken_at_once_than_a_batch() -> None:
    place, batch = HERE[0], SLICE + 500
    intake, inlets = intake_of(Queue([message(place, offset) for offset in range(3 * batch)]), batch)
    taken = []
    for _ in range(2):
        intake.receive(0.0)
        taken.append(len(inlets[place]))
    assert taken == [1 + batch, 2 + 2 * batch]


def test_what_is_not_needed_stays_in_the_queue() -> None:
    batch, many = 2, 10
    queue = Queue([message(place, offset) for offset in range(batch) for place in HERE])
    intake, _ = intake_of(queue, batch)
    while queue.left:
        intake.receive(0.0)
    queue.left = [message(HERE[0], batch + offset) for offset in range(many)]
    intake.receive(0.0)
    assert len(queue.left) == many - 1
