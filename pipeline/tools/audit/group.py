"""The audit of all partitions, from Kafka."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.log import LogReader
from pipeline.kafka.topics import Topics, topics_of
from pipeline.model.factory import ModelFactory
from pipeline.model.label_policy import label_policy
from pipeline.model.model import Model
from pipeline.model.snapshot import unpack
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.tools.audit.committed_view import View
from pipeline.tools.audit.differences import AuditResult, Finding
from pipeline.tools.audit.epochs import SettingsEpochs
from pipeline.tools.audit.partition import audit
from pipeline.tools.audit.reading import CommittedCheckpoint, Meter, Reader, read_checkpoint
from pipeline.tools.audit.topic_records import AuditInput, PartitionRecords


class PartitionReport(msgspec.Struct, frozen=True):
    """What was checked in a partition, and what differs."""

    partition: int
    folded_from: int
    """Outcomes in the model with which the fold began; 0 is the start."""
    earlier_epochs: int
    """Eras that have ended, each with settings of its own, whose predictions were made by other models."""
    checked: dict[str, int]
    differences: int
    findings: list[Finding]
    """The first differences in each topic."""


class Report(msgspec.Struct, frozen=True):
    """The verdict."""

    differences: int
    partitions: list[PartitionReport]


def run_audit(config: Config, view: View, *, from_snapshot: bool, progress: Callable[[int], None]) -> Report:
    """Audit what a view shows.

    All state records and snapshots are read first, before a worker that goes on has written so many
    more that compaction may take them, and so that other settings are refused at once.

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
        The present outputs were made under other settings, or earlier ones by another version.
    """
    factory, meter, topics = ModelFactory(config), Meter(progress), topics_of(config)
    settings = factory.settings(view.partitions)
    cases = []
    with LogReader(config.kafka) as log:
        for partition in range(view.partitions):
            reader, result = Reader(config.kafka, view, partition, meter), AuditResult(partition)
            checkpoint = read_checkpoint(log, reader, topics, view.committed[partition], result)
            if checkpoint is not None:
                refuse_other_settings(checkpoint.state, settings)
            cases.append((reader, result, checkpoint))
    factory.warm_up()
    reports = []
    for reader, result, checkpoint in cases:
        folded_from, ended = 0, 0
        if checkpoint is not None:
            earlier = checkpoint.state.earlier
            models = [factory.with_saved_settings(epoch.settings).new_model() for epoch in earlier]
            current = _from_snapshot(factory, checkpoint, topics, result) if from_snapshot else None
            epochs = SettingsEpochs(earlier, models, current or factory.new_model())
            folded_from, ended = epochs.current.folded, len(earlier)
            audit(
                _audit_input(reader, topics, checkpoint),
                epochs,
                result,
                on_missing=config.join.on_missing,
                policy=label_policy(config.labels),
            )
        checked = dict(result.checked)
        reports.append(
            PartitionReport(
                result.partition, folded_from, ended, checked, result.differences, result.findings
            )
        )
    return Report(sum(report.differences for report in reports), reports)


def _from_snapshot(
    factory: ModelFactory, checkpoint: CommittedCheckpoint, topics: Topics, result: AuditResult
) -> Model | None:
    """The snapshot's model; None where there is none, or where none decodes, which is a difference."""
    model = factory.new_model()
    if checkpoint.snapshot is None or checkpoint.state.snapshot is None:
        return None
    try:
        unpack(checkpoint.snapshot, model)
    except StateError as error:
        offset = checkpoint.state.snapshot.chunks[0]
        result.add_difference(topics.checkpoints, offset, "a snapshot that decodes", str(error))
        return None
    return model


def _audit_input(reader: Reader, topics: Topics, checkpoint: CommittedCheckpoint) -> AuditInput:
    state = checkpoint.state
    return AuditInput(
        topics=topics,
        state=state,
        state_offset=checkpoint.state_offset,
        snapshot=checkpoint.snapshot,
        interactions=reader.sources(topics.interactions, state.interactions.offset),
        labels=reader.sources(topics.labels, state.labels.offset),
        predictions=reader.sources(topics.predictions),
        outcomes=reader.sources(topics.outcomes),
        dead_letters=reader.dead_letters(topics.dead_letters),
        requests=reader.sources(topics.label_requests)
        if topics.requests_labels
        else PartitionRecords((), 0, 0),
    )
