"""Restore a task from committed offsets: the state record, the snapshot, and the log since."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

import msgspec

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.committed import CommittedPosition
from pipeline.kafka.log import LogReader, read_decoded, read_until
from pipeline.kafka.topics import Topics, topics_of
from pipeline.model.label_policy import label_policy
from pipeline.model.model import Model
from pipeline.records.outputs import Prediction
from pipeline.recovery.outcome_reader import read_outcomes
from pipeline.recovery.restoration import TaskRestorer
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.recovery.state_reader import read_snapshot, read_state
from pipeline.task.record_queue import Position
from pipeline.task.sharing import Outbox
from pipeline.task.task import Task

_PREDICTIONS = msgspec.json.Decoder(Prediction)


def recover(
    partition: int,
    position: CommittedPosition,
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
    with LogReader(config.kafka, patience) as log:
        if position.state_offset is None:
            _refuse_existing_outputs(log, topics, partition)
            model = new_model()
            task = Task(
                partition, model, config.join, Position(position.interactions), Position(position.labels)
            )
            task.outbox = _outbox(partition, settings, config, since=0)
            task.policy = label_policy(config.labels)
            yield task
            return
        state = read_state(log, topics, partition, position)
        refuse_other_settings(state, settings)
        model, state = read_snapshot(log, topics, state, new_model)
        task = Task(partition, model, config.join, state.interactions, state.labels)
        since = state.outcomes if state.published is None else state.published
        task.outbox = _outbox(partition, settings, config, since)
        task.policy = label_policy(config.labels)
        restoration = TaskRestorer(task, state)
        yield restoration.left
        begin = min(state.snapshot.outcome_offset if state.snapshot else 0, state.outcome_offset)
        chunks = read_outcomes(log, topics.outcomes, partition, begin)
        for outcomes in read_until(chunks, lambda: restoration.remaining_outcomes, patience):
            restoration.outcomes(*outcomes)
            yield restoration.left
        slices = read_decoded(log, _PREDICTIONS, topics.predictions, partition, state.prediction_offset)
        for predictions in read_until(slices, lambda: restoration.remaining_predictions, patience):
            restoration.predictions(*predictions)
            yield restoration.left
        yield restoration.finish()


def _outbox(partition: int, settings: Mapping[str, str], config: Config, since: int) -> Outbox | None:
    """Make the outbox of a partition; None if it shares nothing."""
    partitions, interval = int(settings["partitions"]), config.sharing.interval
    if interval is None or partitions == 1:
        return None
    return Outbox(partition, partitions, interval, since)


def _refuse_existing_outputs(log: LogReader, topics: Topics, partition: int) -> None:
    for topic in topics.outputs:
        if topic == topics.dead_letters:
            continue
        if not log.empty(topic, partition):
            raise StateError(
                f"the group has no committed offsets for partition {partition}, but {topic} holds records: "
                "they belong to another group, or this group's offsets were deleted or have expired. Use the "
                "group that wrote them, or another kafka.prefix"
            )
