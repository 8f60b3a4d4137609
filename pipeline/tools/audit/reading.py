"""Read one partition of the outputs and its committed checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from confluent_kafka import Message, TopicPartition

from pipeline.config.tree import Kafka
from pipeline.errors import StateError
from pipeline.kafka.committed import start_from
from pipeline.kafka.log import Log
from pipeline.kafka.offsets import Place
from pipeline.kafka.topics import Topics
from pipeline.records.dead_letter import Headers, read_letter
from pipeline.records.inputs import Source
from pipeline.recovery.state_reader import read_state, snapshot_bytes
from pipeline.task.state import State
from pipeline.tools.audit.committed_view import View
from pipeline.tools.audit.differences import Ledger
from pipeline.tools.audit.topic_records import Buried, Stretch


class Gathered(NamedTuple):
    """What a restart would begin with.

    Attributes
    ----------
    state_offset
        Where the state record is.
    state
        The state record.
    snapshot
        The bytes of the snapshot that it names; None if it names none or they are not there.
    """

    state_offset: int
    state: State
    snapshot: bytes | None


def gather(
    log: Log, reader: Reader, topics: Topics, committed: Mapping[str, TopicPartition], ledger: Ledger
) -> Gathered | None:
    """Read what the offsets of one partition lead to; what keeps from that is noted as a difference.

    Parameters
    ----------
    log
        To read single records with.
    reader
        Of the partition.
    topics
        Their names.
    committed
        The group's offsets, by input.
    ledger
        Where to note what differs.

    Returns
    -------
    Gathered or None
        None if nothing was committed, or not as a worker does it.
    """
    try:
        start = start_from(dict(committed), topics, lambda place: reader.begin(place.topic))
        if start.state_offset is None:
            _find_leftovers(reader, topics, ledger)
            return None
        state = read_state(log, topics, reader.partition, start)
    except StateError as error:
        expected = "offsets and a state record that a worker committed together"
        ledger.differs(topics.checkpoints, None, expected, str(error))
        return None
    _find_later_records(log, reader, topics, start.state_offset, ledger)
    return Gathered(start.state_offset, state, _snapshot(log, reader, topics, state, ledger))


def _find_leftovers(reader: Reader, topics: Topics, ledger: Ledger) -> None:
    """Without committed offsets there is nothing that a worker wrote."""
    for topic in topics.outputs:
        if topic == topics.shared:  # what it holds may be gone, and is in outcomes
            continue
        for source in reader.sources(topic, reader.covered(topic)).items:
            expected = "no record, since the group has committed no offsets"
            ledger.differs(topic, source.offset, expected, f"key {source.key!r}")


def _find_later_records(log: Log, reader: Reader, topics: Topics, state_offset: int, ledger: Ledger) -> None:
    """The state record is the last that a worker writes into a transaction."""
    topic = topics.checkpoints
    for message in log.read_to_end(topic, reader.partition, state_offset + 1):
        if (message.offset() or 0) >= reader.covered(topic):
            return
        expected = f"nothing after the state record that is committed, at {state_offset}"
        ledger.differs(topic, message.offset(), expected, f"key {message.key()!r}")


def _snapshot(log: Log, reader: Reader, topics: Topics, state: State, ledger: Ledger) -> bytes | None:
    if state.snapshot is None:
        return None
    ledger.checked["snapshots read, with their SHA-256"] += 1
    try:
        return snapshot_bytes(log, topics, reader.partition, state.snapshot)
    except StateError as error:
        expected = f"a snapshot with SHA-256 {state.snapshot.sha256}"
        ledger.differs(topics.checkpoints, state.snapshot.chunks[0], expected, str(error))
        return None


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
