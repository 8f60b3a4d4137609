"""Messages whose schema is not known yet are held back, and with them nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import Message, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Config, Registry
from pipeline.kafka.offsets import PartitionId
from pipeline.records.decoding import RejectedRecord
from pipeline.records.inputs import RawMessage
from pipeline.task.record_queue import RecordQueue
from pipeline.worker.source import ConsumerSource
from tests.support.builders import join_settings, new_task
from tests.support.entries import delivered
from tests.support.schemas import ORDER, Schemas, avro, avro_schema, order, stream_of

ORDERS, ARRIVALS = (PartitionId(topic, 0) for topic in ("orders", "arrivals"))
UNKNOWN = -1001
OTHER = {**ORDER, "name": "Other"}
"""The schema with id 2."""


class Inputs:
    """A consumer that delivers messages of partitions that are not paused, as a client does."""

    def __init__(self) -> None:
        self.left: dict[PartitionId, list[Message]] = {}
        self.paused: set[PartitionId] = set()
        self.heeds_pauses = True
        """Else it also delivers what was fetched before a pause."""

    def poll(self, _: float) -> Message | None:
        return next(iter(self.consume(1)), None)

    def consume(self, most: int, _: float = 0.0) -> list[Message]:
        for partition, messages in self.left.items():
            if messages and not (self.heeds_pauses and partition in self.paused):
                consumed, self.left[partition] = messages[:most], messages[most:]
                return consumed
        return []

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        self.paused |= {PartitionId(each.topic, each.partition) for each in partitions}

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        self.paused -= {PartitionId(each.topic, each.partition) for each in partitions}

    def get_watermark_offsets(self, partition: TopicPartition, **_: Any) -> tuple[int, int]:
        return UNKNOWN, UNKNOWN if PartitionId(partition.topic, partition.partition) not in self.left else 0

    def __getattr__(self, _: str) -> Mock:
        return Mock()


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> Schemas:
    found = Schemas(avro_schema(ORDER), avro_schema(OTHER))
    monkeypatch.setattr("pipeline.worker.source.SchemaLookup", lambda _: found)
    return found


def new_source(inputs: Inputs, partitions: int = 1) -> tuple[ConsumerSource, RecordQueue, RecordQueue]:
    config = Config(
        stream=stream_of("avro"),
        registry=Registry(url="http://127.0.0.1:1"),
        join=join_settings(max_idle="0s"),
    )
    source = ConsumerSource(inputs, config)  # type: ignore[arg-type]  # all of a consumer that it uses
    numbers = range(partitions)
    source.assign({PartitionId(topic, each): 0 for topic in ("orders", "arrivals") for each in numbers})
    tasks = [new_task(config.join, number) for number in numbers]
    for number, task in enumerate(tasks):
        source.connect(number, (task.interactions, task.labels))
    return source, tasks[0].interactions, tasks[0].labels


def message(offset: int, schema_id: int, partition: PartitionId = ORDERS) -> Message:
    schema = ORDER if schema_id == 1 else OTHER
    value = avro(schema, order(order=f"o{offset}"), schema_id)
    return delivered(RawMessage(*partition, offset, b"c7", value))


def events(queue: RecordQueue) -> list[str]:
    found = []
    while len(queue):
        record = queue.pop()
        found.append(record.fault if isinstance(record, RejectedRecord) else str(record.event_id))
    return found


def test_a_registry_that_is_away_holds_messages_back_and_refuses_none(schemas: Schemas) -> None:
    inputs = Inputs()
    source, orders, _ = new_source(inputs)
    inputs.left = {ORDERS: [message(offset, 1) for offset in range(3)]}
    schemas.away = True
    for _ in range(3):
        source.poll(0.0)
        source.apply_backpressure()
        assert (len(orders), orders.ready, orders.at_end) == (0, False, False)
        assert source.held(0)[0] >= 1
        assert ORDERS in inputs.paused
        assert ARRIVALS not in inputs.paused
    schemas.away = False
    for _ in range(2):
        source.poll(0.0)
        source.apply_backpressure()
    assert events(orders) == ["o0", "o1", "o2"]
    assert source.held(0) == (0, 0)
    assert not inputs.paused


def test_what_is_held_is_not_taken_for_the_end_of_the_input(schemas: Schemas) -> None:
    inputs = Inputs()
    source, orders, labels = new_source(inputs)
    inputs.left = {ORDERS: [], ARRIVALS: []}
    source.poll(0.0)
    found = [(orders.at_end, labels.at_end)]
    schemas.away = True
    inputs.left[ORDERS] = [message(0, 1)]
    for _ in range(2):
        source.poll(0.0)
        found.append((orders.at_end, labels.at_end))
    assert found == [(True, True), (False, True), (False, True)]
    schemas.away = False
    source.poll(0.0)
    assert events(orders) == ["o0"]


def test_messages_of_known_schemas_go_on_in_other_partitions(schemas: Schemas) -> None:
    inputs = Inputs()
    source, orders, _ = new_source(inputs, partitions=2)
    other = PartitionId("orders", 1)
    inputs.left = {ORDERS: [message(0, 1)]}
    source.poll(0.0)
    assert events(orders) == ["o0"]
    schemas.away = True
    inputs.left = {ORDERS: [message(offset, 2) for offset in (1, 2)], other: []}
    for offset in range(3):
        inputs.left[other].append(message(offset, 1, other))
        source.poll(0.0)
        source.poll(0.0)
    assert source.held(0)[0] > 0
    assert source.held(1) == (0, 0)
    queue = source._inputs[other].queue
    assert queue is not None
    assert events(queue) == ["o0", "o1", "o2"]
    assert inputs.paused == {ORDERS}


def test_what_is_delivered_after_a_pause_comes_behind_what_is_held(schemas: Schemas) -> None:
    inputs = Inputs()
    inputs.heeds_pauses = False
    source, orders, _ = new_source(inputs)
    schemas.away = True
    inputs.left = {ORDERS: [message(offset, 1) for offset in range(2)]}
    source.poll(0.0)
    inputs.left = {ORDERS: [message(offset, 1) for offset in range(2, 4)]}
    source.poll(0.0)
    schemas.away = False
    source.poll(0.0)
    assert events(orders) == ["o0", "o1", "o2", "o3"]


def test_a_revoked_partition_leaves_nothing_behind(schemas: Schemas) -> None:
    inputs = Inputs()
    source, orders, _ = new_source(inputs)
    inputs.left = {ORDERS: [message(0, 1)]}
    schemas.away = True
    source.poll(0.0)
    source.clear()
    schemas.away = False
    source.poll(0.0)
    assert len(orders) == 0


@given(data=st.data())
def test_whenever_schemas_come_each_message_is_read_once_and_in_order(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        schemas = Schemas(avro_schema(ORDER), avro_schema(OTHER))
        patch.setattr("pipeline.worker.source.SchemaLookup", lambda _: schemas)
        inputs = Inputs()
        source, orders, _ = new_source(inputs)
        wanted = data.draw(st.lists(st.sampled_from([1, 2, 3]), max_size=30))
        inputs.left = {ORDERS: [message(offset, schema_id) for offset, schema_id in enumerate(wanted)]}
        read: list[str] = []
        for away in data.draw(st.lists(st.booleans(), max_size=6)):
            schemas.away = away
            source.poll(0.0)
            source.apply_backpressure()
            read += events(orders)
        schemas.away = False
        for _ in range(3):
            source.poll(0.0)
            source.apply_backpressure()
        read += events(orders)
        assert read == [f"o{offset}" if id_ < 3 else "undecodable" for offset, id_ in enumerate(wanted)]


def test_that_there_is_none_may_be_forgotten_between_two_looks(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = Inputs()
    source, orders, _ = new_source(inputs)
    monkeypatch.setattr(source, "_ready", lambda _, messages: len(messages))
    schemas.away = True
    inputs.left = {ORDERS: [message(0, 1)]}
    source.poll(0.0)
    assert source.held(0) == (1, 0)
    schemas.away = False
    source.poll(0.0)
    assert events(orders) == ["o0"]
