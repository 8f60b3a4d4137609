"""The metrics of a follower: what is asked of it, and how far its models are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pipeline.serving.answers import FollowerFigures, PartitionFigures, Scores
from pipeline.serving.score_log import ScoreLog
from pipeline.serving.scoring_answers import ReadyAnswer

SECONDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds for the time of a request."""
CANDIDATES: Final = (1.0, 10.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 5_000.0)
"""Bounds for candidates of a user."""


class RequestMetrics:
    """Counts requests.

    Parameters
    ----------
    registry
        Where the metrics are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "forks_serve_requests",
            "Requests that were answered.",
            ["route", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "forks_serve_request_duration_seconds",
            "Time from a request's headers to the end of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self.candidates = Histogram(
            "forks_serve_candidates",
            "Candidates of one user that were scored together.",
            buckets=CANDIDATES,
            registry=registry,
        )
        self.unknown = Counter(
            "forks_serve_unknown_candidates",
            "Candidates with an id of which the model remembers no label.",
            registry=registry,
        )
        self.under_way = Gauge(
            "forks_serve_requests_under_way", "Requests that are not answered yet.", registry=registry
        )
        self.age = Histogram(
            "forks_serve_answer_age_seconds",
            "Time from the event time that the model knows to the answer.",
            buckets=(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3_600.0),
            registry=registry,
        )

    def note_answer(self, scores: Scores, age_ms: int | None) -> None:
        """Count the candidates of an answer, and note its age; None where that is not known."""
        self.candidates.observe(len(scores.scores))
        if unknown := sum(map(bool, scores.unknown)):
            self.unknown.inc(unknown)
        if age_ms is not None:
            self.age.observe(age_ms / 1000)


class _OfPartitions(NamedTuple):
    """A gauge of each partition."""

    name: str
    text: str
    read: Callable[[PartitionFigures, float], float | None]


def _lag_seconds(figures: PartitionFigures, now: float) -> float | None:
    return None if figures.current_at is None else max(0.0, now - figures.current_at)


REASONS: Final = ("starting", "restoring", "failed", "behind")
"""Why a follower is not ready: see `pipeline.serving.scoring_answers.ReadyAnswer`."""
STATES: Final = ("restoring", "following", "failed")
"""The states of a partition: see `pipeline.serving.answers.FollowingState`."""
GAUGES: Final = (
    _OfPartitions(
        "forks_serve_model_version",
        "Outcomes that the model has learned.",
        lambda each, _: each.model_version,
    ),
    _OfPartitions(
        "forks_serve_lag_outcomes",
        "Outcomes that are committed and not yet learned, at most.",
        lambda each, _: each.lag,
    ),
    _OfPartitions(
        "forks_serve_lag_seconds",
        "Time since the model had learned all that was committed.",
        _lag_seconds,
    ),
    _OfPartitions(
        "forks_serve_as_of_seconds",
        "Event time up to which the model knows the stream, since 1970.",
        lambda each, _: None if each.as_of < 0 else each.as_of / 1000,
    ),
    _OfPartitions(
        "forks_serve_restore_records_left",
        "Records that are still to be read while the partition is restored.",
        lambda each, _: each.records_left,
    ),
)


class FollowerCollector(Collector):
    """Collects where a follower is.

    Parameters
    ----------
    figures
        Returns where it is.
    score_log
        Where scores are logged; None for nowhere.
    max_lag
        Milliseconds that a model may be behind for the follower to be ready.
    """

    def __init__(
        self, figures: Callable[[], FollowerFigures], score_log: ScoreLog | None, max_lag: int
    ) -> None:
        self._figures = figures
        self._score_log = score_log
        self._max_lag = max_lag

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of a scrape."""
        figures, now = self._figures(), time.monotonic()
        for gauge in GAUGES:
            family: Any = GaugeMetricFamily(gauge.name, gauge.text, labels=["partition"])
            for each in figures.partitions:
                if (value := gauge.read(each, now)) is not None:
                    family.add_metric([str(each.partition)], value)
            yield family
        states: Any = GaugeMetricFamily(
            "forks_serve_partition_state",
            "1 for the partition's state, else 0.",
            labels=["partition", "state"],
        )
        for each in figures.partitions:
            for state in STATES:
                states.add_metric([str(each.partition), state], float(state == each.state))
        yield states
        reasons = {each.code for each in ReadyAnswer.of(figures, self._max_lag, now).reasons}
        not_ready: Any = GaugeMetricFamily(
            "forks_serve_not_ready", "1 for each reason why /readyz is red, else 0.", labels=["reason"]
        )
        for reason in REASONS:
            not_ready.add_metric([reason], float(reason in reasons))
        yield not_ready
        yield GaugeMetricFamily(
            "forks_serve_folds_per_second", "Outcomes learned a second.", value=figures.folds_per_second
        )
        yield GaugeMetricFamily(
            "forks_serve_brokers_up", "1 if the brokers answer.", value=float(figures.brokers is None)
        )
        failures = 0 if self._score_log is None else self._score_log.failures
        yield CounterMetricFamily(
            "forks_serve_log_failures", "Answers that could not be logged.", value=failures
        )


def follower_registry(
    figures: Callable[[], FollowerFigures], score_log: ScoreLog | None, max_lag: int
) -> tuple[CollectorRegistry, RequestMetrics]:
    """Return the registry of a follower's metrics, and what counts its requests.

    Parameters
    ----------
    figures
        Returns where the follower is.
    score_log
        Where scores are logged; None for nowhere.
    max_lag
        Milliseconds that a model may be behind for the follower to be ready.
    """
    registry = CollectorRegistry()
    requests = RequestMetrics(registry)
    registry.register(FollowerCollector(figures, score_log, max_lag))
    ProcessCollector(registry=registry)
    return registry, requests
