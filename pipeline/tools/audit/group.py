"""Audit all partitions of a group, from Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from pipeline.config.settings import Config
from pipeline.config.topics import Topics, topics_of
from pipeline.errors import StateError
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader, Meter
from pipeline.model.factory import ModelFactory
from pipeline.model.label_policy import label_policy
from pipeline.model.model import Model
from pipeline.model.snapshot import unpack
from pipeline.recovery.libraries import Derivable, OtherLibraries, derivable_from, other_libraries
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.recovery.signature import state_signer
from pipeline.tools.audit.committed_view import View
from pipeline.tools.audit.differences import AuditResult, Finding
from pipeline.tools.audit.epochs import SettingsEpochs
from pipeline.tools.audit.partition import audit
from pipeline.tools.audit.reading import CommittedCheckpoint, Reader, read_checkpoint
from pipeline.tools.audit.score_index import IndexedLine, ScoreIndex
from pipeline.tools.audit.scores import NOT_DERIVED, SCORES_CHECKED, ScoreCheck
from pipeline.tools.audit.topic_records import AuditInput, PartitionRecords


class PartitionReport(msgspec.Struct, frozen=True):
    """The checks and the differences of one partition."""

    partition: int
    folded_from: int
    """Outcomes in the snapshot that learning began with; 0 without a snapshot."""
    earlier_epochs: int
    """Number of earlier epochs of settings, whose predictions were made by other models."""
    other_libraries: list[OtherLibraries]
    """Parts of the outputs that were computed with other libraries than this process has. Predictions of
    another arithmetic are not derived again."""
    checked: dict[str, int]
    differences: int
    findings: list[Finding]
    """First differences of each topic."""


class ScoreLogReport(msgspec.Struct, frozen=True):
    """What an audit found of a follower's log as a whole."""

    derived: int
    """Scores that were derived again."""
    not_derived: dict[str, int]
    """Number of lines that were not checked, by the reason."""
    first: str | None
    """The first line that cannot be read or belongs to no partition, and why."""


class Report(msgspec.Struct, frozen=True):
    """The result of an audit, as `forks audit --json` prints it."""

    differences: int
    partitions: list[PartitionReport]
    scores: ScoreLogReport | None = None
    """What was found of a follower's log; null if none was named."""


def run_audit(
    config: Config,
    view: View,
    *,
    from_snapshot: bool,
    scores: Path | None = None,
    progress: Callable[[int], None],
) -> Report:
    """Audit the records of a view.

    All state records and snapshots are read first: compaction may delete them while workers go on, and
    other settings are to be refused at once.

    Parameters
    ----------
    config
        Whole configuration. The settings that outputs depend on have to be those of the state records.
    view
        Offsets to read.
    from_snapshot
        Whether to start from the last snapshot of each partition instead of a new model. Partitions with
        outputs of another arithmetic always start from it: what was learned then has other bits.
    scores
        The log of a follower's answers, to derive them again; None for none.
    progress
        Function to call now and then with the number of records read.

    Returns
    -------
    Report
        Checks and differences of each partition.

    Raises
    ------
    StateError
        If outputs were made under other settings, or by a version that this one cannot read.
    DataError
        If the log cannot be read.
    """
    index = None if scores is None else ScoreIndex(scores, view.partitions)
    factory, meter, topics = ModelFactory(config), Meter(progress), topics_of(config)
    settings, signer = factory.settings(view.partitions), state_signer(config.checkpoint, config.kafka)
    checkpoints = []
    with LogReader(config.kafka) as single:
        for partition in range(view.partitions):
            reader, result = Reader(config.kafka, topics, view, partition, meter), AuditResult(partition)
            log = PartitionLog(single, topics, partition)
            checkpoint = read_checkpoint(log, reader, view.committed[partition], result, signer=signer)
            if checkpoint is not None:
                refuse_other_settings(checkpoint.state, settings)
            checkpoints.append((reader, result, checkpoint))
    factory.warm_up()
    reports = []
    for reader, result, checkpoint in checkpoints:
        folded_from, ended, others = 0, 0, []
        if checkpoint is not None:
            earlier = checkpoint.state.earlier
            models = [factory.with_saved_settings(epoch.settings).new_model() for epoch in earlier]
            whole = not from_snapshot and derivable_from(checkpoint.state) == Derivable(0, 0)
            current = None if whole else _from_snapshot(factory, checkpoint, topics, result)
            epochs = SettingsEpochs(earlier, models, current or factory.new_model())
            folded_from, ended = epochs.current.outcomes_learned, len(earlier)
            others = other_libraries(checkpoint.state)
            audit(
                _audit_input(reader, topics, checkpoint),
                epochs,
                result,
                join=config.join,
                policy=label_policy(config.labels, factory.features),
                scores=None if index is None else index.lines(reader.partition),
            )
        elif index is not None:
            _check_new_model(factory, index.lines(reader.partition), reader, topics, result)
        checked = dict(result.checked)
        reports.append(
            PartitionReport(
                result.partition, folded_from, ended, others, checked, result.differences, result.findings
            )
        )
    differences = sum(report.differences for report in reports)
    return Report(differences, reports, None if index is None else _score_report(index, reports))


def _check_new_model(
    factory: ModelFactory, lines: Iterator[IndexedLine], reader: Reader, topics: Topics, result: AuditResult
) -> None:
    """Check what followers have answered of a partition for which nothing is committed yet."""
    tables = [reader.table(topics.table(name)) for name in topics.stream.tables]
    check = ScoreCheck(lines, topics.stream, tables, result)
    check.check(0, SettingsEpochs((), (), factory.new_model()))
    check.finish()


def _score_report(index: ScoreIndex, reports: Sequence[PartitionReport]) -> ScoreLogReport:
    """Sum what was found of a follower's log over all partitions."""
    found = Counter[str]()
    for report in reports:
        found.update(report.checked)
    unchecked = {name: found[name] for name in NOT_DERIVED if found[name]}
    return ScoreLogReport(found[SCORES_CHECKED], unchecked | dict(index.unreadable), index.first)


def _from_snapshot(
    factory: ModelFactory, checkpoint: CommittedCheckpoint, topics: Topics, result: AuditResult
) -> Model | None:
    """Return the model of the snapshot; None without one, or if it does not decode (a difference)."""
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
        tables={name: reader.table(topics.table(name)) for name in topics.stream.tables},
        score_tables={name: reader.table(topics.table(name)) for name in topics.stream.tables},
    )
