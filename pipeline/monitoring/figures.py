"""The figures of a worker at one moment: plain values, which another thread may read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from forks import Health
from pipeline.model.comparison import LearnerMetrics
from pipeline.monitoring.client_statistics import ClientFigures
from pipeline.monitoring.counts import CountFigures
from pipeline.monitoring.explanations import ExplainedPrediction
from pipeline.monitoring.histogram import HistogramFigures
from pipeline.monitoring.quality import DriftFigures, WindowFigures
from pipeline.task.live_tables import LiveTable


class InputFigures(NamedTuple):
    """What an input of a partition held."""

    buffered_messages: int
    buffered_bytes: int
    paused: bool
    held_messages: int
    lag: int | None
    """Records between the last one processed and the end, as far as the client knows it; None if it does
    not."""


class TableFigures(NamedTuple):
    """What a live table held."""

    rows: int
    queued: int
    applied: int
    rejected: int
    lost_versions: int

    @classmethod
    def of(cls, table: LiveTable) -> TableFigures:
        """Return the figures of a table."""
        return cls(len(table.rows), len(table.queue), table.applied, table.rejected, table.lost_versions)


class PartitionFigures(NamedTuple):
    """What a running partition held."""

    interactions: InputFigures
    labels: InputFigures
    stream_time: float | None
    """Seconds since 1970; None before the first message."""
    event_time_lag: float | None
    """Seconds from stream time to now, 0 where nothing is left to process; None before the first message."""
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
    snapshot_age: float
    """Seconds since the last snapshot was written, or the partition restored."""
    snapshot_outcomes_behind: int
    """Outcomes learned since the last snapshot."""
    snapshot_size: int | None
    """Bytes; None if this worker has written none."""
    entities: Mapping[str, int]
    """By table of the running statistics."""
    compared: Mapping[str, LearnerMetrics]
    """By learner, where there are challengers."""
    tables: Mapping[str, TableFigures]
    """By live table."""
    sketches: Mapping[str, Health]
    """By learner that is FORKS."""


class RegistryFigures(NamedTuple):
    """What the schema registry has answered this worker."""

    away: bool
    found: int
    unknown: int
    failed: int


class Sample(NamedTuple):
    """A worker at one moment."""

    time: float
    """Seconds since 1970."""
    records: Mapping[str, int]
    """Committed since the process has started, by topic."""
    latency: HistogramFigures | None
    """Latencies of predictions since the process has started."""
    lag_records: int | None
    """Records of all inputs that were still to be processed; None if no client knows."""
    event_time_lag: float | None
    """Seconds, of the partition that was furthest behind."""
    quality: Mapping[str, float]
    """Share of mistakes, or mean absolute error, by learner or baseline."""


class WorkerFigures(NamedTuple):
    """All figures of a worker."""

    partitions: Mapping[int, PartitionFigures] = MappingProxyType({})
    """Those that are running, by number."""
    states: Mapping[int, str] = MappingProxyType({})
    """The state of each partition that the worker has had."""
    records_left: Mapping[int, int] = MappingProxyType({})
    """Records still to read by partition that is restored."""
    counts: Mapping[int, CountFigures] = MappingProxyType({})
    """By partition that the worker has had since it started, as the next two."""
    windows: Mapping[int, WindowFigures] = MappingProxyType({})
    drift: Mapping[int, DriftFigures] = MappingProxyType({})
    histograms: Mapping[str, Mapping[str, HistogramFigures]] = MappingProxyType({})
    """By metric, without prefix, and by the value of its label, or ""."""
    transactions: int = 0
    transaction_failures: int = 0
    rebalances: int = 0
    restarts: Mapping[str, int] = MappingProxyType({})
    """Sessions that ended with an error, by reason."""
    clients: Mapping[str, ClientFigures] = MappingProxyType({})
    """Clients of librdkafka by their role."""
    registry: RegistryFigures | None = None
    """None where no input needs a schema registry."""
    explanations: Sequence[ExplainedPrediction] = ()
    """Some of the latest predictions that were committed, the newest first."""
    history: Sequence[Sample] = ()
    """The last hour, the oldest sample first."""
