"""Partitions that the group gives to a worker whose session has ended."""

from __future__ import annotations

from unittest.mock import Mock

from confluent_kafka import Consumer, TopicPartition

from pipeline.config.settings import Config
from pipeline.worker.assignment import Assignment


def test_what_is_assigned_while_the_consumer_is_closed_is_not_taken() -> None:
    """The client then has no metadata of the group any more, and says so with an error of its own."""
    consumer, monitor = Mock(spec=Consumer), Mock()
    consumer.consumer_group_metadata.side_effect = RuntimeError("Consumer group metadata not available")
    assignment = Assignment(Config(), consumer, Mock(), {"partitions": "1"}, monitor)
    assignment.subscribe(before_revocation=Mock())
    [call] = consumer.subscribe.mock_calls
    assignment.close()
    call.kwargs["on_assign"](consumer, [TopicPartition(topic, 0) for topic in call.args[0]])
    assert not assignment.partitions
    monitor.assigned.assert_not_called()
