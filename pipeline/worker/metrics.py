"""Take the metrics of a worker's partitions, for `pipeline.monitoring`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from forks import Forks, Health
from pipeline.config.settings import CHAMPION
from pipeline.model.model import Model
from pipeline.monitoring.counts import INPUTS
from pipeline.monitoring.metrics import InputMetrics, PartitionMetrics, RegistryMetrics, TableMetrics
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.task.live_tables import LiveTable
from pipeline.worker.clock import wall_clock
from pipeline.worker.partition import Partition
from pipeline.worker.source import ConsumerSource


def metrics_of(
    partitions: Iterable[Partition], source: ConsumerSource
) -> Callable[[Mapping[int, int]], Mapping[int, PartitionMetrics]]:
    """Return a function that takes the metrics of running partitions, given the sizes of their snapshots."""

    def take(sizes: Mapping[int, int]) -> Mapping[int, PartitionMetrics]:
        return {each.number: partition_metrics(each, source, sizes.get(each.number)) for each in partitions}

    return take


def partition_metrics(
    partition: Partition, source: ConsumerSource, snapshot_size: int | None
) -> PartitionMetrics:
    """Return the metrics of a running partition.

    Parameters
    ----------
    partition
        The partition.
    source
        What reads its inputs.
    snapshot_size
        Bytes of its last snapshot; None if this worker has written none.
    """
    task, throttle, number = partition.task, partition.throttle, partition.number
    join, statistics = task.join, task.model.statistics
    lags = source.lag(number, (task.interactions.position.offset, task.labels.position.offset))
    queues = zip(partition.queues, source.paused(number), source.held(number), lags, strict=True)
    inputs = [InputMetrics(len(queue), queue.bytes, paused, held, lag) for queue, paused, held, lag in queues]
    caught_up = all(queue.at_end and not len(queue) for queue in partition.queues)
    begun = task.stream_time != NO_TIMESTAMP
    return PartitionMetrics(
        inputs=dict(zip(INPUTS, inputs, strict=True)),
        stream_time_seconds=task.stream_time / 1000 if begun else None,
        event_time_lag_seconds=_event_time_lag(task.stream_time, caught_up=caught_up) if begun else None,
        pending_predictions=join.pending_count,
        closed_events=len(join.closed),
        early_labels=len(join.early_labels),
        early_label_bytes=join.early_labels.bytes,
        published_outcomes=task.outbox.since if task.outbox else 0,
        outcomes_of_others=task.inbox.outcomes,
        held_share_bytes=task.inbox.bytes,
        asked_labels=task.counters["asked"],
        unasked_labels=task.counters["unasked"],
        dead_letters_this_minute=throttle.dead_letters,
        held_back=throttle.active,
        snapshot_age_seconds=partition.snapshot_age,
        snapshot_outcomes_behind=partition.outcomes_since_snapshot,
        snapshot_size_bytes=snapshot_size,
        entities={name: len(table) for name, table in statistics.named_tables()},
        categories=None if task.model.sparse is None else task.model.sparse.rows,
        compared=task.comparison.learner_metrics if task.comparison else {},
        tables={table.features.name: _table(table) for table in task.tables.tables},
        sketches=_sketches(task.model),
    )


def _table(table: LiveTable) -> TableMetrics:
    return TableMetrics(len(table.rows), len(table.queue), table.applied, table.rejected, table.lost_versions)


def _event_time_lag(stream_time: int, *, caught_up: bool) -> float:
    return 0.0 if caught_up else max(0, wall_clock() - stream_time) / 1000


def _sketches(model: Model) -> dict[str, Health]:
    """Return the health of the champion, and of the challengers that are FORKS."""
    learners = {CHAMPION: model.learner} | {
        name: shadow.learner for name, shadow in model.challengers.items()
    }
    return {name: learner.health() for name, learner in learners.items() if isinstance(learner, Forks)}


def registry_metrics(source: ConsumerSource) -> RegistryMetrics | None:
    """Return what the schema registry has answered; None where no input needs one."""
    lookup = source.lookup
    if lookup is None:
        return None
    lookups = {"found": lookup.found, "unknown": lookup.unknown, "failed": lookup.failed}
    return RegistryMetrics(lookup.away, lookups)
