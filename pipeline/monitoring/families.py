"""The metrics of a worker: name, kind, labels and meaning of each, and where its value stands in a scrape.

`docs/metrics.md` is made from this by `pipeline.monitoring.reference`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from pipeline.config.settings import Config
from pipeline.monitoring.histogram import Histogram
from pipeline.monitoring.monitor import Monitor
from pipeline.monitoring.readiness import not_ready
from pipeline.monitoring.scrape import Scrape

Kind: TypeAlias = Literal["gauge", "counter", "histogram", "info"]


class Source(NamedTuple):
    """Where the values of metrics stand in a scrape."""

    path: tuple[str, ...] = ()
    """Attributes from the scrape on. A mapping on the way, or as the value, has a label for its keys."""
    labels: tuple[str, ...] = ()
    prefix: str = ""
    """What metrics have before the name of the attribute."""

    def by(self, *labels: str) -> Source:
        """Return the source of values that are mappings with keys for these labels."""
        return self._replace(labels=(*self.labels, *labels))


SCRAPE: Final = Source()
WORKER: Final = Source(("worker",))
PARTITION: Final = Source(("worker", "partitions"), ("partition",))
INPUT: Final = Source((*PARTITION.path, "inputs"), ("partition", "input"), "input_")
TABLE: Final = Source((*PARTITION.path, "tables"), ("partition", "table"), "table_")
COMPARED: Final = Source((*PARTITION.path, "compared"), ("partition", "learner"), "compared_")
SKETCHED: Final = Source((*PARTITION.path, "sketches"), ("partition", "learner"), "sketch_")
COUNTED: Final = Source(("worker", "counts"), ("partition",))
DRIFT: Final = Source(("worker", "drift"), ("partition",), "drift_")
WINDOW: Final = Source(("worker", "windows"), ("partition",), "window_")
WINDOW_LEARNER: Final = Source((*WINDOW.path, "learners"), ("partition", "learner"), "window_")
CLIENT: Final = Source(("worker", "clients"), ("client",), "client_")
BROKER: Final = Source((*CLIENT.path, "brokers"), ("client", "broker"), "broker_")
REGISTRY: Final = Source(("worker", "registry"), (), "registry_")

_SUFFIXES: Final = MappingProxyType({"counter": "_total", "info": "_info"})
_KINDS: Final = MappingProxyType(
    {
        "gauge": GaugeMetricFamily,
        "counter": CounterMetricFamily,
        "histogram": HistogramMetricFamily,
        "info": InfoMetricFamily,
    }
)


class Family(NamedTuple):
    """A metric."""

    kind: Kind
    name: str
    """Without `forks_` and, of a counter, without `_total`."""
    source: Source
    text: str
    """What it means."""
    attribute: str | None = None
    """Attributes from the source on, with dots between; None for the metric's name without the prefix."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels."""
        return self.source.labels

    @property
    def exposed_name(self) -> str:
        """The name that a query uses; that of a histogram has `_bucket`, `_count` or `_sum` behind it."""
        return f"forks_{self.name}" + _SUFFIXES.get(self.kind, "")

    def metric(self, scrape: Scrape) -> Metric:
        """Return the metric of a scrape."""
        attribute = self.attribute or self.name.removeprefix(self.source.prefix)
        family: Any = _KINDS[self.kind](f"forks_{self.name}", self.text, labels=self.labels)
        path = (*self.source.path, *attribute.split("."))
        for labels, value in scrape.values(path, len(self.labels)):
            if isinstance(value, Histogram):
                family.add_metric(labels, value.buckets, value.sum)
            else:
                family.add_metric(labels, value)
        found: Metric = family
        return found


gauge: Final = partial(Family, "gauge")
counter: Final = partial(Family, "counter")
histogram: Final = partial(Family, "histogram")
info: Final = partial(Family, "info")

