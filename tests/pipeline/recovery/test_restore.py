"""Asking for the group's committed offsets."""

from __future__ import annotations

from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.kafka.committed import RETRIABLE_ERRORS, committed


class Group:
    """A group whose coordinator answers with these codes first."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0.0
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return places


def ask(*codes: int) -> dict[int, dict[str, TopicPartition]]:
    places = [TopicPartition(topic, partition, 7) for partition in (1, 0) for topic in ("a", "b")]
    return committed(cast(Consumer, Group(*codes)), places)


@pytest.mark.parametrize("code", sorted(RETRIABLE_ERRORS))
def test_a_group_that_has_no_coordinator_yet_is_asked_again(code: int) -> None:
    found = ask(code)
    assert list(found) == [0, 1]
    assert {topic: place.offset for topic, place in found[1].items()} == {"a": 7, "b": 7}


def test_other_errors_are_not() -> None:
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        ask(KafkaError.GROUP_AUTHORIZATION_FAILED)
