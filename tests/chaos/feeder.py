"""Sends the world's messages, at a steady pace or all at once."""

from __future__ import annotations

import time
from itertools import islice
from threading import Event

from tests.chaos.tables import TableRecord
from tests.chaos.world import Input, World
from tests.integration.harness import Pipeline, input_producer

CHUNK = 500
"""Messages after which all have to be acknowledged: neither input gets further ahead of the other."""
TIMEOUT = 120.0
"""Seconds for which the broker may be away."""


class Feeder:
    """Sends from a thread of its own.

    Parameters
    ----------
    pipeline
        Whose inputs to write.
    world
        What to write.
    seconds
        How long the main part is to take, evenly spread; nothing for as quickly as it goes.
    """

    def __init__(self, pipeline: Pipeline, world: World, seconds: float = 0.0) -> None:
        self._pipeline = pipeline
        self._world = world
        self._seconds = seconds
        self._producer = input_producer(pipeline.kafka.bootstrap)
        self.stop = Event()
        """Ends the sending before its time."""

    def send_events(self) -> None:
        """Send all but the closing events, in the order of time."""
        begin, chunk = time.monotonic(), CHUNK if self._seconds else 20 * CHUNK
        inputs = self._world.sent(final=False)
        sent = 0
        while some := list(islice(inputs, chunk)):
            sent += len(some)
            self._send(some)
            due = begin + self._seconds * sent / self._world.size
            if self.stop.wait(max(0.0, due - time.monotonic())):
                return

    def send_final(self) -> None:
        """Send what closes the windows; to be done when all else is processed.

        A live merge may take an input that is slow for one that is at its end. With hours between two
        events, labels on their way would then come too late.
        """
        self._send(list(self._world.sent(final=True)))

    def _send(self, inputs: list[Input | TableRecord]) -> None:
        for given in inputs:
            self._producer.produce(self._topic(given), given.value, given.key, timestamp=given.timestamp)
        if left := self._producer.flush(TIMEOUT):
            raise TimeoutError(f"{left} messages were not acknowledged within {TIMEOUT:.0f} s")

    def _topic(self, given: Input | TableRecord) -> str:
        topics = self._pipeline.topics
        if isinstance(given, TableRecord):
            return topics.table(given.table)
        return topics.labels if given.is_label else topics.interactions