HEALTH: Final = (
    info("worker", SCRAPE, "The worker: its name, group and versions.", "info"),
    gauge("ready", SCRAPE, "1 if `/readyz` answers 200."),
    gauge("not_ready", SCRAPE.by("reason"), "1 for each reason why the worker is not ready."),
    gauge("loop_age_seconds", SCRAPE, "Time since the worker's loop came round."),
    counter(
        "session_restarts",
        SCRAPE.by("reason"),
        'Sessions that ended with an error ("starting over"), by class of error.',
    ),
    counter("rebalances", WORKER, "Assignments received from the group."),
)
RECORDS: Final = (
    counter("input_records", COUNTED.by("topic"), "Records of the inputs that were processed and committed."),
    counter("output_records", COUNTED.by("topic"), "Records that were committed to the output topics."),
    counter(
        "outcomes", COUNTED.by("status"), "Outcomes that were committed, by what became of the prediction."
    ),
    counter("dead_letters", COUNTED.by("reason"), "Records that could not be used, by reason."),
    counter(
        "dead_letters_cut",
        COUNTED,
        "Dead letters that were cut, because they are too large for their topic.",
    ),
    counter(
        "duplicates", COUNTED.by("topic"), "Records of the inputs that repeat one before, and were ignored."
    ),
    counter(
        "labels_before_interaction", COUNTED, "Labels that came before their interaction, and had to wait."
    ),
    counter(
        "crowded_out",
        COUNTED,
        "Predictions that expired before their time, because `join.max_pending` waited.",
    ),
)
KEEPING_UP: Final = (
    gauge(
        "input_lag_records",
        INPUT,
        "Records between the last one processed and the end of the input, as the client knows it from "
        "its last fetch.",
    ),
    gauge(
        "event_time_lag_seconds",
        PARTITION,
        "Time from the newest event processed to now; 0 where nothing is left to process.",
    ),
    gauge("stream_time_seconds", PARTITION, "Time of the newest event processed, since 1970."),
    histogram(
        "prediction_latency_seconds",
        WORKER,
        "Time from an event to the commit of its prediction, of some predictions of each batch.",
    ),
    histogram(
        "batch_steps",
        WORKER,
        "Messages, and predictions and early labels whose time ran out, in a partition's batch.",
    ),
    histogram(
        "stage_duration_seconds",
        WORKER.by("stage"),
        "Duration of each stage of the loop. `poll` includes the wait for a first message, `wait` is "
        "that for the transaction before.",
    ),
    gauge("input_buffered_messages", INPUT, "Messages that were read and not yet processed."),
    gauge("input_buffered_bytes", INPUT, "Bytes of the messages that were read and not yet processed."),
    gauge(
        "input_paused",
        INPUT,
        "1 while the input is not read, because enough is buffered or messages wait for their schema.",
    ),
    gauge(
        "input_held_messages",
        INPUT,
        "Messages that wait for their schema, which the registry has not answered yet.",
    ),
    gauge("dead_letters_this_minute", PARTITION, "Dead letters of the current minute."),
    gauge("held_back", PARTITION, "1 while the partition is paused because it has too many dead letters."),
)
TRANSACTIONS: Final = (
    histogram(
        "transaction_duration_seconds",
        WORKER,
        "Time to send the records of a transaction and to commit it, once they are encoded.",
    ),
    counter("transactions", WORKER, "Transactions that were committed."),
    counter("transaction_failures", WORKER, "Transactions that failed, or of which that is not known."),
    gauge("commit_age_seconds", SCRAPE, "Time since the transaction under way began; 0 if there is none."),
    gauge("since_commit_seconds", SCRAPE, "Time since the last commit."),
)
STATE_AND_SNAPSHOTS: Final = (
    gauge("partition_state", SCRAPE.by("partition", "state"), "1 for the partition's state, else 0."),
    gauge(
        "restore_records_left",
        SCRAPE.by("partition"),
        "Records that are still to be read while the partition is restored.",
    ),
    histogram(
        "restore_duration_seconds", WORKER, "Time from the assignment of a partition to its first message."
    ),
    gauge(
        "snapshot_age_seconds",
        PARTITION,
        "Time since the last snapshot was written, or the partition restored.",
    ),
    gauge(
        "snapshot_outcomes_behind",
        PARTITION,
        "Outcomes learned since the last snapshot, which a restart learns again.",
    ),
    gauge("snapshot_size_bytes", PARTITION, "Size of the last snapshot that this worker has written."),
    counter("snapshots", COUNTED, "Snapshots that were committed."),
    gauge("pending_predictions", PARTITION, "Predictions that wait for their label."),
    gauge("closed_events", PARTITION, "Closed events by which duplicates and late labels are recognised."),
    gauge("early_labels", PARTITION, "Labels that wait for their interaction."),
    gauge("early_label_bytes", PARTITION, "Bytes of the labels that wait for their interaction."),
    gauge("entities", PARTITION.by("table"), "Entities that running statistics are kept for, by table."),
    gauge("categories", PARTITION, "Values, words and crosses that the sparse part has weights of."),
    gauge("published_outcomes", PARTITION, "Outcomes published to the other partitions."),
    gauge(
        "outcomes_of_others",
        PARTITION,
        "Outcomes of other partitions learned since the partition was assigned.",
    ),
    gauge("held_share_bytes", PARTITION, "Bytes of shared outcomes that were received and not yet learned."),
    gauge("asked_labels", PARTITION, "Predictions whose label was requested."),
    gauge("unasked_labels", PARTITION, "Labels that were joined, but not requested."),
    gauge("table_rows", TABLE, "Rows of the live table."),
    gauge("table_queued", TABLE, "Records that were read and wait for the time from which on they hold."),
    gauge("table_applied", TABLE, "Records applied since the partition was assigned."),
    gauge("table_rejected", TABLE, "Records that could not be used since the partition was assigned."),
    gauge(
        "table_lost_versions",
        TABLE,
        "1 if compaction had taken away versions, so that the table was not restored as it was.",
    ),
)
QUALITY: Final = (
    gauge(
        "window_events",
        WINDOW,
        "Labelled events in the window of the metrics below: the partition's last 10,000 since it was "
        "assigned.",
    ),
    gauge(
        "window_mistakes_ratio",
        WINDOW_LEARNER,
        "Share of events of the other class than predicted.",
        "mistakes",
    ),
    gauge("window_auc", WINDOW_LEARNER, "Area under the ROC curve."),
    gauge("window_log_loss", WINDOW_LEARNER, "Mean log loss, of a learner whose scores are log-odds."),
    gauge(
        "window_calibration_error_ratio",
        WINDOW_LEARNER,
        "Expected calibration error over ten bins, of a learner whose scores are log-odds.",
        "calibration_error",
    ),
    gauge(
        "window_mean_absolute_error",
        WINDOW_LEARNER,
        "Mean absolute error in the unit of the labels, where numbers are predicted.",
    ),
    gauge(
        "window_root_mean_squared_error",
        WINDOW_LEARNER,
        "Root mean squared error in the unit of the labels, where numbers are predicted.",
    ),
    gauge(
        "drift_evidence",
        DRIFT,
        "Evidence that the champion makes more errors than the running means, beyond a tolerance.",
    ),
    gauge(
        "drift_threshold",
        DRIFT,
        "Evidence at which there is an alarm: the average number of labelled events to a false one, "
        "at least.",
    ),
    counter("drift_alarms", DRIFT, "Alarms of drift. After each, evidence begins anew."),
    counter(
        "compared_events",
        COMPARED,
        "Labelled events since the partition was assigned, where there are challengers.",
    ),
    counter(
        "compared_mistakes",
        COMPARED,
        "Labelled events that the learner predicted wrongly, where classes are predicted.",
    ),
    counter(
        "compared_log_loss",
        COMPARED,
        "Sum of the learner's log loss over labelled events, in nats, where its scores are log-odds.",
    ),
    counter(
        "compared_absolute_error",
        COMPARED,
        "Sum of |prediction - label| over labelled events, where numbers are predicted.",
    ),
    counter(
        "compared_squared_error",
        COMPARED,
        "Sum of (prediction - label)^2 over labelled events, where numbers are predicted.",
    ),
)
SKETCH: Final = (
    gauge("sketch_stage", SKETCHED, "1 until the budget is full, then 2."),
    gauge("sketch_points", SKETCHED, "Stored points.", "stored_points"),
    gauge("sketch_rank", SKETCHED, "Singular values that are not negligible."),
    gauge(
        "sketch_singular_value",
        PARTITION.by("learner", "which"),
        "The largest, the median and the smallest singular value.",
        "singular_values",
    ),
    gauge("sketch_condition", SKETCHED, "Largest singular value over the smallest that is not negligible."),
    gauge("sketch_map_changes", SKETCHED, "Changes of the feature map since stage 2 began."),
    gauge("sketch_evictions", SKETCHED, "Stored points that were evicted for newer ones."),
    gauge(
        "sketch_changes_since_refresh",
        SKETCHED,
        "Changes of the map since the decomposition was last computed anew.",
    ),
    gauge(
        "sketch_events_since_map_change",
        SKETCHED,
        "Events learned since the map changed last.",
        "updates_since_map_change",
    ),
)
BROKERS_AND_REGISTRY: Final = (
    gauge("broker_up", BROKER, "1 if the client is connected to the broker."),
    gauge(
        "broker_round_trip_mean_seconds",
        BROKER,
        "Mean time from a request to its answer, over five seconds. A fetch waits for records at the broker.",
    ),
    gauge("broker_round_trip_p99_seconds", BROKER, "99th percentile of the same."),
    counter(
        "broker_errors",
        BROKER,
        "Requests that failed or were not answered in time. Begins anew with each session, as the next two.",
    ),
    counter("client_sent_bytes", CLIENT, "Bytes sent to brokers."),
    counter("client_received_bytes", CLIENT, "Bytes received from brokers."),
    gauge(
        "client_queued_messages",
        CLIENT,
        "Of the producer, messages not yet acknowledged; of the consumer, messages fetched and not yet read.",
    ),
    gauge("client_queued_bytes", CLIENT, "Bytes of the same."),
    gauge("client_waiting_requests", CLIENT, "Requests that wait to be sent or to be answered."),
    gauge("registry_away", REGISTRY, "1 while the schema registry does not answer."),
    counter("registry_lookups", REGISTRY.by("answer"), "Questions to the schema registry, by their answer."),
)
LIMITS: Final = (
    gauge(
        "buffer_limit_bytes", SCRAPE, "Bytes that may be read ahead: `worker.buffer`.", "config.worker.buffer"
    ),
    gauge(
        "pending_predictions_limit",
        SCRAPE,
        "In each partition: `join.max_pending`.",
        "config.join.max_pending",
    ),
    gauge("closed_events_limit", SCRAPE, "In each partition: `join.max_closed`.", "config.join.max_closed"),
    gauge(
        "early_label_limit_bytes", SCRAPE, "In each partition: `join.early_bytes`.", "config.join.early_bytes"
    ),
    gauge(
        "entities_limit",
        SCRAPE,
        "In each table of each partition: `features.max_entities`.",
        "config.features.max_entities",
    ),
    gauge(
        "dead_letters_per_minute_limit",
        SCRAPE,
        "In each partition: `worker.dead_letters`.",
        "config.worker.dead_letters",
    ),
)

