"""From a play to the moment at which a reader sees what the model says of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import msgspec
import numpy as np
from confluent_kafka import Message, TopicPartition

from pipeline.config.settings import Kafka
from pipeline.kafka.clients import groupless_consumer

POLL: Final = 0.05
"""Seconds to wait for a first message."""
TIMEOUT: Final = 60.0
"""Seconds without a prediction after which something is wrong."""


class _Identified(msgspec.Struct):
    event_id: int


_DECODE = msgspec.json.Decoder(_Identified).decode


class Delay(NamedTuple):
    """How long one event's prediction took."""

    sent: float
    """When the event was sent, in seconds since 1970."""
    milliseconds: float
    """From then until the prediction was read."""


class Percentiles(NamedTuple):
    """Of delays, in milliseconds."""

    p50_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, delays: Sequence[Delay]) -> Self:
        """Return those of delays, of which there has to be at least one."""
        found = np.percentile([delay.milliseconds for delay in delays], (50, 99, 100))
        return cls(*(round(float(value), 2) for value in found))


def split_near(
    delays: Sequence[Delay], moments: Sequence[float], seconds: float
) -> tuple[list[Delay], list[Delay]]:
    """Return the delays of what was sent within so many seconds before one of the moments, and the others."""
    near: list[Delay] = []
    others: list[Delay] = []
    for delay in delays:
        close = any(moment - seconds <= delay.sent <= moment for moment in moments)
        (near if close else others).append(delay)
    return near, others


class Listener:
    """Reads a topic of predictions, of one partition, as they are committed; use as a context manager.

    Parameters
    ----------
    kafka : where
    topic : of predictions or what stands for them
    """

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._topic = topic
        self._consumer = groupless_consumer(kafka)
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def skip(self, count: int) -> None:
        """Read so many more, of whatever kind."""
        left = count
        while left:
            left -= len(self._more())

    def listen(self, count: int) -> list[Delay]:
        """Read so many more, of plays sent by `bench.feed`, and return how long each took."""
        delays: list[Delay] = []
        while len(delays) < count:
            messages = self._more()
            now = time.time()
            for message in messages:
                sent = _DECODE(message.value() or b"").event_id / 1e6
                delays.append(Delay(sent, 1e3 * (now - sent)))
        return delays

    def _more(self) -> list[Message]:
        """Wait for messages; those that are there come at once."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if (first := self._consumer.poll(POLL)) is not None:
                messages = [first, *self._consumer.consume(10_000, 0.0)]
                if found := [message for message in messages if message.error() is None]:
                    return found
        raise SystemExit(f"nothing has come in {self._topic} for {TIMEOUT:.0f} s")
