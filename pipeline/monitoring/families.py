"""The metrics of a worker: names, kinds, labels, meanings, and where each is in the figures.

`docs/metrics.md` is made from this by `pipeline.monitoring.reference`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from forks import Health
from pipeline.kafka.access.errors import ERROR_CLASSES
from pipeline.model.comparison import LearnerMetrics
from pipeline.monitoring.client_statistics import BrokerFigures, ClientFigures
from pipeline.monitoring.counts import INPUTS, CountFigures
from pipeline.monitoring.figures import InputFigures, PartitionFigures, TableFigures, WorkerFigures
from pipeline.monitoring.quality import QualityFigures
from pipeline.monitoring.readiness import CODES, Reason, Vitals

Kind: TypeAlias = Literal["gauge", "counter", "histogram", "info"]
Sample: TypeAlias = tuple[tuple[str, ...], Any]
"""Values of the labels, and the value: a number, `HistogramFigures`, or a mapping for an info."""


_Labels: TypeAlias = tuple[str, ...]


class Scrape(NamedTuple):
    """What a scrape finds."""

    figures: WorkerFigures
    vitals: Vitals
    reasons: Sequence[Reason]
    """Why the worker is not ready."""
    now: float
    """The time of the scrape, by the monotonic clock."""
    info: Mapping[str, str]
    """What the worker is."""
    limits: Mapping[str, float]
    """The worker's settings that limit something, by metric."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric.

    Attributes
    ----------
    name
        Its name, without `forks_` and, of a counter, without `_total`.
    kind
        What it is.
    text
        What it means.
    labels
        Names of its labels.
    samples
        Yields its samples.
    group
        The section of the documentation that it stands in.
    """

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...]
    samples: Callable[[Scrape], Iterable[Sample]]
    group: str

    @property
    def exposed_name(self) -> str:
        """The name that a query uses; that of a histogram has `_bucket`, `_count` or `_sum` behind it."""
        return f"forks_{self.name}" + {"counter": "_total", "info": "_info"}.get(self.kind, "")

    def metric(self, scrape: Scrape) -> Metric:
        """Return the metric of a scrape."""
        name = f"forks_{self.name}"
        if self.kind == "histogram":
            histogram = HistogramMetricFamily(name, self.text, labels=self.labels)
            for labels, found in self.samples(scrape):
                histogram.add_metric(labels, found.buckets, found.sum)
            return histogram
        makers = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "info": InfoMetricFamily}
        family: Any = makers[self.kind](name, self.text, labels=self.labels)
        for labels, value in self.samples(scrape):
            family.add_metric(labels, value)
        metric: Metric = family
        return metric


_Row: TypeAlias = tuple[str, Kind, str, _Labels, Callable[[Scrape], Iterable[Sample]]]
"""The fields of a family, apart from its group."""


def _of_partitions(read: Callable[[PartitionFigures], float | None]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for number, held in scrape.figures.partitions.items():
            if (value := read(held)) is not None:
                yield (str(number),), value

    return samples


def _of_inputs(read: Callable[[InputFigures], float | None]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for number, held in scrape.figures.partitions.items():
            for name in INPUTS:
                if (value := read(getattr(held, name))) is not None:
                    yield (str(number), name), value

    return samples


def _of_tables(read: Callable[[TableFigures], float]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for number, held in scrape.figures.partitions.items():
            for table, found in held.tables.items():
                yield (str(number), table), read(found)

    return samples


def _of_sketches(read: Callable[[Health], float | None]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for number, held in scrape.figures.partitions.items():
            for learner, health in held.sketches.items():
                if (value := read(health)) is not None:
                    yield (str(number), learner), value

    return samples


def _of_compared(read: Callable[[LearnerMetrics], float | None]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for number, held in scrape.figures.partitions.items():
            for learner, standing in held.compared.items():
                if (value := read(standing)) is not None:
                    yield (str(number), learner), value

    return samples


def _of_counts(
    read: Callable[[CountFigures], Mapping[str, int] | int],
) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for number, counts in scrape.figures.counts.items():
            found = read(counts)
            if isinstance(found, Mapping):
                for name, count in found.items():
                    yield (str(number), name), count
            else:
                yield (str(number),), found

    return samples


def _of_windows(read: Callable[[QualityFigures], float | None]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for number, window in scrape.figures.windows.items():
            for learner, quality in window.learners.items():
                if (value := read(quality)) is not None:
                    yield (str(number), learner), value

    return samples


def _of_clients(read: Callable[[ClientFigures], float]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for role, client in scrape.figures.clients.items():
            yield (role,), read(client)

    return samples


def _of_brokers(read: Callable[[BrokerFigures], float]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for role, client in scrape.figures.clients.items():
            for broker, found in client.brokers.items():
                yield (role, str(broker)), read(found)

    return samples


def _worker(read: Callable[[Scrape], float | None]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        if (value := read(scrape)) is not None:
            yield (), value

    return samples


def _histograms(name: str) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for label, found in scrape.figures.histograms.get(name, {}).items():
            yield (label,) if label else (), found

    return samples


def _states(scrape: Scrape) -> Iterator[Sample]:
    for number, current in scrape.figures.states.items():
        for state in PARTITION_STATES:
            yield (str(number), state), float(state == current)


def _restores(scrape: Scrape) -> Iterator[Sample]:
    for number in scrape.figures.states:
        yield (str(number),), scrape.figures.records_left.get(number, 0)


def _reasons(scrape: Scrape) -> Iterator[Sample]:
    found = {reason.code for reason in scrape.reasons}
    for code in CODES:
        yield (code,), float(code in found)


def _restarts(scrape: Scrape) -> Iterator[Sample]:
    for reason in RESTART_REASONS:
        yield (reason,), scrape.figures.restarts.get(reason, 0)


def _window_events(scrape: Scrape) -> Iterator[Sample]:
    for number, window in scrape.figures.windows.items():
        yield (str(number),), window.events


def _drift(read: str) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for number, drift in scrape.figures.drift.items():
            yield (str(number),), getattr(drift, read)

    return samples


def _singular_values(scrape: Scrape) -> Iterator[Sample]:
    for number, held in scrape.figures.partitions.items():
        for learner, health in held.sketches.items():
            values = health.singular_values
            if values:
                for name, place in (("largest", 0), ("median", len(values) // 2), ("smallest", -1)):
                    yield (str(number), learner, name), values[place]


def _registry(scrape: Scrape) -> Iterator[Sample]:
    registry = scrape.figures.registry
    if registry is not None:
        for answer in ("found", "unknown", "failed"):
            yield (answer,), getattr(registry, answer)


def _registry_away(scrape: Scrape) -> float | None:
    registry = scrape.figures.registry
    return None if registry is None else float(registry.away)


def _limit(name: str) -> Callable[[Scrape], Iterator[Sample]]:
    return _worker(lambda scrape: scrape.limits[name])


def _limit_row(name: str, text: str) -> _Row:
    return name, "gauge", text, (), _limit(name)


def _info(scrape: Scrape) -> Iterator[Sample]:
    yield (), scrape.info


RESTART_REASONS: Final = ("authorization", *ERROR_CLASSES, "timeout", "other")
"""Classes of errors that end sessions: see `pipeline.kafka.access.errors.error_class`."""
PARTITION_STATES: Final = ("closed", "restoring", "running", "kept")
"""The states of a partition: see `pipeline.worker.partition.PartitionState`."""
LIMITS: Final = (
    ("buffer_limit_bytes", "Bytes that may be read ahead: `worker.buffer`."),
    ("pending_predictions_limit", "In each partition: `join.max_pending`."),
    ("closed_events_limit", "In each partition: `join.max_closed`."),
    ("early_label_limit_bytes", "In each partition: `join.early_bytes`."),
    ("entities_limit", "In each table of each partition: `features.max_entities`."),
    ("dead_letters_per_minute_limit", "In each partition: `worker.dead_letters`."),
)
"""Settings that limit something."""


def _group(group: str, *families: _Row) -> list[Family]:
    return [Family(*family, group) for family in families]


P, PI, PT, PL = ("partition",), ("partition", "input"), ("partition", "table"), ("partition", "learner")

FAMILIES: Final[Sequence[Family]] = [
    *_group(
        "Health",
        ("worker", "info", "The worker: its name, group and versions.", (), _info),
        ("ready", "gauge", "1 if `/readyz` answers 200.", (), _worker(lambda s: float(not s.reasons))),
        ("not_ready", "gauge", "1 for each reason why the worker is not ready.", ("reason",), _reasons),
        (
            "loop_age_seconds",
            "gauge",
            "Time since the worker's loop came round.",
            (),
            _worker(lambda s: s.now - s.vitals.beat),
        ),
        (
            "session_restarts",
            "counter",
            'Sessions that ended with an error ("starting over"), by class of error.',
            ("reason",),
            _restarts,
        ),
        (
            "rebalances",
            "counter",
            "Assignments received from the group.",
            (),
            _worker(lambda s: s.figures.rebalances),
        ),
    ),
    *_group(
        "Records",
        (
            "input_records",
            "counter",
            "Records of the inputs that were processed and committed.",
            ("partition", "topic"),
            _of_counts(attrgetter("inputs")),
        ),
        (
            "output_records",
            "counter",
            "Records that were committed to the output topics.",
            ("partition", "topic"),
            _of_counts(attrgetter("outputs")),
        ),
        (
            "outcomes",
            "counter",
            "Outcomes that were committed, by what became of the prediction.",
            ("partition", "status"),
            _of_counts(attrgetter("outcomes")),
        ),
        (
            "dead_letters",
            "counter",
            "Records that could not be used, by reason.",
            ("partition", "reason"),
            _of_counts(attrgetter("dead_letters")),
        ),
        (
            "duplicates",
            "counter",
            "Records of the inputs that repeat one before, and were ignored.",
            ("partition", "topic"),
            _of_counts(attrgetter("duplicates")),
        ),
        (
            "labels_before_interaction",
            "counter",
            "Labels that came before their interaction, and had to wait.",
            P,
            _of_counts(attrgetter("early")),
        ),
        (
            "crowded_out",
            "counter",
            "Predictions that expired before their time, because `join.max_pending` waited.",
            P,
            _of_counts(attrgetter("crowded_out")),
        ),
    ),
    *_group(
        "Keeping up",
        (
            "input_lag_records",
            "gauge",
            "Records between the last one processed and the end of the input, as the client knows it from "
            "its last fetch.",
            PI,
            _of_inputs(attrgetter("lag")),
        ),
        (
            "event_time_lag_seconds",
            "gauge",
            "Time from the newest event processed to now; 0 where nothing is left to process.",
            P,
            _of_partitions(attrgetter("event_time_lag")),
        ),
        (
            "stream_time_seconds",
            "gauge",
            "Time of the newest event processed, since 1970.",
            P,
            _of_partitions(attrgetter("stream_time")),
        ),
        (
            "prediction_latency_seconds",
            "histogram",
            "Time from an event to the commit of its prediction, of some predictions of each batch.",
            (),
            _histograms("prediction_latency_seconds"),
        ),
        (
            "batch_steps",
            "histogram",
            "Messages, and predictions and early labels whose time ran out, in a partition's batch.",
            (),
            _histograms("batch_steps"),
        ),
        (
            "stage_duration_seconds",
            "histogram",
            "Duration of each stage of the loop. `poll` includes the wait for a first message, `wait` is "
            "that for the transaction before.",
            ("stage",),
            _histograms("stage_duration_seconds"),
        ),
        (
            "input_buffered_messages",
            "gauge",
            "Messages that were read and not yet processed.",
            PI,
            _of_inputs(attrgetter("buffered_messages")),
        ),
        (
            "input_buffered_bytes",
            "gauge",
            "Bytes of the messages that were read and not yet processed.",
            PI,
            _of_inputs(attrgetter("buffered_bytes")),
        ),
        (
            "input_paused",
            "gauge",
            "1 while the input is not read, because enough is buffered or messages wait for their schema.",
            PI,
            _of_inputs(attrgetter("paused")),
        ),
        (
            "input_held_messages",
            "gauge",
            "Messages that wait for their schema, which the registry has not answered yet.",
            PI,
            _of_inputs(attrgetter("held_messages")),
        ),
        (
            "dead_letters_this_minute",
            "gauge",
            "Dead letters of the current minute.",
            P,
            _of_partitions(attrgetter("dead_letters_this_minute")),
        ),
        (
            "held_back",
            "gauge",
            "1 while the partition is paused because it has too many dead letters.",
            P,
            _of_partitions(attrgetter("held_back")),
        ),
    ),
    *_group(
        "Transactions",
        (
            "transaction_duration_seconds",
            "histogram",
            "Time to send the records of a transaction and to commit it, once they are encoded.",
            (),
            _histograms("transaction_duration_seconds"),
        ),
        (
            "transactions",
            "counter",
            "Transactions that were committed.",
            (),
            _worker(lambda s: s.figures.transactions),
        ),
        (
            "transaction_failures",
            "counter",
            "Transactions that failed, or of which that is not known.",
            (),
            _worker(lambda s: s.figures.transaction_failures),
        ),
        (
            "commit_age_seconds",
            "gauge",
            "Time since the transaction under way began; 0 if there is none.",
            (),
            _worker(lambda s: 0.0 if s.vitals.commit_since is None else s.now - s.vitals.commit_since),
        ),
        (
            "since_commit_seconds",
            "gauge",
            "Time since the last commit.",
            (),
            _worker(lambda s: None if s.vitals.last_commit is None else s.now - s.vitals.last_commit),
        ),
    ),
    *_group(
        "State and snapshots",
        ("partition_state", "gauge", "1 for the partition's state, else 0.", ("partition", "state"), _states),
        (
            "restore_records_left",
            "gauge",
            "Records that are still to be read while the partition is restored.",
            P,
            _restores,
        ),
        (
            "restore_duration_seconds",
            "histogram",
            "Time from the assignment of a partition to its first message.",
            (),
            _histograms("restore_duration_seconds"),
        ),
        (
            "snapshot_age_seconds",
            "gauge",
            "Time since the last snapshot was written, or the partition restored.",
            P,
            _of_partitions(attrgetter("snapshot_age")),
        ),
        (
            "snapshot_outcomes_behind",
            "gauge",
            "Outcomes learned since the last snapshot, which a restart learns again.",
            P,
            _of_partitions(attrgetter("snapshot_outcomes_behind")),
        ),
        (
            "snapshot_size_bytes",
            "gauge",
            "Size of the last snapshot that this worker has written.",
            P,
            _of_partitions(attrgetter("snapshot_size")),
        ),
        (
            "snapshots",
            "counter",
            "Snapshots that were committed.",
            P,
            _of_counts(attrgetter("snapshots")),
        ),
        (
            "pending_predictions",
            "gauge",
            "Predictions that wait for their label.",
            P,
            _of_partitions(attrgetter("pending_predictions")),
        ),
        (
            "closed_events",
            "gauge",
            "Closed events by which duplicates and late labels are recognised.",
            P,
            _of_partitions(attrgetter("closed_events")),
        ),
        (
            "early_labels",
            "gauge",
            "Labels that wait for their interaction.",
            P,
            _of_partitions(attrgetter("early_labels")),
        ),
        (
            "early_label_bytes",
            "gauge",
            "Bytes of the labels that wait for their interaction.",
            P,
            _of_partitions(attrgetter("early_label_bytes")),
        ),
        (
            "entities",
            "gauge",
            "Entities that running statistics are kept for, by table.",
            PT,
            lambda scrape: (
                ((str(number), table), count)
                for number, held in scrape.figures.partitions.items()
                for table, count in held.entities.items()
            ),
        ),
        (
            "published_outcomes",
            "gauge",
            "Outcomes published to the other partitions.",
            P,
            _of_partitions(attrgetter("published_outcomes")),
        ),
        (
            "outcomes_of_others",
            "gauge",
            "Outcomes of other partitions learned since the partition was assigned.",
            P,
            _of_partitions(attrgetter("outcomes_of_others")),
        ),
        (
            "held_share_bytes",
            "gauge",
            "Bytes of shared outcomes that were received and not yet learned.",
            P,
            _of_partitions(attrgetter("held_share_bytes")),
        ),
        (
            "asked_labels",
            "gauge",
            "Predictions whose label was requested.",
            P,
            _of_partitions(attrgetter("asked_labels")),
        ),
        (
            "unasked_labels",
            "gauge",
            "Labels that were joined, but not requested.",
            P,
            _of_partitions(attrgetter("unasked_labels")),
        ),
        ("table_rows", "gauge", "Rows of the live table.", PT, _of_tables(attrgetter("rows"))),
        (
            "table_queued",
            "gauge",
            "Records that were read and wait for the time from which on they hold.",
            PT,
            _of_tables(attrgetter("queued")),
        ),
        (
            "table_applied",
            "gauge",
            "Records applied since the partition was assigned.",
            PT,
            _of_tables(attrgetter("applied")),
        ),
        (
            "table_rejected",
            "gauge",
            "Records that could not be used since the partition was assigned.",
            PT,
            _of_tables(attrgetter("rejected")),
        ),
        (
            "table_lost_versions",
            "gauge",
            "1 if compaction had taken away versions, so that the table was not restored as it was.",
            PT,
            _of_tables(attrgetter("lost_versions")),
        ),
    ),
    *_group(
        "Quality",
        (
            "window_events",
            "gauge",
            "Labelled events in the window of the metrics below: the partition's last 10,000 since it was "
            "assigned.",
            P,
            _window_events,
        ),
        (
            "window_mistakes_ratio",
            "gauge",
            "Share of events of the other class than predicted.",
            PL,
            _of_windows(attrgetter("mistakes")),
        ),
        ("window_auc", "gauge", "Area under the ROC curve.", PL, _of_windows(attrgetter("auc"))),
        (
            "window_log_loss",
            "gauge",
            "Mean log loss, of a learner whose scores are log-odds.",
            PL,
            _of_windows(attrgetter("log_loss")),
        ),
        (
            "window_calibration_error_ratio",
            "gauge",
            "Expected calibration error over ten bins, of a learner whose scores are log-odds.",
            PL,
            _of_windows(attrgetter("calibration_error")),
        ),
        (
            "window_mean_absolute_error",
            "gauge",
            "Mean absolute error in the unit of the labels, where numbers are predicted.",
            PL,
            _of_windows(attrgetter("mean_absolute_error")),
        ),
        (
            "window_root_mean_squared_error",
            "gauge",
            "Root mean squared error in the unit of the labels, where numbers are predicted.",
            PL,
            _of_windows(attrgetter("root_mean_squared_error")),
        ),
        (
            "drift_evidence",
            "gauge",
            "Evidence that the champion makes more errors than the running means, beyond a tolerance.",
            P,
            _drift("evidence"),
        ),
        (
            "drift_threshold",
            "gauge",
            "Evidence at which there is an alarm: the average number of labelled events to a false one, at "
            "least.",
            P,
            _drift("threshold"),
        ),
        (
            "drift_alarms",
            "counter",
            "Alarms of drift. After each, evidence begins anew.",
            P,
            _drift("alarms"),
        ),
        (
            "compared_events",
            "counter",
            "Labelled events since the partition was assigned, where there are challengers.",
            PL,
            _of_compared(attrgetter("events")),
        ),
        (
            "compared_mistakes",
            "counter",
            "Labelled events that the learner predicted wrongly, where classes are predicted.",
            PL,
            _of_compared(attrgetter("mistakes")),
        ),
        (
            "compared_log_loss",
            "counter",
            "Sum of the learner's log loss over labelled events, in nats, where its scores are log-odds.",
            PL,
            _of_compared(attrgetter("log_loss")),
        ),
        (
            "compared_absolute_error",
            "counter",
            "Sum of |prediction - label| over labelled events, where numbers are predicted.",
            PL,
            _of_compared(attrgetter("absolute_error")),
        ),
        (
            "compared_squared_error",
            "counter",
            "Sum of (prediction - label)^2 over labelled events, where numbers are predicted.",
            PL,
            _of_compared(attrgetter("squared_error")),
        ),
    ),
    *_group(
        "Sketch",
        (
            "sketch_stage",
            "gauge",
            "1 until the budget is full, then 2.",
            PL,
            _of_sketches(attrgetter("stage")),
        ),
        ("sketch_points", "gauge", "Stored points.", PL, _of_sketches(attrgetter("stored_points"))),
        (
            "sketch_rank",
            "gauge",
            "Singular values that are not negligible.",
            PL,
            _of_sketches(attrgetter("rank")),
        ),
        (
            "sketch_singular_value",
            "gauge",
            "The largest, the median and the smallest singular value.",
            ("partition", "learner", "which"),
            _singular_values,
        ),
        (
            "sketch_condition",
            "gauge",
            "Largest singular value over the smallest that is not negligible.",
            PL,
            _of_sketches(attrgetter("condition")),
        ),
        (
            "sketch_map_changes",
            "gauge",
            "Changes of the feature map since stage 2 began.",
            PL,
            _of_sketches(attrgetter("map_changes")),
        ),
        (
            "sketch_evictions",
            "gauge",
            "Stored points that were evicted for newer ones.",
            PL,
            _of_sketches(attrgetter("evictions")),
        ),
        (
            "sketch_changes_since_refresh",
            "gauge",
            "Changes of the map since the decomposition was last computed anew.",
            PL,
            _of_sketches(attrgetter("changes_since_refresh")),
        ),
        (
            "sketch_events_since_map_change",
            "gauge",
            "Events learned since the map changed last.",
            PL,
            _of_sketches(attrgetter("updates_since_map_change")),
        ),
    ),
    *_group(
        "Brokers and registry",
        (
            "broker_up",
            "gauge",
            "1 if the client is connected to the broker.",
            ("client", "broker"),
            _of_brokers(attrgetter("up")),
        ),
        (
            "broker_round_trip_mean_seconds",
            "gauge",
            "Mean time from a request to its answer, over five seconds. A fetch "
            "waits for records at the broker.",
            ("client", "broker"),
            _of_brokers(attrgetter("mean_round_trip")),
        ),
        (
            "broker_round_trip_p99_seconds",
            "gauge",
            "99th percentile of the same.",
            ("client", "broker"),
            _of_brokers(attrgetter("p99_round_trip")),
        ),
        (
            "broker_errors",
            "counter",
            "Requests that failed or were not answered in time. Begins anew with each session, as the "
            "next two.",
            ("client", "broker"),
            _of_brokers(attrgetter("errors")),
        ),
        (
            "client_sent_bytes",
            "counter",
            "Bytes sent to brokers.",
            ("client",),
            _of_clients(attrgetter("sent_bytes")),
        ),
        (
            "client_received_bytes",
            "counter",
            "Bytes received from brokers.",
            ("client",),
            _of_clients(attrgetter("received_bytes")),
        ),
        (
            "client_queued_messages",
            "gauge",
            "Of the producer, messages not yet acknowledged; of the consumer, messages fetched and not "
            "yet read.",
            ("client",),
            _of_clients(attrgetter("queued_messages")),
        ),
        (
            "client_queued_bytes",
            "gauge",
            "Bytes of the same.",
            ("client",),
            _of_clients(attrgetter("queued_bytes")),
        ),
        (
            "client_waiting_requests",
            "gauge",
            "Requests that wait to be sent or to be answered.",
            ("client",),
            _of_clients(attrgetter("waiting_requests")),
        ),
        (
            "registry_away",
            "gauge",
            "1 while the schema registry does not answer.",
            (),
            _worker(_registry_away),
        ),
        (
            "registry_lookups",
            "counter",
            "Questions to the schema registry, by their answer.",
            ("answer",),
            _registry,
        ),
    ),
    *_group("Limits", *[_limit_row(name, text) for name, text in LIMITS]),
]
"""All metrics of a worker, in the order in which they are documented. `ProcessCollector` adds its own."""
