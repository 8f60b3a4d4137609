"""Metrics for Prometheus: what each partition holds, beside its limits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pipeline.config.tree import Config, host_and_port
from pipeline.errors import ConfigError
from pipeline.model.comparison import LearnerMetrics
from pipeline.task.live_tables import LiveTable
from pipeline.worker.partition import Partition
from pipeline.worker.schema_lookup import SchemaLookup
from pipeline.worker.source import ConsumerSource

PARTITION_GAUGES: Final = {
    "pending_predictions": "Predictions that wait for their label.",
    "closed_events": "Closed events by which duplicates and late labels are recognised.",
    "early_labels": "Labels that wait for their interaction.",
    "early_label_bytes": "Bytes of the labels that wait for their interaction.",
    "published_outcomes": "Outcomes published to the other partitions.",
    "outcomes_of_others": "Outcomes of other partitions learned since the partition was assigned.",
    "held_share_bytes": "Bytes of shared outcomes in the inbox that are not yet learned.",
    "asked_labels": "Predictions whose label was requested.",
    "unasked_labels": "Labels that were joined, but not requested.",
    "dead_letters_this_minute": "Dead letters of the current minute.",
    "held_back": "1 while the partition is paused because it has too many dead letters.",
}
INPUT_GAUGES: Final = {
    "buffered_messages": "Messages that were read and not yet processed.",
    "buffered_bytes": "Bytes of the messages that were read and not yet processed.",
    "paused": "1 while the input is not read, because enough is buffered or messages wait for their schema.",
    "held_messages": "Messages that wait for their schema, which the registry has not answered yet.",
}
TABLE_GAUGES: Final = {
    "rows": "Rows of the live table.",
    "queued": "Records that were read and wait for the time from which on they hold.",
    "applied": "Records applied since the partition was assigned.",
    "rejected": "Records that could not be used since the partition was assigned.",
    "lost_versions": "1 if compaction had taken away versions, so that the table was not restored as it was.",
}
ENTITIES: Final = "Entities that running statistics are kept for, by table."
REGISTRY_ANSWERS: Final = ("found", "unknown", "failed")
"""What the schema registry may answer: a schema, that there is none, or nothing."""
COMPARISON_COUNTERS: Final = {
    "events": "Labelled events since the partition was assigned.",
    "mistakes": "Labelled events that the learner predicted wrongly, where classes are predicted.",
    "log_loss": "Sum of the learner's log loss over labelled events, in nats, where its scores are log-odds.",
    "absolute_error": "Sum of |prediction - label| over labelled events, where numbers are predicted.",
    "squared_error": "Sum of (prediction - label)^2 over labelled events, where numbers are predicted.",
}
"""Counters of the champion and the challengers, where there are challengers."""
INPUTS: Final = ("interactions", "labels")
REFRESH_INTERVAL: Final = 1.0
"""Seconds between two updates of the figures."""


class InputFigures(NamedTuple):
    """What an input of a partition held at the last update: see `INPUT_GAUGES`."""

    buffered_messages: int
    buffered_bytes: int
    paused: bool
    held_messages: int = 0


class TableFigures(NamedTuple):
    """What a live table held at the last update: see `TABLE_GAUGES`."""

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
    """What a partition held at the last update: see `PARTITION_GAUGES`."""

    interactions: InputFigures
    labels: InputFigures
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
    entities: Mapping[str, int]
    """By table of the running statistics."""
    compared: Mapping[str, LearnerMetrics]
    """By learner: see `COMPARISON_COUNTERS`."""
    tables: Mapping[str, TableFigures] = MappingProxyType({})
    """By live table."""

    @classmethod
    def of(cls, partition: Partition, source: ConsumerSource) -> PartitionFigures:
        """Return the figures of a running partition."""
        task, throttle = partition.task, partition.throttle
        join, statistics = task.join, task.model.statistics
        paused, waiting = source.paused(partition.number), source.held(partition.number)
        return cls(
            interactions=InputFigures(len(task.interactions), task.interactions.bytes, paused[0], waiting[0]),
            labels=InputFigures(len(task.labels), task.labels.bytes, paused[1], waiting[1]),
            pending_predictions=join.pending_count,
            closed_events=len(join.closed),
            early_labels=len(join.waiting),
            early_label_bytes=join.waiting_bytes,
            published_outcomes=task.outbox.since if task.outbox else 0,
            outcomes_of_others=task.inbox.outcomes,
            held_share_bytes=task.inbox.bytes,
            asked_labels=task.counters["asked"],
            unasked_labels=task.counters["unasked"],
            dead_letters_this_minute=throttle.dead_letters,
            held_back=throttle.active,
            entities={name: len(table) for name, table in statistics.named_tables()},
            compared=task.comparison.learner_metrics if task.comparison else {},
            tables={table.features.name: TableFigures.of(table) for table in task.tables.tables},
        )


class RegistryFigures(NamedTuple):
    """What the schema registry has answered this worker up to the last update: see `REGISTRY_ANSWERS`."""

    away: bool
    found: int
    unknown: int
    failed: int

    @classmethod
    def of(cls, lookup: SchemaLookup) -> RegistryFigures:
        """Return the figures of a worker's questions."""
        return cls(lookup.away, lookup.found, lookup.unknown, lookup.failed)


