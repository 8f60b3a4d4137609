"""Send a file's interactions and labels to Kafka in the order and at the pace of their time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Final

import msgspec

from pipeline.config.settings import Kafka
from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import DataError, StateError
from pipeline.kafka.registry import SchemaRegistry
from pipeline.sources.input_log import InputLog
from pipeline.sources.kuairec import Events
from pipeline.sources.messages import MessageWriter, writer_of
from pipeline.sources.registry_writer import RegistryWriter
from pipeline.sources.resume import count_by_partition, remaining_records
from pipeline.sources.schedule import Integers, Schedule
from pipeline.sources.sender import Sender

CHUNK_SIZE: Final = 2_000
"""Records that are prepared at once."""
STOP_CHECK_INTERVAL: Final = 0.1
"""Seconds after which a waiting replay checks whether it has to stop."""


class Summary(msgspec.Struct, frozen=True):
    """Figures of a replay."""

    rows: int
    """Rows of the file."""
    skipped: dict[str, int]
    """Rows that cannot be used, by reason."""
    events: int
    """Usable rows, up to the limit; each is an interaction and a label, or a slate's item and its label."""
    there_before: int
    """Records that the topics held before, from an earlier replay."""
    interactions: int
    """Interactions sent by this replay."""
    labels: int
    """Labels sent by this replay."""
    seconds: float
    events_per_s: float
    """Interactions sent per second."""
    complete: bool
    """Whether nothing remains to be sent."""


class Pace:
    """The time at which each event is due, at a multiple of real time.

    Parameters
    ----------
    speed
        Multiple of real time.
    timestamp
        Time of the first event, in milliseconds since 1970.
    now
        Time at which the first event is due, in seconds of the clock of `due`.

    Examples
    --------
    >>> pace = Pace(speed=60, timestamp=1_000, now=7.0)
    >>> pace.due(61_000)
    8.0
    """

    def __init__(self, speed: float, timestamp: int, now: float) -> None:
        self._speed = speed
        self._first_timestamp = timestamp
        self._start_time = now

    def due(self, timestamp: int) -> float:
        """Return the time at which an event has to be sent, in seconds of the clock of `now`."""
        return self._start_time + (timestamp - self._first_timestamp) / 1000 / self._speed


class Replay:
    """A replay of events into the two input topics.

    Parameters
    ----------
    events
        Events to send.
    kafka
        Address of Kafka and prefix of the topics.
    stream
        Definition of the stream, by which the messages are made.
    registry
        Has the schemas of inputs that are not plain JSON; None where there are none.
    resume
        Skip the records that the topics hold already.
    ack_timeout
        Seconds without any acknowledgement after which the replay fails.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        A topic is missing, or the two have different numbers of partitions.
    DataError
        There is no event to send, or with `resume` the topics hold something else than the beginning of
        this replay.
    ConfigError, RegistryError
        The schema of an input does not fit its definition, or the registry does not answer.
    """

    def __init__(
        self,
        events: Events,
        kafka: Kafka,
        *,
        stream: Stream = KUAIREC,
        registry: SchemaRegistry | None = None,
        resume: bool = False,
        ack_timeout: float = 120.0,
    ) -> None:
        if len(events) == 0:
            raise DataError(f"none of the {events.rows:,} rows can be used: {events.reasons}")
        self._kafka = kafka
        self._ack_timeout = ack_timeout
        self._log = InputLog(kafka, stream)
        self._messages: MessageWriter
        if registry is None:
            self._messages = writer_of(stream)
        else:
            self._messages = RegistryWriter(stream, self._log.topics, registry)
        self._schedule = Schedule(events, self._log.partitions, self._messages.key_column)
        self._initial_tails = self._log.tails()
        self.order = self._schedule.order
        """Numbers of the records to send, see `Schedule`."""
        if resume:
            self.order = remaining_records(
                self._schedule, self._log.topics, self._initial_tails, stream, schemas=registry
            )

    @property
    def there_before(self) -> int:
        """Number of records that the topics held before."""
        return sum(tail.end for of_topic in self._initial_tails for tail in of_topic)

    def run(
        self, speed: float | None, stop: Event, progress: Callable[[int], None] = lambda _: None
    ) -> Summary:
        """Send all records, or until `stop` is set; wait until all that were sent are acknowledged.

        Parameters
        ----------
        speed
            Multiple of real time; None for as fast as possible.
        stop
            Ends the replay early.
        progress
            Called with the number of records sent.

        Returns
        -------
        Summary
            Figures of this replay.

        Raises
        ------
        BrokerError
            The broker refuses records, or acknowledges none for `ack_timeout` seconds.
        StateError
            Another program wrote to the topics at the same time.
        """
        sender = Sender(self._kafka, self._ack_timeout)
        begin = time.monotonic()
        pace: Pace | None = None
        for moment, topic, key, value in self.records():
            if speed:
                pace = pace or Pace(speed, moment, begin)
                _wait(sender, pace.due(moment), stop)
            if stop.is_set():
                break
            sender.send(topic, key, value, moment)
            if sender.sent % CHUNK_SIZE == 0 or speed:
                sender.poll()
                progress(sender.sent)
        sender.flush()
        progress(sender.sent)
        return self._summary(sender.sent, time.monotonic() - begin)

    def records(self) -> Iterator[tuple[int, str, bytes, bytes]]:
        """Yield the time (milliseconds), topic, key and value of each record to send."""
        count = len(self._schedule.events)
        messages = self._messages
        frame = self._schedule.events.frame.select(messages.columns)
        places = map(messages.columns.index, (messages.key_column, "timestamp", "label_timestamp"))
        key_at, time_at, known_at = places
        interactions, labels = self._log.topics
        for start in range(0, len(self.order), CHUNK_SIZE):
            records = self.order[start : start + CHUNK_SIZE]
            rows = frame[records % count].iter_rows()
            for is_label, row in zip((records >= count).tolist(), rows, strict=True):
                key = str(row[key_at]).encode()
                if is_label:
                    yield row[known_at], labels, key, messages.label(row)
                else:
                    yield row[time_at], interactions, key, messages.interaction(row)

    def _summary(self, sent: int, seconds: float) -> Summary:
        events = self._schedule.events
        counts = count_by_partition(self._schedule, self.order[:sent])
        self._verify(counts)
        interactions, labels = (int(of_topic.sum()) for of_topic in counts)
        return Summary(
            rows=events.rows,
            skipped=events.skipped,
            events=len(events),
            there_before=self.there_before,
            interactions=interactions,
            labels=labels,
            seconds=seconds,
            events_per_s=interactions / seconds,
            complete=sent == len(self.order),
        )

    def _verify(self, sent: tuple[Integers, Integers]) -> None:
        """Raise an error unless each partition grew by the records that were sent to it, and no others."""
        parts = zip(self._log.topics, self._initial_tails, self._log.tails(), sent, strict=True)
        for topic, before, after, counts in parts:
            grown = [end.end - begin.end for begin, end in zip(before, after, strict=True)]
            if grown != counts.tolist():
                raise StateError(
                    f"{topic}: {counts.tolist()} records were sent to its partitions, but they grew by "
                    f"{grown}. Another program writes there too, perhaps another replay; start again in new "
                    "topics, with another --prefix"
                )


def _wait(sender: Sender, due: float, stop: Event) -> None:
    while (left := due - time.monotonic()) > 0 and not stop.is_set():
        sender.poll(min(left, STOP_CHECK_INTERVAL))
