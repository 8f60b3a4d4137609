"""Decode a state record, and refuse one that no worker can have written.

What restores a state goes through here, so nothing of a record is believed before. Each check is one of the
record alone: whether it agrees with the outputs is found when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from pipeline.config.stream import MAX_ITEMS
from pipeline.errors import StateError
from pipeline.log.decoding import DECODE_ERRORS
from pipeline.records.decoding import LABEL_DECODER, NO_TIMESTAMP, InputDecoder
from pipeline.records.fields import INTEGER_LIMIT
from pipeline.records.inputs import Label
from pipeline.records.nesting import shallow
from pipeline.task.record_queue import Position
from pipeline.task.state import CORRECTED, ITEMS, STATE_VERSION, SavedLabel, SnapshotReference, State

LATEST_TIME: Final = 2**54
"""Milliseconds. Stream time may go on after the last timestamp while the inputs are idle."""
MAX_WAITING_BYTES: Final = 768_000
"""Bytes of early labels, at most: the largest value of `join.early_bytes`."""
MAX_BYTES: Final = 8 * 2**20
"""Bytes of a state record, at most: eight times the default limit of brokers."""
RECOVER: Final = "Stop the group's workers and run `forks checkpoint recover`"
"""The remedy for a state record that cannot be used."""


class UnusableStateError(StateError):
    """A state record is lost, or no worker wrote it: `forks checkpoint recover` may find another way."""


class _Version(msgspec.Struct):
    version: int


_VERSIONS = msgspec.json.Decoder(_Version)
_STATES = msgspec.json.Decoder(State)


class StateOrigin(NamedTuple):
    """Where a state record was read."""

    topic: str
    partition: int
    offset: int
    labels: str
    """Name of the topic of the labels, where early labels came from."""
    decoder: InputDecoder[Label] = LABEL_DECODER
    """Decodes early labels."""

    def __str__(self) -> str:
        return f"{self.topic}, partition {self.partition}, offset {self.offset}"


class _FieldError(ValueError):
    """A field that no worker can have written; its text names the field and what is wrong."""


def decode_state(value: bytes, origin: StateOrigin) -> State:
    """Decode a state record.

    Parameters
    ----------
    value
        Its JSON.
    origin
        Where it was read: it has to be a record of this partition, and can name only what lies before it.

    Returns
    -------
    State
        The state record.

    Raises
    ------
    UnusableStateError
        No worker can have written it. The text names the field.
    StateError
        It is of another version.
    """
    if len(value) > MAX_BYTES:
        raise _not_of_a_worker(origin, f"it has {len(value)} bytes, more than {MAX_BYTES}")
    try:
        refuse_other_version(shallow(value), origin.partition)
    except DECODE_ERRORS as error:
        raise _not_of_a_worker(origin, error) from error
    try:
        state = _STATES.decode(value)
        _check(state, origin)
    except (*DECODE_ERRORS, _FieldError) as error:
        raise _not_of_a_worker(origin, error) from error
    return state


def refuse_other_version(value: bytes, partition: int) -> None:
    """Refuse a state record of another version, and so all that was written with it.

    Parameters
    ----------
    value
        Its JSON.
    partition
        Its partition, for the message.

    Raises
    ------
    StateError
        It is of another version.
    """
    version = _VERSIONS.decode(value).version
    if version != STATE_VERSION:
        remedy = (
            "A newer version of this program wrote it: upgrade to that one"
            if version > STATE_VERSION
            else "Use the version of this program that wrote it, or replay into new topics, with another "
            "kafka.prefix"
        )
        raise StateError(
            f"the state record of partition {partition} has version {version}, "
            f"this program reads version {STATE_VERSION}. {remedy} (docs/upgrading.md)"
        )


def _not_of_a_worker(origin: StateOrigin, error: Exception | str) -> UnusableStateError:
    return UnusableStateError(
        f"{origin}: no worker wrote this state record: {error}. Something else writes to this topic. "
        f"{RECOVER}"
    )


def _check(state: State, origin: StateOrigin) -> None:
    if state.partition != origin.partition:
        raise _FieldError(f"partition is {state.partition}")
    _check_counts(state)
    _check_times(state)
    _check_snapshots(state, origin)
    _check_waiting(state, origin)
    _check_epochs(state)
    _check_libraries(state)
    partitions = state.settings.get("partitions", "")
    limit = int(partitions) if partitions.isdecimal() else INTEGER_LIMIT
    for name, by_partition in (("taken", state.taken), ("windows", state.windows or {})):
        if by_partition and max(by_partition) >= limit:
            raise _FieldError(f"{name} names partition {max(by_partition)} of {partitions}")


def _check_counts(state: State) -> None:
    for name, count in _counts(state):
        if not 0 <= count < INTEGER_LIMIT:
            raise _FieldError(f"{name} is {count}")
    corrected = state.counters.get(CORRECTED, 0)
    closed, items = state.outcomes - corrected, state.counters.get(ITEMS)
    predicted, noun = (state.predictions, "predictions") if items is None else (items, "items")
    if not (0 <= closed <= predicted and state.pending == predicted - closed):
        raise _FieldError(
            f"pending is {state.pending}, with {predicted} {noun} and {state.outcomes} outcomes"
            + (f", {corrected} of them corrections" if corrected else "")
        )
    if not state.predictions <= predicted <= state.predictions * (1 if items is None else MAX_ITEMS):
        raise _FieldError(f"counters.{ITEMS} is {predicted}, with {state.predictions} predictions")
    waiting = state.pending if items is None else -(-state.pending // MAX_ITEMS)
    for name, count, most in (
        ("pending_from", state.pending_from, state.predictions - waiting),
        ("outcomes_from", state.outcomes_from, state.outcomes),
        ("published", state.published or 0, state.outcomes),
    ):
        if count > most:
            raise _FieldError(f"{name} is {count}, more than {most}")


def _counts(state: State) -> Iterator[tuple[str, int]]:
    """Yield all that counts records, or is an offset, by name."""
    for name in (
        "predictions",
        "outcomes",
        "pending",
        "pending_from",
        "outcomes_from",
        "prediction_offset",
        "outcome_offset",
    ):
        yield name, getattr(state, name)
    yield "interactions.offset", state.interactions.offset
    yield "labels.offset", state.labels.offset
    yield "interactions.behind", state.interactions.behind or 0
    yield "labels.behind", state.labels.behind or 0
    yield "published", state.published or 0
    yield from ((f"counters.{name}", count) for name, count in state.counters.items())
    yield from ((f"tables.{name}.offset", table.offset) for name, table in (state.tables or {}).items())
    yield from ((f"tables.{name}.rows", table.rows) for name, table in (state.tables or {}).items())
    yield from ((f"taken.{partition}", offset) for partition, offset in state.taken.items())


def _check_times(state: State) -> None:
    times: list[tuple[str, int | None]] = [("stream_time", state.stream_time)]
    for name, position in (("interactions", state.interactions), ("labels", state.labels)):
        times += _times(name, position)
    for name, time in times:
        if time is not None and not NO_TIMESTAMP <= time <= LATEST_TIME:
            raise _FieldError(f"{name} is {time}")


def _times(name: str, position: Position) -> list[tuple[str, int | None]]:
    return [(f"{name}.clock", position.clock), (f"{name}.ahead", position.ahead)]


def _check_snapshots(state: State, origin: StateOrigin) -> None:
    for name, reference in (("snapshot", state.snapshot), ("previous", state.previous)):
        if reference is not None:
            _check_reference(name, reference, state, origin)


def _check_reference(name: str, reference: SnapshotReference, state: State, origin: StateOrigin) -> None:
    chunks = reference.chunks
    if not chunks or chunks[0] < 0 or chunks[-1] >= origin.offset or not _ascend(chunks):
        raise _FieldError(
            f"{name}.chunks are not the ascending offsets of records before this one: {_truncated(chunks)}"
        )
    if reference.slot not in {0, 1}:
        raise _FieldError(f"{name}.slot is {reference.slot}, not 0 or 1")
    if reference.outcomes_learned > state.outcomes:
        raise _FieldError(f"{name}.folded is {reference.outcomes_learned}, with {state.outcomes} outcomes")
    if not 0 <= reference.outcome_offset < INTEGER_LIMIT:
        raise _FieldError(f"{name}.outcome_offset is {reference.outcome_offset}")
    if len(reference.sha256) != 64 or set(reference.sha256) - set("0123456789abcdef"):
        raise _FieldError(f"{name}.sha256 is {reference.sha256[:80]!r}")


def _ascend(numbers: Sequence[int]) -> bool:
    return all(left < right for left, right in pairwise(numbers))


def _truncated(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers[:5]))
    return listed if len(numbers) <= 5 else f"{listed} and {len(numbers) - 5} more"


def _check_waiting(state: State, origin: StateOrigin) -> None:
    """Check that early labels are valid messages of the partition, each once, and not too many."""
    size, events, last = 0, set(), -1
    for number, saved in enumerate(state.waiting):
        name = f"waiting[{number}]"
        if (saved.topic, saved.partition) != (origin.labels, origin.partition):
            raise _FieldError(f"{name} is of {saved.topic[:80]!r}, partition {saved.partition}")
        if not last < saved.offset < state.labels.offset:
            raise _FieldError(f"{name}.offset is {saved.offset}, with labels.offset {state.labels.offset}")
        last = saved.offset
        event_id, bytes_ = _check_label(name, saved, origin.decoder)
        size += bytes_
        if event_id in events:
            raise _FieldError(f"{name} is another label of event {event_id!r}")
        events.add(event_id)
    if size > MAX_WAITING_BYTES:
        raise _FieldError(f"waiting has {size} bytes, more than {MAX_WAITING_BYTES}")


def _check_label(name: str, saved: SavedLabel, decoder: InputDecoder[Label]) -> tuple[int | str, int]:
    """Return the event of an early label, and its size in bytes."""
    try:
        early = saved.restore(decoder)
    except DECODE_ERRORS as error:
        raise _FieldError(f"{name}.value is no label: {error}") from error
    key = decoder.key_of(early.label)
    if saved.key != str(key).encode():
        raise _FieldError(f"{name}.key is not that of {decoder.key_field} {key!r}")
    return early.label.event_id, early.source.size


def _check_libraries(state: State) -> None:
    predictions = 0
    for number, epoch in enumerate(state.libraries.earlier if state.libraries else ()):
        if not predictions <= epoch.predictions <= state.predictions or epoch.outcomes > state.outcomes:
            raise _FieldError(
                f"libraries.earlier[{number}] ends after {epoch.predictions} predictions and "
                f"{epoch.outcomes} outcomes"
            )
        predictions = epoch.predictions


def _check_epochs(state: State) -> None:
    predictions = outcomes = 0
    for number, epoch in enumerate(state.earlier):
        if epoch.predictions < predictions or epoch.outcomes < outcomes:
            raise _FieldError(f"earlier[{number}] ends before the epoch before it")
        predictions, outcomes = epoch.predictions, epoch.outcomes
    if predictions > state.predictions or outcomes > state.outcomes:
        raise _FieldError(f"earlier ends after {predictions} predictions and {outcomes} outcomes")