class Gauges(Collector):
    """The figures of a worker's partitions at their last update, and the worker's limits.

    The worker's loop replaces all figures at once. A scrape runs in a thread of its own and reads only these,
    never what the loop is changing.

    Parameters
    ----------
    config
        The whole configuration.
    """

    def __init__(self, config: Config) -> None:
        self._figures: Mapping[int, PartitionFigures] = {}
        self._updated = 0.0
        self._registry: RegistryFigures | None = None
        self._limits = {
            "buffer_limit_bytes": (config.worker.buffer, "Bytes that may be read ahead: worker.buffer."),
            "pending_predictions_limit": (config.join.max_pending, "In each partition: join.max_pending."),
            "closed_events_limit": (config.join.max_closed, "In each partition: join.max_closed."),
            "early_label_limit_bytes": (config.join.early_bytes, "In each partition: join.early_bytes."),
            "entities_limit": (
                config.features.max_entities,
                "In each table of each partition: features.max_entities.",
            ),
            "dead_letters_per_minute_limit": (
                config.worker.dead_letters,
                "In each partition: worker.dead_letters.",
            ),
        }

    def update(self, partitions: Iterable[Partition], source: ConsumerSource) -> None:
        """Publish the figures of the running partitions, if those before are a second old."""
        if time.monotonic() - self._updated >= REFRESH_INTERVAL:
            self._updated = time.monotonic()
            self._registry = RegistryFigures.of(source.lookup) if source.lookup is not None else None
            self.publish({each.number: PartitionFigures.of(each, source) for each in partitions})

    def publish(self, figures: Mapping[int, PartitionFigures]) -> None:
        """Replace all figures, by partition."""
        self._figures = figures

    def clear(self) -> None:
        """Clear all gauges of partitions."""
        self.publish({})

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of a scrape."""
        figures = self._figures
        for name, (limit, text) in self._limits.items():
            yield GaugeMetricFamily(f"forks_{name}", text, value=limit)
        for name, text in PARTITION_GAUGES.items():
            family = GaugeMetricFamily(f"forks_{name}", text, labels=["partition"])
            for partition, held in figures.items():
                family.add_metric([str(partition)], getattr(held, name))
            yield family
        entities = GaugeMetricFamily("forks_entities", ENTITIES, labels=["partition", "table"])
        for partition, held in figures.items():
            for table, count in held.entities.items():
                entities.add_metric([str(partition), table], count)
        yield entities
        yield from _collect_tables(figures)
        for name, text in INPUT_GAUGES.items():
            family = GaugeMetricFamily(f"forks_input_{name}", text, labels=["partition", "input"])
            for partition, held in figures.items():
                for source in INPUTS:
                    family.add_metric([str(partition), source], getattr(getattr(held, source), name))
            yield family
        yield from self._collect_registry()
        for name, text in COMPARISON_COUNTERS.items():
            counted = CounterMetricFamily(f"forks_compared_{name}", text, labels=["partition", "learner"])
            for partition, held in figures.items():
                for learner, standing in held.compared.items():
                    if (value := getattr(standing, name)) is not None:
                        counted.add_metric([str(partition), learner], value)
            yield counted

    def _collect_registry(self) -> Iterator[Metric]:
        """Return the metrics of the schema registry, where an input needs one."""
        figures = self._registry
        if figures is None:
            return
        yield GaugeMetricFamily(
            "forks_registry_away", "1 while the schema registry does not answer.", value=figures.away
        )
        answers = CounterMetricFamily(
            "forks_registry_lookups", "Questions to the schema registry, by their answer.", labels=["answer"]
        )
        for answer in REGISTRY_ANSWERS:
            answers.add_metric([answer], getattr(figures, answer))
        yield answers


def _collect_tables(figures: Mapping[int, PartitionFigures]) -> Iterator[Metric]:
    """Return the metrics of live tables, where there are some."""
    if not any(held.tables for held in figures.values()):
        return
    for name, text in TABLE_GAUGES.items():
        family = GaugeMetricFamily(f"forks_table_{name}", text, labels=["partition", "table"])
        for partition, held in figures.items():
            for table, found in held.tables.items():
                family.add_metric([str(partition), table], getattr(found, name))
        yield family


@contextmanager
def serve_metrics(gauges: Gauges, address: str | None) -> Iterator[None]:
    """Serve the gauges and the process's own metrics over HTTP.

    Parameters
    ----------
    gauges
        The figures of the partitions.
    address
        Where to listen, ``host:port`` or ``[host]:port``; None to serve nothing.

    Raises
    ------
    ConfigError
        The address cannot be listened on.
    """
    if address is None:
        yield
        return
    registry = CollectorRegistry()
    registry.register(gauges)
    ProcessCollector(registry=registry)
    host, port = host_and_port(address)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise ConfigError(
            f"metrics.address: {address} cannot be listened on: {error.strerror}. Every worker of a machine "
            "needs a port of its own"
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
