"""Events that happen now, for what shows time: invented ones, sent bit by bit with the time of sending."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import polars as pl

from tests.integration.harness import TIMEOUT, Message, Pipeline, input_producer, interactions_of, labels_of

PAUSE = 0.1
"""Seconds between two bits."""
DELAY = 15
"""Bits after which the labels of one come."""
UNLABELLED = 2
"""Events of a bit that never have a label."""


@contextmanager
def live_feed(
    pipeline: Pipeline, events: pl.DataFrame, size: int, spoil: Callable[[int], list[Message]]
) -> Iterator[None]:
    """Send events in bits of this size in a thread until the end of the block.

    `spoil` returns what else is to be sent with the bit of a number.
    """
    stop, producer = threading.Event(), input_producer(pipeline.kafka.bootstrap)

    def produce(messages: Iterable[Message]) -> None:
        for topic, key, value, timestamp in messages:
            producer.produce(topic, value, key, timestamp=timestamp)
        producer.poll(0)

    def send() -> None:
        bits = [events[begin : begin + size] for begin in range(0, len(events), size)]
        for number in range(len(bits) + DELAY):
            if stop.wait(PAUSE):
                return
            now = int(time.time() * 1000)
            if number < len(bits):
                bits[number] = bits[number].with_columns(timestamp=pl.lit(now))
                produce([*interactions_of(pipeline.topics, bits[number]), *spoil(number)])
            if number >= DELAY:
                old = bits[number - DELAY].with_columns(label_timestamp=pl.lit(now))
                produce(labels_of(pipeline.topics, old[UNLABELLED:]))

    thread = threading.Thread(target=send, name="feed")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        assert producer.flush(TIMEOUT) == 0
