"""The state record and the snapshot that the committed offsets lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import TopicPartition

from pipeline.audit.ledger import Ledger
from pipeline.audit.reading import Reader
from pipeline.errors import StateError
from pipeline.log import Log
from pipeline.recovery import read_state, snapshot_bytes, start_from
from pipeline.state import State
from pipeline.topics import Topics


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
