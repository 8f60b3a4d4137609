"""The message type of the Kafka client, for folders that do not import the client."""

from __future__ import annotations

from typing import Protocol

from pipeline.records.inputs import KafkaMessage


class ConsumerRecord(KafkaMessage, Protocol):
    """A message that was read from a topic, with the time of its record."""

    def timestamp(self) -> tuple[int, int]: ...
