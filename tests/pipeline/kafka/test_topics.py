"""What the topics' settings say, also while brokers do not know all of them yet."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigEntry, ConfigResource

from pipeline.config.settings import Kafka
from pipeline.config.topics import LEAST_OUTPUT, Topics
from pipeline.kafka import topics
from pipeline.kafka.access import errors
from pipeline.kafka.access.connection import Admin
from pipeline.recovery.checkpoint_writer import CHUNK


class LaggingBroker:
    """Knows a topic only after some requests."""

    kafka = Kafka()

    def __init__(self, unknown: int, code: int = KafkaError.UNKNOWN_TOPIC_OR_PART) -> None:
        self.unknown = unknown
        self.code = code
        self.requests = 0

    @staticmethod
    def settings(_name: str) -> dict[str, str]:
        return {"retention.ms": "-1"}

    def describe_configs(
        self, resources: list[ConfigResource]
    ) -> dict[ConfigResource, Future[dict[str, ConfigEntry]]]:
        self.requests += 1
        futures = {}
        for resource in resources:
            futures[resource] = future = Future[dict[str, ConfigEntry]]()
            if resource.name == "new" and self.requests <= self.unknown:
                future.set_exception(KafkaException(KafkaError(self.code)))
            else:
                future.set_result(
                    {name: ConfigEntry(name, value) for name, value in self.settings(resource.name).items()}
                )
        return futures


def settings(broker: LaggingBroker) -> dict[str, Any]:
    return topics._settings(cast("Admin", broker), ["old", "new"])


def test_a_broker_that_does_not_know_a_new_topic_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "RETRY_BACKOFF", 0.0)
    broker = LaggingBroker(unknown=3)
    assert settings(broker) == {"old": {"retention.ms": "-1"}, "new": {"retention.ms": "-1"}}
    assert broker.requests == 4


def test_a_topic_that_stays_unknown_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "BROKER_TIMEOUT", 0.01)
    with pytest.raises(KafkaException):
        settings(LaggingBroker(unknown=10**9))


def test_other_errors_are_not_asked_about_again() -> None:
    broker = LaggingBroker(unknown=1, code=KafkaError.INVALID_REQUEST)
    with pytest.raises(KafkaException):
        settings(broker)
    assert broker.requests == 1


@pytest.mark.parametrize(
    ("limits", "size"),
    [
        ({"outcomes": 1_048_588}, 996_158),
        ({"checkpoints": 1_048_588}, 996_158),
        ({"shared": 1_048_588}, 996_158),
        ({}, 3_984_588),
        ({"predictions": 2**30}, 3_984_588),
    ],
)
def test_batches_fit_into_the_topics_of_outputs(limits: dict[str, int], size: int) -> None:
    class Broker(LaggingBroker):
        @staticmethod
        def settings(name: str) -> dict[str, str]:
            return {"max.message.bytes": str(limits.get(name, 4_194_304))}

    assert topics.output_limits(cast("Admin", Broker(0)), Topics()).batch == size


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        ({}, []),
        ({"dead-letters": 1_048_588 + 4_096}, []),
        ({"dead-letters": 1_048_588 + 4_095}, [("dead-letters", False)]),
        ({"dead-letters": 1_048_588}, [("dead-letters", False)]),
        ({"dead-letters": 16_384}, [("dead-letters", False)]),
        ({"dead-letters": 16_383}, [("dead-letters", True)]),
        ({"checkpoints": 999_999}, [("checkpoints", True)]),
        ({"checkpoints": 1_000_000, "predictions": 1_000}, []),
    ],
)
def test_outputs_take_what_has_to_be_written(limits: dict[str, int], found: list[tuple[str, bool]]) -> None:
    """With headers, a dead letter is larger than a message; it is cut where it does not fit."""
    names = Topics()
    usual = dict.fromkeys(names.inputs, 1_048_588) | dict.fromkeys(names.outputs, 4_194_304)
    settings = {name: {"max.message.bytes": str(size)} for name, size in (usual | limits).items()}
    assert [(each.topic, each.fatal) for each in topics._sizes(names, settings)] == found


def test_a_chunk_of_a_snapshot_fits_into_the_least_that_an_output_takes() -> None:
    assert CHUNK + 50_000 < LEAST_OUTPUT
