"""The audit of all partitions, from Kafka."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.log import Log
from pipeline.kafka.topics import Topics, topics_of
from pipeline.model.factory import Blueprint
from pipeline.model.label_policy import policy_of
from pipeline.model.model import Model
from pipeline.model.snapshot import unpack
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.tools.audit.committed_view import View
from pipeline.tools.audit.differences import Finding, Ledger
from pipeline.tools.audit.epochs import Eras
from pipeline.tools.audit.partition import audit
from pipeline.tools.audit.reading import Gathered, Meter, Reader, gather
from pipeline.tools.audit.topic_records import Evidence, Stretch


class PartitionReport(msgspec.Struct, frozen=True):
    """What was checked in a partition, and what differs."""

    partition: int
    folded_from: int
    """Outcomes in the model with which the fold began; 0 is the start."""
    earlier_eras: int
    """Eras that have ended, each with settings of its own, whose predictions were made by other models."""
    checked: dict[str, int]
    differences: int
    findings: list[Finding]
    """The first differences in each topic."""


class Report(msgspec.Struct, frozen=True):
    """The verdict."""

    differences: int
    partitions: list[PartitionReport]


def examine(config: Config, view: View, *, from_snapshot: bool, progress: Callable[[int], None]) -> Report:
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
    blueprint, meter, topics = Blueprint(config), Meter(progress), topics_of(config)
    settings = blueprint.settings(view.partitions)
    cases = []
    with Log(config.kafka) as log:
        for partition in range(view.partitions):
            reader, ledger = Reader(config.kafka, view, partition, meter), Ledger(partition)
            gathered = gather(log, reader, topics, view.committed[partition], ledger)
            if gathered is not None:
                refuse_other_settings(gathered.state, settings)
            cases.append((reader, ledger, gathered))
    blueprint.warm_up()
    reports = []
    for reader, ledger, gathered in cases:
        folded_from, ended = 0, 0
        if gathered is not None:
            earlier = gathered.state.earlier
            models = [blueprint.as_saved(era.settings).new_model() for era in earlier]
            present = _from_snapshot(blueprint, gathered, topics, ledger) if from_snapshot else None
            eras = Eras(earlier, models, present or blueprint.new_model())
            folded_from, ended = eras.present.folded, len(earlier)
            missing_teaches = config.join.on_missing == "negative"
            audit(
                _evidence(reader, topics, gathered),
                eras,
                ledger,
                teach_missing=missing_teaches,
                policy=policy_of(config.labels),
            )
        checked = dict(ledger.checked)
        reports.append(
            PartitionReport(
                ledger.partition, folded_from, ended, checked, ledger.differences, ledger.findings
            )
        )
    return Report(sum(report.differences for report in reports), reports)


def _from_snapshot(blueprint: Blueprint, gathered: Gathered, topics: Topics, ledger: Ledger) -> Model | None:
    """The snapshot's model; None where there is none, or where none decodes, which is a difference."""
    model = blueprint.new_model()
    if gathered.snapshot is None or gathered.state.snapshot is None:
        return None
    try:
        unpack(gathered.snapshot, model)
    except StateError as error:
        offset = gathered.state.snapshot.chunks[0]
        ledger.differs(topics.checkpoints, offset, "a snapshot that decodes", str(error))
        return None
    return model


def _evidence(reader: Reader, topics: Topics, gathered: Gathered) -> Evidence:
    state = gathered.state
    return Evidence(
        topics=topics,
        state=state,
        state_offset=gathered.state_offset,
        snapshot=gathered.snapshot,
        interactions=reader.sources(topics.interactions, state.interactions.offset),
        labels=reader.sources(topics.labels, state.labels.offset),
        predictions=reader.sources(topics.predictions),
        outcomes=reader.sources(topics.outcomes),
        dead_letters=reader.letters(topics.dead_letters),
        requests=reader.sources(topics.label_requests) if topics.asking else Stretch((), 0, 0),
    )
