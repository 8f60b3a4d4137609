"""The state of a worker that its status page and `forks top` show: `/v1/status` and `/v1/history`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from pipeline.monitoring.counts import FAULTS, INPUTS, STATUSES, Counts
from pipeline.monitoring.explanations import ExplainedPrediction
from pipeline.monitoring.histogram import Histogram
from pipeline.monitoring.history import INTERVAL, TOPICS, event_time_lag_of, lag_of, records_of
from pipeline.monitoring.metrics import Sample, WorkerMetrics
from pipeline.monitoring.quality import LearnerQuality, error_of, pooled
from pipeline.monitoring.readiness import Reason, Vitals

RECENT: Final = 12
"""Intervals of samples over which rates and latencies of `Status` are: a minute."""


class RateStatus(msgspec.Struct):
    """Records of a topic."""

    total: int
    """Committed since the process has started."""
    per_second: float | None
    """In the last minute; None before there are two samples."""


class LagStatus(msgspec.Struct):
    """How far the worker is behind its inputs."""

    interactions: int | None
    """Records; None where no client knows."""
    labels: int | None
    event_time_s: float | None
    """Of the partition that is furthest behind; None before the first message."""


class QualityStatus(msgspec.Struct):
    """Quality of all learners and baselines."""

    measure: str | None
    """`mistakes`, or `mean_absolute_error` where numbers are predicted; None before the first label."""
    events: int
    """Labelled events in the windows of all partitions."""
    learners: list[LearnerQuality]
    drift_alarms: int


class JoinStatus(msgspec.Struct):
    """What became of predictions and labels."""

    outcomes: dict[str, int]
    """By status."""
    waiting_predictions: int
    early_labels: int
    """Labels that wait for their interaction."""
    dead_letters: dict[str, int]
    """By reason, those that there are."""
    duplicates: int
    crowded_out: int


class LatencyStatus(msgspec.Struct):
    """Quantiles of a duration, in seconds, as far as the buckets of its histogram tell."""

    count: int = 0
    p50: float | None = None
    """None where it is above all bounds, or where nothing was observed."""
    p90: float | None = None
    p99: float | None = None
    largest_bound: float = 0.0

    @classmethod
    def of(cls, found: Histogram | None) -> LatencyStatus:
        """Return the quantiles of a histogram."""
        if found is None:
            return cls()
        p50, p90, p99 = map(found.quantile, (0.5, 0.9, 0.99))
        return cls(sum(found.counts), p50, p90, p99, found.bounds[-1])


class PartitionStatus(msgspec.Struct):
    """A partition that the worker has had."""

    number: int
    state: str
    records_left: int | None
    """Records to be read until it is restored."""
    lag_interactions: int | None = None
    """None where the partition is not running, as all that is None; or where no client knows."""
    lag_labels: int | None = None
    event_time_lag_s: float | None = None
    waiting_predictions: int | None = None
    predictions: int = 0
    outcomes: int = 0
    dead_letters: int = 0
    error: float | None = None
    """Of the champion: `QualityStatus.measure`."""
    snapshot_age_s: float | None = None
    held_back: bool = False
    """Whether it is paused because of too many dead letters."""


class Status(msgspec.Struct):
    """A worker at one moment."""

    worker: dict[str, str]
    """Its name, group, stream and versions."""
    time: float
    """Seconds since 1970."""
    uptime_s: float
    ready: bool
    reasons: list[Reason]
    loop_age_s: float
    records: dict[str, RateStatus]
    """By topic."""
    lag: LagStatus
    quality: QualityStatus
    joins: JoinStatus
    prediction_latency: LatencyStatus
    """From the time of the event to the commit of its prediction, in the last minute."""
    transactions: LatencyStatus
    """Durations since the process has started."""
    transaction_failures: int
    restarts: dict[str, int]
    """Sessions that ended with an error, by reason."""
    partitions: list[PartitionStatus]
    predictions: list[ExplainedPrediction]
    """Some of the latest that were committed, the newest first."""


class HistoryStatus(msgspec.Struct):
    """The last hour: columns of one number for each interval between two samples."""

    interval_s: float
    time: list[float]
    """The end of each interval, in seconds since 1970."""
    per_second: dict[str, list[float]]
    """Records by topic."""
    lag_records: list[int | None]
    event_time_lag_s: list[float | None]
    latency_p50_s: list[float | None]
    """None where no prediction was committed, or where it was later than all bounds; as the next."""
    latency_p99_s: list[float | None]
    error: dict[str, list[float | None]]
    """`QualityStatus.measure` by learner or baseline."""


def status_of(
    worker: WorkerMetrics,
    vitals: Vitals,
    reasons: Sequence[Reason],
    info: Mapping[str, str],
    *,
    now: float,
    clock: float,
    begun: float,
) -> Status:
    """Return the status of a worker.

    Parameters
    ----------
    worker, vitals
        What it has last said of itself.
    reasons
        Why it is not ready.
    info
        What it is.
    now
        The time by the monotonic clock.
    clock
        The time in seconds since 1970.
    begun
        When the worker began to answer, by the monotonic clock.
    """
    recent = worker.history[-RECENT - 1 :]
    totals = records_of(worker.counts.values())
    return Status(
        worker=dict(info),
        time=clock,
        uptime_s=now - begun,
        ready=not reasons,
        reasons=[*reasons],
        loop_age_s=now - vitals.beat,
        records={
            topic: RateStatus(total, _per_second(recent[0], recent[-1], topic) if len(recent) > 1 else None)
            for topic, total in totals.items()
        },
        lag=LagStatus(lag_of(worker, "interactions"), lag_of(worker, "labels"), event_time_lag_of(worker)),
        quality=_quality(worker),
        joins=_joins(worker),
        prediction_latency=LatencyStatus.of(_observed(recent[0], recent[-1]) if len(recent) > 1 else None),
        transactions=LatencyStatus.of(worker.transaction_duration_seconds),
        transaction_failures=worker.transaction_failures,
        restarts=dict(worker.restarts),
        partitions=[_partition(number, worker) for number in sorted(worker.states)],
        predictions=[*worker.explanations],
    )


def history_of(samples: Sequence[Sample]) -> HistoryStatus:
    """Return the columns of samples, the oldest first.

    Parameters
    ----------
    samples
        The samples.
    """
    pairs, ends = [*pairwise(samples)], samples[1:]
    latencies = [LatencyStatus.of(_observed(before, after)) for before, after in pairs]
    learners = dict.fromkeys(name for after in ends for name in after.quality)
    return HistoryStatus(
        INTERVAL,
        [after.time for after in ends],
        {topic: [_per_second(before, after, topic) for before, after in pairs] for topic in TOPICS},
        [after.lag_records for after in ends],
        [after.event_time_lag for after in ends],
        [each.p50 for each in latencies],
        [each.p99 for each in latencies],
        {name: [after.quality.get(name) for after in ends] for name in learners},
    )


def _observed(before: Sample, after: Sample) -> Histogram | None:
    """Return the latencies that were observed between two samples."""
    if after.latency is None or before.latency is None:
        return after.latency
    return after.latency.since(before.latency)


def _per_second(before: Sample, after: Sample, topic: str) -> float:
    elapsed = max(after.time - before.time, 1e-3)  # the clock may have been set back
    return max(0, after.records[topic] - before.records[topic]) / elapsed


def _quality(worker: WorkerMetrics) -> QualityStatus:
    windows, alarms = pooled(worker.windows.values()), sum(each.alarms for each in worker.drift.values())
    learners = [*windows.learners.values()]
    measure = None
    if learners:
        measure = "mean_absolute_error" if learners[0].mistakes is None else "mistakes"
    return QualityStatus(measure, windows.events, learners, alarms)


def _joins(worker: WorkerMetrics) -> JoinStatus:
    outcomes, dead_letters = Counter[str](), Counter[str]()
    for each in worker.counts.values():
        outcomes.update(each.outcomes)
        dead_letters.update(each.dead_letters)
    return JoinStatus(
        {status: outcomes[status] for status in STATUSES},
        sum(each.pending_predictions for each in worker.partitions.values()),
        sum(each.early_labels for each in worker.partitions.values()),
        {fault: dead_letters[fault] for fault in FAULTS if dead_letters[fault]},
        sum(sum(each.duplicates.values()) for each in worker.counts.values()),
        sum(each.crowded_out for each in worker.counts.values()),
    )


def _partition(number: int, worker: WorkerMetrics) -> PartitionStatus:
    counts, window = worker.counts.get(number, Counts()), worker.windows.get(number)
    champion = next(iter(window.learners.values()), None) if window is not None else None
    found = PartitionStatus(
        number,
        worker.states[number],
        worker.records_left.get(number),
        predictions=counts.output_records["predictions"],
        outcomes=counts.output_records["outcomes"],
        dead_letters=sum(counts.dead_letters.values()),
        error=None if champion is None else error_of(champion),
    )
    if (running := worker.partitions.get(number)) is not None:
        found.lag_interactions, found.lag_labels = (running.inputs[name].lag_records for name in INPUTS)
        found.event_time_lag_s = running.event_time_lag_seconds
        found.waiting_predictions = running.pending_predictions
        found.snapshot_age_s = running.snapshot_age_seconds
        found.held_back = running.held_back
    return found
