"""What a worker did in the last hour, in samples: for a curve as soon as somebody looks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pipeline.monitoring.counts import INPUTS, Counts
from pipeline.monitoring.metrics import Sample, WorkerMetrics
from pipeline.monitoring.quality import error_of, pooled

INTERVAL: Final = 5.0
"""Seconds between two samples."""
SAMPLES: Final = 720
"""Samples that are kept: an hour of them."""
TOPICS: Final = ("interactions", "labels", "predictions", "outcomes")
"""Topics whose records are in samples, by their role."""


def records_of(counts: Collection[Counts]) -> dict[str, int]:
    """Return the committed records of all partitions, by topic."""
    return {
        topic: sum((each.input_records if topic in INPUTS else each.output_records)[topic] for each in counts)
        for topic in TOPICS
    }


def sample_of(worker: WorkerMetrics, at: float) -> Sample:
    """Return a sample of a worker's metrics.

    Parameters
    ----------
    worker
        The metrics.
    at
        Their time, in seconds since 1970.
    """
    errors = {name: error_of(each) for name, each in pooled(worker.windows.values()).learners.items()}
    return Sample(
        at,
        records_of(worker.counts.values()),
        worker.prediction_latency_seconds,
        lag_of(worker, *INPUTS),
        event_time_lag_of(worker),
        {name: error for name, error in errors.items() if error is not None},
    )


def lag_of(worker: WorkerMetrics, *inputs: str) -> int | None:
    """Return the records of inputs that are still to be processed; None if no client knows."""
    lags = [each.inputs[name].lag_records for each in worker.partitions.values() for name in inputs]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


def event_time_lag_of(worker: WorkerMetrics) -> float | None:
    """Return the seconds of the partition that is furthest behind; None before the first message."""
    lags = [each.event_time_lag_seconds for each in worker.partitions.values()]
    return max((lag for lag in lags if lag is not None), default=None)
