"""A scrape and the status of a worker against the record of both: `scrape.txt` and `status.json`.

`python -m tests.pipeline.monitoring.test_scrape` writes the record anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import msgspec
import orjson
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pipeline.config.settings import Config, Metrics
from pipeline.model.comparison import LearnerMetrics
from pipeline.monitoring.families import WorkerCollector
from pipeline.monitoring.metrics import PartitionMetrics, TableMetrics
from pipeline.monitoring.monitor import Monitor
from pipeline.monitoring.quality import LearnerQuality, WindowMetrics
from pipeline.monitoring.readiness import not_ready
from pipeline.monitoring.status import history_of, status_of
from pipeline.task.task import Task
from pipeline.worker.metrics import partition_metrics, registry_metrics
from pipeline.worker.partition import Partition
from pipeline.worker.source import ConsumerSource
from tests.pipeline.monitoring.test_monitor import BROKER
from tests.support.builders import ALL, CHALLENGERS, feed_all, inputs, interaction, label, new_model, new_task

CONFIG: Final = Config(metrics=Metrics(address="127.0.0.1:1"))
INFO: Final = {"worker": "w", "group": "g", "version": "1"}
SCRAPE: Final = Path(__file__).with_name("scrape.txt")
STATUS: Final = Path(__file__).with_name("status.json")
BEGIN: Final = 1_000_000_000.0
"""The time at which the worker begins."""
STATISTICS: Final = {
    "type": "consumer",
    "brokers": {"a": BROKER},
    "topics": {"t": {"partitions": {"0": {"partition": 0, "fetchq_cnt": 7, "fetchq_size": 700}}}},
    "msg_cnt": 3,
    "msg_size": 30,
    "tx_bytes": 10,
    "rx_bytes": 20,
}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        ticks = count()
        patch.setattr(time, "monotonic", lambda: self.now)
        patch.setattr(time, "time", lambda: BEGIN + self.now)
        patch.setattr("pipeline.worker.metrics.wall_clock", lambda: int(1000 * (BEGIN + self.now)))
        patch.setattr(time, "perf_counter", lambda: 0.004 * next(ticks))


def source() -> ConsumerSource:
    found = SimpleNamespace(
        lookup=SimpleNamespace(away=True, found=3, unknown=1, failed=2),
        lag=lambda *_: (5, None),
        paused=lambda *_: (True, False),
        held=lambda *_: (2, 0),
    )
    return cast(ConsumerSource, found)


def running_partition(task: Task) -> PartitionMetrics:
    """What is known of a partition that runs a task, which is not all that it can have."""
    partition = SimpleNamespace(
        number=task.partition,
        task=task,
        queues=(task.interactions, task.labels),
        throttle=SimpleNamespace(dead_letters=4, active=True),
        snapshot_age=12.5,
        outcomes_since_snapshot=30,
    )
    found = partition_metrics(cast(Partition, partition), source(), 4096)
    compared = {"numbers": LearnerMetrics(10, absolute_error=2.5, squared_error=1.5)}
    return found._replace(
        tables={"items": TableMetrics(5, 1, 7, 2, 1)}, compared={**found.compared, **compared}
    )


def worked(clock: Clock) -> Monitor:
    """The monitor of a worker that runs partition 0, restores 1, had 2, and is to lose all of them."""
    monitor = Monitor(CONFIG.metrics)
    statistics = monitor.statistics_of("consumer")
    assert statistics is not None
    statistics(orjson.dumps(STATISTICS).decode())
    monitor.session_failed("timeout", "no answer")
    clock.now += 1.0
    monitor.session_begun()
    monitor.assigned([0, 1])
    clock.now += 2.0
    monitor.restoring({0: 0, 1: 500})
    task = new_task(model=new_model(challengers=CHALLENGERS))
    monitor.running(task, restored=True)

    def update() -> None:
        monitor.update(
            {0: "running", 1: "restoring", 2: "closed"},
            lambda _: {0: running_partition(task)},
            lambda: registry_metrics(source()),
        )

    update()
    events = [interaction(f"e{n}", 10 * n, n % 3, n % 5) for n in range(60)]
    labels = [label(f"e{n}", 10 * n + 15, float(n % 2), n % 3, n % 5) for n in range(40)]
    feed_all(task, inputs([*events, events[-1], b"{"], [*labels, labels[-1], label("x", 600)]))
    number = 0
    while not (batch := task.advance(50)).empty:
        number += 1
        monitor.processed([(task, batch)])
        monitor.committing([task])
        for name in ("poll", "process", "write"):
            with monitor.stage(name):
                clock.now += 1.75
        monitor.committed(0.02 * number, 0.003)
        monitor.count(task, batch, 700 * number, snapshot_size=4096 if number == 2 else None)
        monitor.beat()
        update()
    assert task.advance(ALL).empty
    monitor.committing([task])
    clock.now += 1.5
    update()
    numbers = WindowMetrics(
        9, {"numbers": LearnerQuality("numbers", mean_absolute_error=3.5, root_mean_squared_error=5.0)}
    )
    monitor.metrics = monitor.metrics._replace(windows={**monitor.metrics.windows, 2: numbers})
    clock.now += 0.25
    return monitor


def scrape(monitor: Monitor) -> list[str]:
    collector = cast(CollectorRegistry, WorkerCollector(monitor, CONFIG, INFO))
    return generate_latest(collector).decode().splitlines()


def status(monitor: Monitor, clock: Clock) -> dict[str, Any]:
    """The answers for the status page."""
    now, vitals = clock.now, monitor.vitals
    found = status_of(
        monitor.metrics, vitals, not_ready(vitals, now), INFO, now=now, clock=BEGIN + now, begun=90.0
    )
    history = history_of(monitor.metrics.history)
    decoded: dict[str, Any] = orjson.loads(
        b'{"status":%b,"history":%b}' % (msgspec.json.encode(found), msgspec.json.encode(history))
    )
    return decoded


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def split(lines: list[str]) -> Mapping[str, float]:
    """The samples of a scrape; its comments have the value 0."""
    found = {}
    for line in lines:
        name, _, value = (line, "", "0") if line.startswith("#") else line.rpartition(" ")
        assert name not in found
        found[name] = float(value)
    return found


def test_a_scrape_is_that_of_the_record(clock: Clock) -> None:
    found, expected = split(scrape(worked(clock))), split(SCRAPE.read_text().splitlines())
    assert list(found) == list(expected)
    assert found == pytest.approx(expected)


def test_the_status_is_that_of_the_record(clock: Clock) -> None:
    found, expected = status(worked(clock), clock), orjson.loads(STATUS.read_bytes())
    assert list(leaves(found)) == list(leaves(expected))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of an object by their paths, in order."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in pairs:
            yield from leaves(each, f"{path}/{key}")
        if not value:
            yield path, value
    else:
        yield path, pytest.approx(value) if isinstance(value, float) else value


def test_series_of_partitions_end_with_the_session_and_what_was_counted_stays(clock: Clock) -> None:
    monitor = worked(clock)

    def metrics() -> set[str]:
        """The metrics that have a series of partition 0."""
        return {name.partition("{")[0] for name in split(scrape(monitor)) if 'partition="0"' in name}

    before, clients = metrics(), [line for line in scrape(monitor) if 'client="consumer"' in line]
    monitor.session_ended()
    counted = {"input_records", "output_records", "outcomes", "dead_letters", "duplicates", "crowded_out"}
    counted |= {"labels_before_interaction", "snapshots", "drift_alarms", "dead_letters_cut"}
    kept = {f"forks_{name}_total" for name in counted} | {
        "forks_partition_state",
        "forks_restore_records_left",
        "forks_drift_evidence",
        "forks_drift_threshold",
    }
    windows = {name for name in before if name.startswith("forks_window_")}
    assert metrics() == kept | windows
    assert len(before - metrics()) > 30
    assert clients
    assert not any('client="consumer"' in line for line in scrape(monitor))
    monitor._updated = 0.0
    monitor.update({0: "closed"}, lambda _: {}, lambda: None)
    assert metrics() == kept
    assert "forks_transaction_failures_total 1.0" in scrape(monitor)


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        moved = Clock(patch)
        shown = worked(moved)
        SCRAPE.write_text("\n".join(scrape(shown)) + "\n")
        STATUS.write_bytes(orjson.dumps(status(shown, moved), option=orjson.OPT_INDENT_2) + b"\n")
