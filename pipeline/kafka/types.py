"""Types of the Kafka client, for folders that do not import it."""

from __future__ import annotations

from typing import Protocol

from confluent_kafka import Producer, TopicPartition

from pipeline.records.inputs import KafkaMessage

__all__ = ["Producer", "TopicPartition"]


class ConsumerRecord(KafkaMessage, Protocol):
    """A message that was read from a topic, with the time of its record."""

    def timestamp(self) -> tuple[int, int]: ...
