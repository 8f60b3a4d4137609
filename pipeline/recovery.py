"""From committed offsets to a task: read the state record, the snapshot, and the log since."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple

import msgspec
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config import Config
from pipeline.errors import StateError
from pipeline.inlet import Position
from pipeline.log import Log, decoded
from pipeline.model import Model
from pipeline.policy import policy_of
from pipeline.raw import outcome_slices
from pipeline.records import Prediction
from pipeline.restoration import Restoration
from pipeline.settings import refuse_other_settings
from pipeline.sharing import Publication
from pipeline.slices import decoded_slices, read_until
from pipeline.snapshot import unpack
from pipeline.state import STATE_VERSION, SnapshotReference, State
from pipeline.task import Task
from pipeline.topics import Topics, topics_of

TIMEOUT = 30.0
"""Seconds to wait for the group's coordinator."""
PAUSE = 0.1
"""Seconds between two questions to a coordinator that is not ready."""
UNSETTLED = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
"""What brokers say while a group has no coordinator yet, or gets another one."""


class _Version(msgspec.Struct):
    version: int


_VERSIONS = msgspec.json.Decoder(_Version)
_STATES = msgspec.json.Decoder(State)
_PREDICTIONS = msgspec.json.Decoder(Prediction)
_log = structlog.get_logger()


class Start(NamedTuple):
    """Where a partition's inputs go on, and the state record that was committed with them."""

    interactions: int
    labels: int
    state_offset: int | None


def metadata(state_offset: int) -> str:
    """What is committed with the input offsets: where the state record is."""
    return f"state={state_offset}"


def committed(consumer: Consumer, places: list[TopicPartition]) -> dict[int, dict[str, TopicPartition]]:
    """What the consumer's group has committed, by partition and topic, in the order of the partitions.

    Raises
    ------
    KafkaException
        If the group's coordinator does not tell.
    """
    end = time.monotonic() + TIMEOUT
    while True:
        try:
            answered = consumer.committed(places, TIMEOUT)
            break
        except KafkaException as error:
            if error.args[0].code() not in UNSETTLED or time.monotonic() > end:
                raise
        time.sleep(PAUSE)
    found: dict[int, dict[str, TopicPartition]] = defaultdict(dict)
    for place in sorted(answered, key=lambda place: place.partition):
        if place.error is not None:
            raise KafkaException(place.error)
        found[place.partition][place.topic] = place
    return found


def start_from(
    places: dict[str, TopicPartition], topics: Topics, beginning: Callable[[TopicPartition], int]
) -> Start:
    """Where to start, by the group's committed offsets of one partition by topic, else from the beginning.

    Raises
    ------
    StateError
        If offsets were committed that no transaction of a worker wrote.
    """
    offsets, notes = {}, set()
    for topic in topics.inputs:
        place = places[topic]
        offsets[topic] = place.offset if place.offset >= 0 else beginning(place)
        notes.add(place.metadata or "" if place.offset >= 0 else None)
    interactions, labels = offsets[topics.interactions], offsets[topics.labels]
    if notes == {None}:
        return Start(interactions, labels, None)
    note = notes.pop()
    if notes or not note or not note.startswith("state="):
        raise StateError(
            f"the group's offsets of partition {places[topics.interactions].partition} were not committed "
            "by a worker: they carry no state. Take another kafka.group with another kafka.prefix, or delete "
            "the group's offsets and all outputs to start anew"
        )
    return Start(interactions, labels, int(note.removeprefix("state=")))


