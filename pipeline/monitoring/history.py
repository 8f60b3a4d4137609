"""What a worker did in the last hour, in samples: for a curve as soon as somebody looks."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final

from pipeline.monitoring.counts import INPUTS, CountFigures
from pipeline.monitoring.figures import Sample, WorkerFigures
from pipeline.monitoring.quality import error_of, pooled

INTERVAL: Final = 5.0
"""Seconds between two samples."""
SAMPLES: Final = 720
"""Samples that are kept: an hour of them."""
TOPICS: Final = ("interactions", "labels", "predictions", "outcomes")
"""Topics whose records are in samples, by their role."""


class History:
    """The samples of the last hour.

    Attributes
    ----------
    figures
        The samples, the oldest first. Replaced, never changed.
    """

    def __init__(self) -> None:
        self.figures: tuple[Sample, ...] = ()
        self._samples = deque[Sample](maxlen=SAMPLES)
        self._next = 0.0

    def due(self, now: float) -> bool:
        """Return whether it is time for a sample, by the monotonic clock."""
        return now >= self._next

    def add(self, now: float, sample: Sample) -> None:
        """Keep a sample."""
        self._next = now + INTERVAL
        self._samples.append(sample)
        self.figures = tuple(self._samples)


def records_of(counts: Collection[CountFigures]) -> dict[str, int]:
    """Return the committed records of all partitions, by topic."""
    return {
        topic: sum((each.inputs if topic in INPUTS else each.outputs)[topic] for each in counts)
        for topic in TOPICS
    }


def sample_of(figures: WorkerFigures, at: float) -> Sample:
    """Return a sample of a worker's figures.

    Parameters
    ----------
    figures
        The figures.
    at
        Their time, in seconds since 1970.
    """
    held = figures.partitions.values()
    lags = [lag for each in held for lag in (each.interactions.lag, each.labels.lag) if lag is not None]
    event_time_lags = [each.event_time_lag for each in held if each.event_time_lag is not None]
    errors = {name: error_of(quality) for name, quality in pooled(figures.windows.values()).learners.items()}
    return Sample(
        at,
        records_of(figures.counts.values()),
        figures.histograms.get("prediction_latency_seconds", {}).get(""),
        sum(lags) if lags else None,
        max(event_time_lags, default=None),
        {name: error for name, error in errors.items() if error is not None},
    )
