"""The Kafka client's types, for folders that name them but leave the work to `pipeline.kafka`."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

__all__ = ["AdminClient", "Consumer", "KafkaError", "KafkaException", "Message", "Producer", "TopicPartition"]
