"""What a view shows of one partition, topic by topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, cast

from confluent_kafka import Message

from pipeline.audit.evidence import Buried, Stretch
from pipeline.audit.view import View
from pipeline.config import Kafka
from pipeline.letter import Headers, read_letter
from pipeline.log import Log
from pipeline.offsets import Place
from pipeline.records import Source

EVERY: Final = 500
"""Records between two words on how many have been read."""


class Meter:
    """Counts what is read.

    Parameters
    ----------
    told
        Called now and then with the records read so far.
    """

    def __init__(self, told: Callable[[int], None]) -> None:
        self._told = told
        self._read = 0

    def count(self) -> None:
        """Count one."""
        self._read += 1
        if self._read % EVERY == 0:
            self._told(self._read)


class Reader:
    """Reads one partition of any topic as far as the view goes.

    Each reading has a client of its own, so that topics can be read side by side.

    Parameters
    ----------
    kafka
        Where to read.
    view
        How far.
    partition
        Which.
    meter
        Told of every record.
    """

    def __init__(self, kafka: Kafka, view: View, partition: int, meter: Meter) -> None:
        self.partition = partition
        self._kafka = kafka
        self._view = view
        self._meter = meter

    def begin(self, topic: str) -> int:
        """The first offset that retention has left."""
        return self._view.ranges[Place(topic, self.partition)].start

    def covered(self, topic: str) -> int:
        """Below this offset no record was written after the group's offsets were."""
        return self._view.covered[Place(topic, self.partition)]

    def sources(self, topic: str, stop: int | None = None) -> Stretch[Source]:
        """The records below an offset, or of all the view."""
        return Stretch(map(_source, self._messages(topic, stop)), self.begin(topic), self.covered(topic))

    def letters(self, topic: str) -> Stretch[Buried]:
        """The dead letters."""
        buried = (Buried(_source(message), read_letter(message)) for message in self._messages(topic, None))
        return Stretch(buried, self.begin(topic), self.covered(topic))

    def _messages(self, topic: str, stop: int | None) -> Iterator[Message]:
        offsets = self._view.ranges[Place(topic, self.partition)]
        end = offsets.stop if stop is None else min(stop, offsets.stop)
        if offsets.start >= end:
            return
        with Log(self._kafka) as log:
            for message in log.read_to_end(topic, self.partition):
                if (message.offset() or 0) >= end:
                    return
                self._meter.count()
                yield message


def _source(message: Message) -> Source:
    headers = cast(Headers, message.headers() or ())
    return Source(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.key(),
        message.value(),
        headers,
    )