def recover(
    partition: int,
    start: Start,
    new_model: Callable[[], Model],
    settings: Mapping[str, str],
    config: Config,
) -> Generator[Task | int]:
    """Build the task of a partition. Yields how many records are left to read, and the task at last.

    Raises
    ------
    StateError
        If what the topics hold does not fit together, or belongs to other settings.
    """
    topics = topics_of(config)
    patience = config.worker.transaction_timeout / 1000 + 10.0
    with Log(config.kafka, patience) as log:
        if start.state_offset is None:
            _refuse_leftovers(log, topics, partition)
            model = new_model()
            task = Task(partition, model, config.join, Position(start.interactions), Position(start.labels))
            task.publication = _publication(partition, settings, config, since=0)
            task.policy = policy_of(config.labels)
            yield task
            return
        state = read_state(log, topics, partition, start)
        refuse_other_settings(state, settings)
        model, state = read_snapshot(log, topics, state, new_model)
        task = Task(partition, model, config.join, state.interactions, state.labels)
        since = state.outcomes if state.published is None else state.published
        task.publication = _publication(partition, settings, config, since)
        task.policy = policy_of(config.labels)
        restoration = Restoration(task, state)
        yield restoration.left
        begin = min(state.snapshot.outcome_offset if state.snapshot else 0, state.outcome_offset)
        place = TopicPartition(topics.outcomes, partition, begin)
        for outcomes in read_until(outcome_slices(log, place), lambda: restoration.outcomes_left, patience):
            restoration.outcomes(*outcomes)
            yield restoration.left
        place = TopicPartition(topics.predictions, partition, state.prediction_offset)
        for predictions in read_until(
            decoded_slices(log, _PREDICTIONS, place), lambda: restoration.predictions_left, patience
        ):
            restoration.predictions(*predictions)
            yield restoration.left
        yield restoration.finish()


def _publication(
    partition: int, settings: Mapping[str, str], config: Config, since: int
) -> Publication | None:
    """What the other partitions are to be told, if anything."""
    partitions, interval = int(settings["partitions"]), config.sharing.interval
    if interval is None or partitions == 1:
        return None
    return Publication(partition, partitions, interval, since)


def _refuse_leftovers(log: Log, topics: Topics, partition: int) -> None:
    for topic in topics.outputs:
        if topic == topics.dead_letters:
            continue
        if not log.empty(topic, partition):
            raise StateError(
                f"the group has no committed offsets for partition {partition}, but {topic} holds records: "
                "they belong to another group, or this group's offsets were deleted or have expired. Use the "
                "group that wrote them, or another kafka.prefix"
            )


def read_state(log: Log, topics: Topics, partition: int, start: Start) -> State:
    """The state record that was committed with the offsets.

    Raises
    ------
    StateError
        If it is not there, of another version, or of other offsets.
    """
    assert start.state_offset is not None
    message = log.at(topics.checkpoints, partition, start.state_offset)
    version = decoded(_VERSIONS, message).version
    if version != STATE_VERSION:
        raise StateError(
            f"the state record of partition {partition} has version {version}, "
            f"this program reads version {STATE_VERSION}. Use the program that wrote it, or replay into new "
            "topics, with another kafka.prefix"
        )
    state = decoded(_STATES, message)
    found = (state.interactions.offset, state.labels.offset)
    if found != (start.interactions, start.labels):
        raise StateError(
            f"the group's offsets of partition {partition} are {start[:2]}, but its state record was written "
            f"for {found}: the offsets were set by hand. Set them back to go on"
        )
    return state


def read_snapshot(
    log: Log, topics: Topics, state: State, new_model: Callable[[], Model]
) -> tuple[Model, State]:
    """The model of the latest snapshot that can be used, and the state record without those that cannot.

    If there is none at all, the model is one that has seen nothing, into which all outcomes are to be folded.
    """
    left = state.snapshots
    while left:
        model, reference = new_model(), left.pop(0)
        try:
            unpack(snapshot_bytes(log, topics, state.partition, reference), model)
        except StateError as error:
            instead = "trying the one before it" if left else "folding all outcomes instead"
            _log.warning(
                f"snapshot unusable, {instead}",
                partition=state.partition,
                outcomes=reference.folded,
                reason=str(error),
            )
        else:
            previous = left[0] if left else None
            return model, msgspec.structs.replace(state, snapshot=reference, previous=previous)
    return new_model(), msgspec.structs.replace(state, snapshot=None, previous=None)


def snapshot_bytes(log: Log, topics: Topics, partition: int, reference: SnapshotReference) -> bytes:
    """A snapshot as it was written.

    Raises
    ------
    StateError
        If a chunk is not there, or its bytes are not those that the state record names.
    """
    chunks = [log.at(topics.checkpoints, partition, offset).value() or b"" for offset in reference.chunks]
    data = b"".join(chunks)
    if hashlib.sha256(data).hexdigest() != reference.sha256:
        raise StateError("its bytes do not have the SHA-256 that the state record names")
    return data
