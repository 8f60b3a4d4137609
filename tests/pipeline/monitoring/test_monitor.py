from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pipeline.config.settings import Config, Metrics
from pipeline.model.comparison import LearnerMetrics
from pipeline.monitoring.client_statistics import ClientStatistics
from pipeline.monitoring.counts import INPUTS
from pipeline.monitoring.families import WorkerCollector
from pipeline.monitoring.metrics import InputMetrics, PartitionMetrics, RegistryMetrics, TableMetrics
from pipeline.monitoring.monitor import Monitor
from pipeline.task.batch import Batch
from pipeline.task.task import Task
from pipeline.worker.metrics import registry_metrics
from pipeline.worker.source import ConsumerSource
from tests.support.builders import ALL, Message, feed_all, inputs, interaction, label, new_task

CONFIG = Config(metrics=Metrics(address="127.0.0.1:1"))
BROKER = {
    "nodeid": 1,
    "state": "UP",
    "rtt": {"avg": 1_500, "p99": 9_000},
    "txerrs": 1,
    "rxerrs": 2,
    "req_timeouts": 3,
    "outbuf_cnt": 4,
    "waitresp_cnt": 5,
}
"""What librdkafka says of a broker, as far as it is read."""


def exposed(monitor: Monitor) -> list[str]:
    """The samples of a scrape."""
    collector = cast(CollectorRegistry, WorkerCollector(monitor, CONFIG, {"worker": "worker"}))
    lines = generate_latest(collector).decode().splitlines()
    return [line for line in lines if not line.startswith("#")]


def update(monitor: Monitor, partitions: Mapping[int, PartitionMetrics], registry: Any = None) -> None:
    monitor._updated = 0.0
    monitor.update(dict.fromkeys(partitions, "running"), lambda _: partitions, lambda: registry)


def partition_metrics(**changes: Any) -> PartitionMetrics:
    held = dict.fromkeys(INPUTS, InputMetrics(0, 0, False, 0, None))
    found = PartitionMetrics._make([held, None, None, *([0] * 13), None, {}, 0, {}, {}, {}])
    return found._replace(**changes)


def test_challengers_and_tables_have_samples() -> None:
    monitor = Monitor(CONFIG.metrics)
    compared = {"champion": LearnerMetrics(10, 3, 5.5), "linear": LearnerMetrics(10, 4, None)}
    tables = {"items": TableMetrics(5, 1, 7, 2, 0)}
    monitor.metrics = monitor.metrics._replace(
        partitions={7: partition_metrics(compared=compared, tables=tables, entities={"users": 4})}
    )
    lines = exposed(monitor)
    assert sorted(line for line in lines if line.startswith("forks_compared_")) == [
        'forks_compared_events_total{learner="champion",partition="7"} 10.0',
        'forks_compared_events_total{learner="linear",partition="7"} 10.0',
        'forks_compared_log_loss_total{learner="champion",partition="7"} 5.5',
        'forks_compared_mistakes_total{learner="champion",partition="7"} 3.0',
        'forks_compared_mistakes_total{learner="linear",partition="7"} 4.0',
    ]
    assert 'forks_table_applied{partition="7",table="items"} 7.0' in lines
    assert 'forks_entities{partition="7",table="users"} 4.0' in lines


def test_the_schema_registry_has_samples_where_an_input_needs_one() -> None:
    monitor = Monitor(CONFIG.metrics)
    without = cast(ConsumerSource, SimpleNamespace(lookup=None))
    assert registry_metrics(without) is None
    assert not any(line.startswith("forks_registry") for line in exposed(monitor))
    lookup = SimpleNamespace(away=True, found=3, unknown=1, failed=2)
    metrics = registry_metrics(cast(ConsumerSource, SimpleNamespace(lookup=lookup)))
    assert metrics == RegistryMetrics(True, {"found": 3, "unknown": 1, "failed": 2})
    update(monitor, {}, metrics)
    assert [line for line in exposed(monitor) if line.startswith("forks_registry")] == [
        "forks_registry_away 1.0",
        'forks_registry_lookups_total{answer="found"} 3.0',
        'forks_registry_lookups_total{answer="unknown"} 1.0',
        'forks_registry_lookups_total{answer="failed"} 2.0',
    ]


