"""What the status page and `forks top` show, as one JSON object: made of a worker's figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from pipeline.monitoring.counts import FAULTS, STATUSES
from pipeline.monitoring.explanations import ExplainedPrediction
from pipeline.monitoring.figures import Sample, WorkerFigures
from pipeline.monitoring.histogram import HistogramFigures
from pipeline.monitoring.history import INTERVAL, TOPICS, records_of
from pipeline.monitoring.quality import QualityFigures, error_of, pooled
from pipeline.monitoring.readiness import Reason, Vitals

RECENT: Final = 12
"""Intervals of samples over which rates and latencies of `Status` are: a minute."""
QUANTILES: Final = (0.5, 0.9, 0.99)
"""Those that `LatencyStatus` has."""


class ReasonStatus(msgspec.Struct):
    """Why the worker is not ready: see `pipeline.monitoring.readiness.CODES`."""

    code: str
    text: str


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


class LearnerStatus(msgspec.Struct):
    """Quality of a learner or baseline over the last labelled events; what is not defined for it is None."""

    name: str
    mistakes: float | None
    auc: float | None
    log_loss: float | None
    calibration_error: float | None
    mean_absolute_error: float | None
    root_mean_squared_error: float | None


class QualityStatus(msgspec.Struct):
    """Quality of all learners and baselines."""

    measure: str | None
    """`mistakes`, or `mean_absolute_error` where numbers are predicted; None before the first label."""
    events: int
    """Labelled events in the windows of all partitions."""
    learners: list[LearnerStatus]
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

    count: int
    p50: float | None
    """None where it is above all bounds, or where nothing was observed."""
    p90: float | None
    p99: float | None
    largest_bound: float


class PartitionStatus(msgspec.Struct):
    """A partition that the worker has had."""

    number: int
    state: str
    records_left: int | None
    """Records to be read until it is restored."""
    lag_interactions: int | None
    lag_labels: int | None
    event_time_lag_s: float | None
    waiting_predictions: int | None
    predictions: int
    outcomes: int
    dead_letters: int
    error: float | None
    """Of the champion: `QualityStatus.measure`."""
    snapshot_age_s: float | None
    held_back: bool
    """Whether it is paused because of too many dead letters."""


class TermStatus(msgspec.Struct):
    """A part of a score: see `pipeline.model.score_terms.Term`."""

    kind: str
    name: str
    value: float


class PredictionStatus(msgspec.Struct):
    """A prediction, and the terms that its score is the sum of."""

    partition: int
    sequence: int
    event_id: str
    ids: dict[str, str]
    timestamp: int
    score: float
    probability: float | None
    predicted: bool | float
    terms: list[TermStatus]


class Status(msgspec.Struct):
    """A worker at one moment."""

    worker: dict[str, str]
    """Its name, group, stream and versions."""
    time: float
    """Seconds since 1970."""
    uptime_s: float
    ready: bool
    reasons: list[ReasonStatus]
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
    predictions: list[PredictionStatus]
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
    figures: WorkerFigures,
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
    figures, vitals
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
    recent = figures.history[-RECENT - 1 :]
    held, counts = figures.partitions.values(), figures.counts.values()
    windows = pooled(figures.windows.values())
    champion = next(iter(windows.learners.values()), None)
    outcomes, dead_letters = Counter[str](), Counter[str]()
    for each in counts:
        outcomes.update(each.outcomes)
        dead_letters.update(each.dead_letters)
    event_time_lags = [each.event_time_lag for each in held if each.event_time_lag is not None]
    transactions = figures.histograms.get("transaction_duration_seconds", {}).get("")
    return Status(
        worker=dict(info),
        time=clock,
        uptime_s=now - begun,
        ready=not reasons,
        reasons=[ReasonStatus(*reason) for reason in reasons],
        loop_age_s=now - vitals.beat,
        records={topic: _rate(figures, recent, topic) for topic in TOPICS},
        lag=LagStatus(
            _sum(each.interactions.lag for each in held),
            _sum(each.labels.lag for each in held),
            max(event_time_lags, default=None),
        ),
        quality=QualityStatus(
            _measure(champion),
            windows.events,
            [LearnerStatus(name, *each) for name, each in windows.learners.items()],
            sum(each.alarms for each in figures.drift.values()),
        ),
        joins=JoinStatus(
            {status: outcomes[status] for status in STATUSES},
            sum(each.pending_predictions for each in held),
            sum(each.early_labels for each in held),
            {fault: dead_letters[fault] for fault in FAULTS if dead_letters[fault]},
            sum(sum(each.duplicates.values()) for each in counts),
            sum(each.crowded_out for each in counts),
        ),
        prediction_latency=_recent_latency(recent),
        transactions=_latency(transactions, None),
        transaction_failures=figures.transaction_failures,
        restarts=dict(figures.restarts),
        partitions=[_partition(number, figures) for number in sorted(figures.states)],
        predictions=[_prediction(each) for each in figures.explanations],
    )


def history_of(samples: Sequence[Sample]) -> HistoryStatus:
    """Return the columns of samples, the oldest first.

    Parameters
    ----------
    samples
        The samples.
    """
    pairs = [*pairwise(samples)]
    latencies = [_latency(after.latency, before.latency) for before, after in pairs]
    learners = dict.fromkeys(name for _, after in pairs for name in after.quality)
    return HistoryStatus(
        INTERVAL,
        [after.time for _, after in pairs],
        {topic: [_per_second(before, after, topic) for before, after in pairs] for topic in TOPICS},
        [after.lag_records for _, after in pairs],
        [after.event_time_lag for _, after in pairs],
        [each.p50 for each in latencies],
        [each.p99 for each in latencies],
        {name: [after.quality.get(name) for _, after in pairs] for name in learners},
    )


def quantile(counts: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """Return a quantile of observations that were counted by bucket, as `histogram_quantile` of Prometheus.

    Parameters
    ----------
    counts
        Observations by bucket, the last of which has no bound.
    bounds
        The upper bounds of the others.
    share
        Which quantile, from 0 to 1.

    Returns
    -------
    float or None
        None where there are no observations, or where the quantile is above all bounds.

    Examples
    --------
    >>> quantile([2, 2, 0], [1.0, 3.0], 0.5), quantile([2, 2, 0], [1.0, 3.0], 0.75)
    (1.0, 2.0)
    >>> quantile([1, 0, 9], [1.0, 3.0], 0.5) is None
    True
    """
    rank, below, lower = share * sum(counts), 0, 0.0
    for count, upper in zip(counts, bounds, strict=False):
        if count and below + count >= rank:
            return min(upper, lower + (upper - lower) * (rank - below) / count)
        below, lower = below + count, upper
    return None


def _latency(after: HistogramFigures | None, before: HistogramFigures | None) -> LatencyStatus:
    """Return the durations that were observed after an earlier moment, or all of them."""
    if after is None:
        return LatencyStatus(0, None, None, None, 0.0)
    counts = after.counts
    if before is not None:
        counts = tuple(now - then for now, then in zip(counts, before.counts, strict=True))
    p50, p90, p99 = (quantile(counts, after.bounds, share) for share in QUANTILES)
    return LatencyStatus(sum(counts), p50, p90, p99, after.bounds[-1])


def _recent_latency(recent: Sequence[Sample]) -> LatencyStatus:
    if len(recent) < 2:
        return _latency(None, None)
    return _latency(recent[-1].latency, recent[0].latency)


def _per_second(before: Sample, after: Sample, topic: str) -> float:
    elapsed = max(after.time - before.time, 1e-3)  # the clock may have been set back
    return max(0, after.records[topic] - before.records[topic]) / elapsed


def _rate(figures: WorkerFigures, recent: Sequence[Sample], topic: str) -> RateStatus:
    total = records_of(figures.counts.values())[topic]
    return RateStatus(total, _per_second(recent[0], recent[-1], topic) if len(recent) > 1 else None)


def _sum(lags: Iterable[int | None]) -> int | None:
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


def _measure(champion: QualityFigures | None) -> str | None:
    if champion is None:
        return None
    return "mean_absolute_error" if champion.mistakes is None else "mistakes"


def _partition(number: int, figures: WorkerFigures) -> PartitionStatus:
    held, counts = figures.partitions.get(number), figures.counts.get(number)
    window = figures.windows.get(number)
    champion = next(iter(window.learners.values()), None) if window is not None else None
    return PartitionStatus(
        number,
        figures.states[number],
        figures.records_left.get(number),
        None if held is None else held.interactions.lag,
        None if held is None else held.labels.lag,
        None if held is None else held.event_time_lag,
        None if held is None else held.pending_predictions,
        0 if counts is None else counts.outputs["predictions"],
        0 if counts is None else counts.outputs["outcomes"],
        0 if counts is None else sum(counts.dead_letters.values()),
        None if champion is None else error_of(champion),
        None if held is None else held.snapshot_age,
        held is not None and held.held_back,
    )


def _prediction(explained: ExplainedPrediction) -> PredictionStatus:
    return PredictionStatus(
        explained.partition,
        explained.sequence,
        explained.event_id,
        dict(explained.ids),
        explained.timestamp,
        explained.score,
        explained.probability,
        explained.predicted,
        [TermStatus(*term) for term in explained.terms],
    )