GROUPS: Final[Mapping[str, Sequence[Family]]] = MappingProxyType(
    {
        "Health": HEALTH,
        "Records": RECORDS,
        "Keeping up": KEEPING_UP,
        "Transactions": TRANSACTIONS,
        "State and snapshots": STATE_AND_SNAPSHOTS,
        "Quality": QUALITY,
        "Sketch": SKETCH,
        "Brokers and registry": BROKERS_AND_REGISTRY,
        "Limits": LIMITS,
    }
)
"""All metrics of a worker, by section of the documentation. `ProcessCollector` adds its own."""
FAMILIES: Final = (*chain.from_iterable(GROUPS.values()),)


class WorkerCollector(Collector):
    """Collects the metrics of a worker.

    Parameters
    ----------
    monitor
        What the worker says of itself.
    config
        The whole configuration.
    info
        What the worker is: its name, group and versions.
    """

    def __init__(self, monitor: Monitor, config: Config, info: Mapping[str, str]) -> None:
        self._monitor = monitor
        self._config = config
        self._info = info

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of a scrape."""
        worker, vitals, now = self._monitor.metrics, self._monitor.vitals, time.monotonic()
        scrape = Scrape(worker, vitals, not_ready(vitals, now), now, self._config, self._info)
        for family in FAMILIES:
            yield family.metric(scrape)