def test_statistics_of_clients_are_in_base_units() -> None:
    statistics = ClientStatistics()
    partitions = {"0": {"partition": 0, "fetchq_cnt": 7, "fetchq_size": 700}}
    partitions["-1"] = {"partition": -1, "fetchq_cnt": 99, "fetchq_size": 99}
    text: dict[str, Any] = {
        "type": "consumer",
        "brokers": {"a": BROKER, "bootstrap": BROKER | {"nodeid": -1, "state": "DOWN"}},
        "topics": {"t": {"partitions": partitions}},
        "msg_cnt": 0,
        "msg_size": 0,
        "tx_bytes": 10,
        "rx_bytes": 20,
    }
    statistics(orjson.dumps(text).decode())
    assert statistics.metrics is not None
    assert statistics.metrics.brokers == {1: (True, 0.0015, 0.009, 6)}
    assert statistics.metrics[1:] == (7, 700, 10, 20, 18)
    statistics(orjson.dumps(text | {"type": "producer", "msg_cnt": 3, "msg_size": 30}).decode())
    assert statistics.metrics[1:3] == (3, 30)


def advance(task: Task, interactions: Sequence[Message], labels: Sequence[Message] = ()) -> Batch:
    """The batch of some messages, which are all that there is."""
    feed_all(task, inputs(interactions, labels))
    return task.advance(ALL)


def commit(monitor: Monitor, task: Task, batch: Batch, size: int | None = None) -> None:
    monitor.committing([task])
    monitor.committed(0.1, 0.0)
    monitor.count(task, batch, 10**12, snapshot_size=size)


def test_only_what_was_committed_counts_and_counts_go_on_after_a_restore() -> None:
    monitor, task = Monitor(CONFIG.metrics), new_task()
    monitor.assigned([0])
    monitor.running(task, restored=True)
    commit(monitor, task, advance(task, [interaction("a", 1)]))
    commit(monitor, task, advance(task, [interaction("b", 2)]))
    monitor.committing([task])
    advance(task, [], [label("a", 3)])  # is never committed
    monitor.session_ended()
    monitor.session_failed("timeout", "no answer")
    assert monitor.metrics.transaction_failures == 1
    other = new_task()
    monitor.session_begun()
    monitor.assigned([0])
    monitor.running(other, restored=True)
    commit(monitor, other, advance(other, [interaction("c", 4)], [label("x", 5)]))
    update(monitor, {})
    counts = monitor.metrics.counts[0]
    assert counts.input_records == {"interactions": 3, "labels": 1}
    assert counts.output_records["predictions"] == 3
    assert counts.output_records["checkpoints"] == 3
    assert counts.labels_before_interaction == 1
    assert (monitor.metrics.transactions, monitor.metrics.restarts) == (3, {"timeout": 1})


def test_without_an_address_only_vitals_are_kept() -> None:
    monitor, task = Monitor(Config().metrics), new_task()
    assert monitor.statistics_of("producer") is None
    monitor.assigned([0])
    monitor.running(task, restored=True)
    commit(monitor, task, advance(task, [interaction("a", 1)]))
    update(monitor, {})
    assert not monitor.metrics.counts
    assert monitor.vitals.last_commit is not None


def test_a_restore_that_reads_nothing_makes_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor, now = Monitor(CONFIG.metrics), time.monotonic()
    monkeypatch.setattr("pipeline.monitoring.monitor.time.monotonic", lambda: now)
    monitor.assigned([0, 1])
    begin = now
    now = begin + 5.0
    monitor.restoring({0: 0, 1: 500})
    now = begin + 9.0
    monitor.restoring({0: 0, 1: 400})
    progress = {number: each.progress - begin for number, each in monitor.vitals.restoring.items()}
    assert progress == {0: 0.0, 1: 9.0}
    monitor.restoring({1: 100})
    assert set(monitor.vitals.restoring) == {1}
