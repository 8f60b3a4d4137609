"""Recover a partition whose committed state record is lost or cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeVar

import msgspec

from pipeline.errors import StateError
from pipeline.kafka.committed import position_of
from pipeline.kafka.log import LogReader, decode_record
from pipeline.model.factory import ModelFactory
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.dead_letter import DeadLetterHeaders, read_dead_letter
from pipeline.records.inputs import RawMessage
from pipeline.records.outputs import Outcome, Prediction, Share
from pipeline.recovery.state_check import UnusableStateError
from pipeline.recovery.state_reader import state_of
from pipeline.task.state import State, counters
from pipeline.tools.audit.state_check import UNRECORDED
from pipeline.tools.checkpoint.group import Group
from pipeline.tools.checkpoint.input_summary import InputSummary
from pipeline.tools.checkpoint.installing import NewCheckpoint, NewSnapshot, write_checkpoints
from pipeline.tools.checkpoint.output_summary import OutputSummary

PROGRESS_EVERY = 1_000
"""Outcomes between two calls of the progress function."""

_PREDICTIONS = msgspec.json.Decoder(Prediction)
_OUTCOMES = msgspec.json.Decoder(Outcome)
_SHARES = msgspec.json.Decoder(Share)

Record = TypeVar("Record")


class Recovered(msgspec.Struct, frozen=True):
    """What a partition continues from."""

    partition: int
    source: Literal["nothing committed", "usable", "found", "derived"]
    """Whether nothing had to be done; or its state record was found again, or derived from the topics."""
    outcomes: int
    """Outcomes that the state record counts."""
    reason: str | None = None
    """Why the committed state record cannot be used; None if it can."""


class _Lost(NamedTuple):
    """A partition without a usable state record."""

    partition: int
    offsets: tuple[int, int]
    """Committed offsets of interactions and labels."""
    reason: str


def recover(group: Group, progress: Callable[[int], None], partition: int | None = None) -> list[Recovered]:
    """Let a group continue in the partitions whose state record cannot be used.

    The newest state record of the committed offsets is written again, if there is one. Else the state is
    derived from all outputs and the processed inputs: the model learns all outcomes, and each message has to
    be accounted for. All partitions are committed in one transaction. Input offsets stay as they are.

    Parameters
    ----------
    group
        Group without members.
    progress
        Function to call now and then with the number of outcomes learned.
    partition
        The only partition to look at; None for all.

    Returns
    -------
    list of Recovered
        What each partition continues from.

    Raises
    ------
    ConfigError
        There is no such partition.
    StateError
        The group has members, or a state cannot be derived. Nothing has changed then.
    """
    group.refuse_members()
    recovered, checkpoints, lost = [], [], []
    for number in range(group.partitions) if partition is None else [partition]:
        found = _committed(group, number)
        if isinstance(found, Recovered):
            recovered.append(found)
            continue
        state, last = _find(group, found)
        if state is not None:
            checkpoint = NewCheckpoint(state, None)
        else:
            checkpoint = _Derivation(group, found, last).checkpoint(progress)
        source: Literal["found", "derived"] = "derived" if state is None else "found"
        recovered.append(Recovered(number, source, checkpoint.state.outcomes, found.reason))
        checkpoints.append(checkpoint)
        lost.append(found)

    def unchanged() -> bool:
        return all(_committed_offsets(group, each.partition) == each.offsets for each in lost)

    if checkpoints:
        write_checkpoints(group, checkpoints, unchanged)
    return recovered


def _committed(group: Group, partition: int) -> Recovered | _Lost:
    """Return what a partition continues from, or that its state record cannot be used."""
    try:
        found = group.committed_state(partition)
    except StateError as error:
        offsets = _committed_offsets(group, partition)
        lost = isinstance(error, UnusableStateError) or not _names_a_state(group, partition)
        if offsets is None or not lost:
            raise
        return _Lost(partition, offsets, str(error))
    if found is None:
        return Recovered(partition, "nothing committed", 0)
    return Recovered(partition, "usable", found.state.outcomes)


def _names_a_state(group: Group, partition: int) -> bool:
    """Whether the committed offsets name a state record."""
    try:
        position_of(partition, group.committed_offsets([partition])[partition], group.topics, lambda _: 0)
    except StateError:
        return False
    return True


def _committed_offsets(group: Group, partition: int) -> tuple[int, int] | None:
    """Return the committed offsets of both inputs; None if one has none."""
    committed = group.committed_offsets([partition])[partition]
    interactions, labels = (committed[topic].offset for topic in group.topics.inputs)
    return None if interactions is None or labels is None else (interactions, labels)


def _find(group: Group, lost: _Lost) -> tuple[State | None, State | None]:
    """Return the newest state record of the committed offsets, and the newest of any offsets."""
    newest = None
    matching = None
    for message in group.log.read_to_end(group.topics.checkpoints, lost.partition):
        try:
            state = state_of(message, group.topics, lost.partition, group.signer)
        except StateError:  # a chunk, or a record of another writer
            continue
        newest = state
        if (state.interactions.offset, state.labels.offset) == lost.offsets:
            matching = state
    return matching, newest


class _Derivation:
    """Derivation of a state from the topics of a partition.

    Parameters
    ----------
    group
        Group whose configuration is that of its workers.
    lost
        The partition.
    last
        The last usable state record, of earlier offsets, if there is one: it has what no output tells.
    """

    def __init__(self, group: Group, lost: _Lost, last: State | None) -> None:
        self._group = group
        self._lost = lost
        self._last = last
        factory = ModelFactory(group.config)
        self._settings = factory.settings(group.partitions)
        self._model: Model = factory.new_model()
        if last is not None and last.settings != self._settings:
            raise StateError(
                f"partition {lost.partition}: the last usable state record has other settings than this "
                "configuration. Give this command the workers' settings"
            )
        since = last.earlier[-1].predictions if last is not None and last.earlier else 0
        self._outputs = OutputSummary(lost.partition, self._model, group.config.join, since)

    def checkpoint(self, progress: Callable[[int], None]) -> NewCheckpoint:
        """Read all topics, and return the state record and the snapshot to write."""
        topics, (interactions, labels) = self._group.topics, self._lost.offsets
        with self._reader() as predictions, self._reader() as outcomes:
            for learned in self._outputs.read(
                self._records(predictions, topics.predictions, _PREDICTIONS),
                self._records(outcomes, topics.outcomes, _OUTCOMES),
            ):
                if learned % PROGRESS_EVERY == 0:
                    progress(learned)
        join = self._group.config.join
        inputs = InputSummary(self._outputs, self._dead_letters(), join)
        inputs.read_interactions(topics.interactions, self._messages(topics.interactions), interactions)
        inputs.read_labels(topics.labels, self._messages(topics.labels), labels)
        state = self._state(inputs)
        folded, offset = state.outcomes, self._outputs.outcome_offsets.floor(state.outcomes)
        return NewCheckpoint(state, NewSnapshot(pack(self._model), 0, folded, offset))

    def _state(self, inputs: InputSummary) -> State:
        last, topics = self._last, self._group.topics
        waiting = inputs.waiting()
        stream_time = max(inputs.stream_time, -1 if last is None else last.stream_time)
        published = self._published()
        fields = self._outputs.finish(stream_time, published)
        counted = counters() + self._outputs.counters + inputs.counters
        counted["predictions"] = self._outputs.predictions
        for name in UNRECORDED:
            counted[name] = 0 if last is None else last.counters.get(name, 0)
        counted["early"] = max(counted["early"], len(waiting))
        return State(
            partition=self._lost.partition,
            settings=self._settings,
            stream_time=stream_time,
            interactions=inputs.positions[topics.interactions],
            labels=inputs.positions[topics.labels],
            snapshot=None,
            waiting=waiting,
            counters={name: counted[name] for name in counters()},
            earlier=[] if last is None else last.earlier,
            published=published,
            taken=self._taken(),
            **fields,
        )

    def _published(self) -> int | None:
        """Return the end of the partition's last share; None where nothing is shared."""
        if self._group.config.sharing.interval is None or self._group.partitions == 1:
            return None
        ends = [share.until for _, share in self._shares(self._lost.partition)]
        before = self._last.published if self._last is not None else 0
        return max(ends, default=before or 0)

    def _taken(self) -> dict[int, int]:
        """Return the offset after the last share that was learned, by other partition."""
        taken = {}
        for partition, until in sorted(self._outputs.learned.items()):
            offsets = [offset for offset, share in self._shares(partition) if share.until <= until]
            if offsets:
                taken[partition] = offsets[-1] + 1
        return taken

    def _shares(self, partition: int) -> Iterator[tuple[int, Share]]:
        group = self._group
        for message in group.log.read_to_end(group.topics.shared, partition):
            yield message.offset() or 0, decode_record(_SHARES, message)

    def _reader(self) -> LogReader:
        return LogReader(self._group.config.kafka, self._group.log.patience)

    def _records(
        self, log: LogReader, topic: str, decoder: msgspec.json.Decoder[Record]
    ) -> Iterator[tuple[int, Record]]:
        for message in log.read_to_end(topic, self._lost.partition):
            yield message.offset() or 0, decode_record(decoder, message)

    def _messages(self, topic: str) -> Iterator[RawMessage]:
        return map(RawMessage.of, self._group.log.read_to_end(topic, self._lost.partition))

    def _dead_letters(self) -> Iterator[DeadLetterHeaders]:
        topic = self._group.topics.dead_letters
        return map(read_dead_letter, self._group.log.read_to_end(topic, self._lost.partition))
