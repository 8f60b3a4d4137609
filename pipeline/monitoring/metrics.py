"""What is known of a worker at one moment: values that never change, so that another thread can read them.

A field has the name of its metric, but for a prefix: see `pipeline.monitoring.families`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from forks import Health
from pipeline.model.comparison import LearnerMetrics
from pipeline.monitoring.client_statistics import ClientMetrics
from pipeline.monitoring.counts import Counts
from pipeline.monitoring.explanations import ExplainedPrediction
from pipeline.monitoring.histogram import Histogram
from pipeline.monitoring.quality import DriftMetrics, WindowMetrics


class InputMetrics(NamedTuple):
    """An input of a running partition."""

    buffered_messages: int
    buffered_bytes: int
    paused: bool
    held_messages: int
    lag_records: int | None
    """None where the client does not know it."""


class TableMetrics(NamedTuple):
    """A live table of a running partition."""

    rows: int
    queued: int
    applied: int
    rejected: int
    lost_versions: int


class PartitionMetrics(NamedTuple):
    """A running partition."""

    inputs: Mapping[str, InputMetrics]
    """By input."""
    stream_time_seconds: float | None
    """None before the first message, as the next."""
    event_time_lag_seconds: float | None
    pending_predictions: int
    closed_events: int
    early_labels: int
    early_label_bytes: int
    published_outcomes: int
    outcomes_of_others: int
    held_share_bytes: int
    asked_labels: int
    unasked_labels: int
    dead_letters_this_minute: int
    held_back: bool
    snapshot_age_seconds: float
    snapshot_outcomes_behind: int
    snapshot_size_bytes: int | None
    """None if this worker has written none."""
    entities: Mapping[str, int]
    """By table of the running statistics."""
    categories: int | None
    """Rows of the sparse part; None if there is none."""
    compared: Mapping[str, LearnerMetrics]
    """By learner, where there are challengers."""
    tables: Mapping[str, TableMetrics]
    """By live table."""
    sketches: Mapping[str, Health]
    """By learner that is FORKS."""

    @property
    def singular_values(self) -> Mapping[str, Mapping[str, float]]:
        """The largest, the median and the smallest singular value, by learner that has some."""
        found = {learner: each.singular_values for learner, each in self.sketches.items()}
        return {
            learner: {"largest": values[0], "median": values[len(values) // 2], "smallest": values[-1]}
            for learner, values in found.items()
            if values
        }


class RegistryMetrics(NamedTuple):
    """What the schema registry has answered this worker."""

    away: bool
    lookups: Mapping[str, int]
    """By answer."""


class Sample(NamedTuple):
    """A worker at one moment of its history."""

    time: float
    """Seconds since 1970."""
    records: Mapping[str, int]
    """Committed since the process has started, by topic."""
    latency: Histogram | None
    """Latencies of predictions since the process has started."""
    lag_records: int | None
    """Records of all inputs that were still to be processed; None if no client knows."""
    event_time_lag: float | None
    """Seconds, of the partition that was furthest behind."""
    quality: Mapping[str, float]
    """Share of mistakes, or mean absolute error, by learner or baseline."""


class WorkerMetrics(NamedTuple):
    """A worker. It has no histograms before the first update."""

    partitions: Mapping[int, PartitionMetrics] = MappingProxyType({})
    """Those that are running, by number."""
    states: Mapping[int, str] = MappingProxyType({})
    """The state of each partition that the worker has had."""
    records_left: Mapping[int, int] = MappingProxyType({})
    """Records still to read by partition that is restored."""
    counts: Mapping[int, Counts] = MappingProxyType({})
    """By partition that the worker has had since it started, as the next two."""
    windows: Mapping[int, WindowMetrics] = MappingProxyType({})
    drift: Mapping[int, DriftMetrics] = MappingProxyType({})
    stage_duration_seconds: Mapping[str, Histogram] = MappingProxyType({})
    """By stage of the loop."""
    batch_steps: Histogram | None = None
    transaction_duration_seconds: Histogram | None = None
    restore_duration_seconds: Histogram | None = None
    prediction_latency_seconds: Histogram | None = None
    transactions: int = 0
    transaction_failures: int = 0
    rebalances: int = 0
    restarts: Mapping[str, int] = MappingProxyType({})
    """Sessions that ended with an error, by reason."""
    clients: Mapping[str, ClientMetrics] = MappingProxyType({})
    """Clients of librdkafka by their role."""
    registry: RegistryMetrics | None = None
    """None where no input needs a schema registry."""
    explanations: Sequence[ExplainedPrediction] = ()
    """Some of the latest predictions that were committed, the newest first."""
    history: Sequence[Sample] = ()
    """The last hour, the oldest sample first."""
