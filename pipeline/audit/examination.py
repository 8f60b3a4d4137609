"""The audit of all partitions, from Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import msgspec
from confluent_kafka import Message

from pipeline.audit.evidence import Buried, Evidence, Stretch
from pipeline.audit.ledger import Finding, Ledger
from pipeline.audit.partition import audit
from pipeline.audit.view import View
from pipeline.blueprint import Blueprint
from pipeline.config import Config
from pipeline.errors import StateError
from pipeline.letter import Headers, read_letter
from pipeline.log import Log
from pipeline.model import Model, warm_up
from pipeline.offsets import Place
from pipeline.records import Source
from pipeline.recovery import read_state, refuse_other_settings, snapshot_bytes, start_from
from pipeline.snapshot import unpack
from pipeline.state import State
from pipeline.topics import Topics


class PartitionReport(msgspec.Struct, frozen=True):
    """What was checked in a partition, and what differs."""

    partition: int
    folded_from: int
    """Outcomes in the model with which the fold began; 0 is the start."""
    checked: dict[str, int]
    differences: int
    findings: list[Finding]
    """The first differences in each topic."""


class Report(msgspec.Struct, frozen=True):
    """The verdict."""

    differences: int
    partitions: list[PartitionReport]


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

    def read(self) -> None:
        """Count one."""
        self._read += 1
        if self._read % 500 == 0:
            self._told(self._read)


def examine(config: Config, view: View, *, from_snapshot: bool, progress: Callable[[int], None]) -> Report:
    """Audit what a view shows.

    Parameters
    ----------
    config
        The whole configuration; what outputs depend on has to be as the state records have it.
    view
        How far to look.
    from_snapshot
        Fold from each partition's last snapshot, not from the start.
    progress
        Told how many records have been read.

    Raises
    ------
    StateError
        The outputs were made under other settings.
    """
    blueprint = Blueprint(config)
    warm_up(blueprint.learner)
    meter = Meter(progress)
    reports = []
    for number in range(view.partitions):
        with Log(config.kafka) as log:
            examination = _Examination(
                config, view, blueprint=blueprint, partition=number, log=log, meter=meter
            )
            reports.append(examination.run(from_snapshot))
    return Report(sum(report.differences for report in reports), reports)


class _Examination:
    """One partition: finds the state record and the snapshot, then hands the topics over to the audit."""

    def __init__(
        self, config: Config, view: View, *, blueprint: Blueprint, partition: int, log: Log, meter: Meter
    ) -> None:
        self._config = config
        self._topics = Topics(config.kafka.prefix)
        self._view = view
        self._blueprint = blueprint
        self._partition = partition
        self._log = log
        self._meter = meter
        self._ledger = Ledger(partition)

    def run(self, from_snapshot: bool) -> PartitionReport:
        """The partition's report. What keeps it from being audited at all is a difference as well."""
        model = self._blueprint.new_model()
        folded_from = 0
        found = self._state()
        if found is not None:
            state_offset, state = found
            refuse_other_settings(state, self._blueprint.settings(self._view.partitions))
            snapshot = self._snapshot(state)
            if from_snapshot and snapshot is not None:
                model = self._restored(snapshot, state)
                folded_from = model.folded
            missing_teaches = self._config.join.on_missing == "negative"
            evidence = self._evidence(state, state_offset, snapshot)
            audit(evidence, model, self._ledger, teach_missing=missing_teaches)
        ledger = self._ledger
        return PartitionReport(
            self._partition, folded_from, dict(ledger.checked), ledger.differences, ledger.findings
        )

    def _state(self) -> tuple[int, State] | None:
        """Offset and content of the state record that belongs to the committed offsets."""
        committed = self._view.committed[self._partition]
        try:
            start = start_from(committed, self._topics, lambda place: self._range(place.topic).start)
            if start.state_offset is None:
                self._find_leftovers()
                return None
            state = read_state(self._log, self._topics, self._partition, start)
        except StateError as error:
            expected = "offsets and a state record that a worker committed together"
            self._ledger.differs(self._topics.checkpoints, None, expected, str(error))
            return None
        self._find_later_records(start.state_offset)
        return start.state_offset, state

    def _find_leftovers(self) -> None:
        """Without committed offsets there is nothing that a worker wrote."""
        topics = self._topics
        for topic in (topics.predictions, topics.outcomes, topics.dead_letters, topics.checkpoints):
            for source in self._sources(topic, self._covered(topic)):
                expected = "no record, since the group has committed no offsets"
                self._ledger.differs(topic, source.offset, expected, f"key {source.key!r}")

    def _find_later_records(self, state_offset: int) -> None:
        """A worker's state record is the last thing that it writes into a transaction."""
        topic = self._topics.checkpoints
        place = Place(topic, self._partition)
        for message in self._log.read_to_end(*place, state_offset + 1):
            if (message.offset() or 0) >= self._covered(topic):
                return
            expected = f"nothing after the state record that is committed, at {state_offset}"
            self._ledger.differs(topic, message.offset(), expected, f"key {message.key()!r}")

    def _snapshot(self, state: State) -> bytes | None:
        """The bytes of the snapshot that the state record names."""
        if state.snapshot is None:
            return None
        self._ledger.checked["snapshots read, with their SHA-256"] += 1
        try:
            return snapshot_bytes(self._log, self._topics, self._partition, state.snapshot)
        except StateError as error:
            expected = f"a snapshot with SHA-256 {state.snapshot.sha256}"
            self._ledger.differs(self._topics.checkpoints, state.snapshot.chunks[0], expected, str(error))
            return None

    def _restored(self, snapshot: bytes, state: State) -> Model:
        """The snapshot's model; a new one where it cannot be read, which is a difference."""
        model = self._blueprint.new_model()
        try:
            unpack(snapshot, model)
        except StateError as error:
            assert state.snapshot is not None
            expected = "a snapshot that decodes"
            self._ledger.differs(self._topics.checkpoints, state.snapshot.chunks[0], expected, str(error))
            return self._blueprint.new_model()
        return model

    def _evidence(self, state: State, state_offset: int, snapshot: bytes | None) -> Evidence:
        topics = self._topics
        letters = (
            Buried(_source(message), read_letter(message)) for message in self._messages(topics.dead_letters)
        )
        return Evidence(
            topics=topics,
            state=state,
            state_offset=state_offset,
            snapshot=snapshot,
            interactions=self._stretch(topics.interactions, state.interactions.offset),
            labels=self._stretch(topics.labels, state.labels.offset),
            predictions=self._stretch(topics.predictions),
            outcomes=self._stretch(topics.outcomes),
            dead_letters=Stretch(
                letters, self._range(topics.dead_letters).start, self._covered(topics.dead_letters)
            ),
        )

    def _stretch(self, topic: str, stop: int | None = None) -> Stretch[Source]:
        return Stretch(self._sources(topic, stop), self._range(topic).start, self._covered(topic))

    def _sources(self, topic: str, stop: int | None = None) -> Iterator[Source]:
        return map(_source, self._messages(topic, stop))

    def _messages(self, topic: str, stop: int | None = None) -> Iterator[Message]:
        """Committed messages below `stop`, or of all the view; each topic has a client of its own."""
        offsets = self._range(topic)
        end = offsets.stop if stop is None else min(stop, offsets.stop)
        if offsets.start >= end:
            return
        with Log(self._config.kafka) as log:
            for message in log.read_to_end(topic, self._partition):
                if (message.offset() or 0) >= end:
                    return
                self._meter.read()
                yield message

    def _range(self, topic: str) -> range:
        return self._view.ranges[Place(topic, self._partition)]

    def _covered(self, topic: str) -> int:
        return self._view.covered[Place(topic, self._partition)]


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
