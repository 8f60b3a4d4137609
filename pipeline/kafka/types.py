"""The Kafka client's types, for folders that name them but leave the work to `pipeline.kafka`."""

from __future__ import annotations

from confluent_kafka import Producer, TopicPartition

__all__ = ["Producer", "TopicPartition"]
