"""A worker outlasts what passes."""

from __future__ import annotations

from pipeline.broker.launch import free_ports
from pipeline.config.settings import Kafka
from pipeline.kafka.access.rights import Resource, Right
from pipeline.worker.worker import known_missing_rights


def test_no_right_counts_as_missing_while_no_broker_can_be_asked() -> None:
    [port] = free_ports(1)
    wanted = [Right("Write", Resource.TOPIC, "outcomes")]
    assert known_missing_rights(Kafka(bootstrap=f"127.0.0.1:{port}"), wanted) == []
