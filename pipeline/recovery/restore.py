"""Restore a task from committed offsets: the state record, the snapshot, and the log since."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import StateError
from pipeline.features.feature_set import FeatureSet
from pipeline.join.spill import SpilledPredictions
from pipeline.kafka.committed import CommittedPosition
from pipeline.kafka.output_values import OutputValues
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader
from pipeline.model.label_policy import label_policy
from pipeline.model.model import Model
from pipeline.model.settings_text import kind_from, target_from
from pipeline.records.decoding import InputDecoder
from pipeline.records.inputs import Label
from pipeline.records.output_types import OutputTypes
from pipeline.records.schemas import SchemaSource
from pipeline.recovery.libraries import (
    libraries_here,
    note_libraries,
    note_older_snapshot,
    warn_of_other_libraries,
)
from pipeline.recovery.restoration import TaskRestorer, WrittenTexts
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.recovery.signature import state_signer
from pipeline.recovery.state_reader import read_snapshot, read_state
from pipeline.recovery.table_rows import restore_tables
from pipeline.task.record_queue import Position
from pipeline.task.sharing import SharingSettings
from pipeline.task.state import Libraries
from pipeline.task.task import Task


def restore(
    partition: int,
    position: CommittedPosition,
    new_model: Callable[[], Model],
    settings: Mapping[str, str],
    config: Config,
    *,
    labels: InputDecoder[Label],
    schemas: SchemaSource | None = None,
    texts: WrittenTexts,
    spilled: SpilledPredictions | None = None,
) -> Generator[Task | int]:
    """Build the task of a partition. Yields how many records are left to read, and the task at last.

    Parameters
    ----------
    partition
        Number of the partition.
    position
        Where the group stands in it.
    new_model
        Makes a model that has learned nothing.
    settings
        What the outputs depend on.
    config
        The whole configuration.
    labels
        Decodes the labels that wait for their interaction.
    schemas
        Knows the schemas of outputs that are not plain JSON: see `pipeline.kafka.output_values.OutputValues`.
    texts
        Keeps texts of records that are read: see `pipeline.recovery.restoration.TaskRestorer`.
    spilled
        Takes predictions that have no room in memory; None to hold all in memory.

    Yields
    ------
    int or Task
        Records left to read; at last, the task.

    Raises
    ------
    SchemaUnavailableError
        If the schema of a label that waits, or of an output, is not known yet.
    StateError
        If what the topics hold does not fit together, or belongs to other settings.
    """
    topics = topics_of(config)
    features = FeatureSet.of(config.stream, kind_from(settings))
    patience = config.worker.transaction_timeout / 1000 + 10.0
    with LogReader(config.kafka, patience, OutputValues(topics, schemas), outlast=False) as reader:
        log = PartitionLog(reader, topics, partition)
        if position.state_offset is None:
            _refuse_existing_outputs(log)
            tables = yield from restore_tables(log, features.tables, None)
            task = Task(
                partition,
                new_model(),
                config.join,
                Position(position.interactions),
                Position(position.labels),
                policy=label_policy(config.labels, features),
                sharing=_sharing_settings(settings, config),
                spilled=spilled,
                tables=tables,
            )
            task.libraries = Libraries(dict(libraries_here()))
            yield task
            return
        state = read_state(log, position, state_signer(config.checkpoint, config.kafka), labels=labels)
        refuse_other_settings(state, settings)
        warn_of_other_libraries(state)
        state = note_libraries(state)
        named = state.snapshot
        model, state = read_snapshot(log, state, new_model)
        state = note_older_snapshot(state, named)
        tables = yield from restore_tables(log, features.tables, state)
        task = Task.restore(
            state,
            model,
            config.join,
            policy=label_policy(config.labels, features),
            sharing=_sharing_settings(settings, config),
            spilled=spilled,
            labels=labels,
            tables=tables,
        )
        restoration = TaskRestorer(task, state, texts, config.stream.interactions.max_items)
        yield restoration.left
        yield from restoration.read(log)
        yield restoration.finish()


def _sharing_settings(settings: Mapping[str, str], config: Config) -> SharingSettings | None:
    """Return what is shared with the other partitions, if anything."""
    partitions = int(settings["partitions"])
    interval = config.sharing.interval_for(partitions)
    if interval is None:
        return None
    return SharingSettings(
        partitions,
        interval,
        FeatureSet.of(config.stream, kind_from(settings)),
        OutputTypes.of(config.stream),
        config.sharing.align,
        target_from(settings),
        config.stream.interactions.max_items if config.stream.has_slates else 1,
    )


def _refuse_existing_outputs(log: PartitionLog) -> None:
    for topic in log.topics.outputs:
        if topic == log.topics.dead_letters:
            continue
        if not log.empty(topic):
            raise StateError(
                f"the group has no committed offsets for partition {log.partition}, but {topic} holds "
                "records: they belong to another group, or this group's offsets were deleted or have "
                "expired. Use the group that wrote them, or another kafka.prefix"
            )
