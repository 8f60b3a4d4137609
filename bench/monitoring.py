"""What metrics cost: events a second of a worker with `metrics.address` beside one without.

Both read the same logs of the same broker, in one partition, one after the other, and the order changes from
round to round. The one with metrics is scraped every five seconds.

From round to round the rate of one worker varies by more than metrics cost. So what they cost is also timed
within a worker: the functions that count, and that take statistics of librdkafka, beside all that its thread
does.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil

from bench.deployment import Deployment, invented
from bench.group_progress import CommittedOffsets, Throughput, measure_throughput
from bench.options import Options
from bench.profile import measure_stages
from bench.throughput_comparison import compare_throughput, with_own_outputs
from pipeline.broker.launch import free_ports
from pipeline.broker.temporary import temporary_broker

REPETITIONS: Final = 5
EVENTS: Final = 200_000
SCRAPE_INTERVAL: Final = 5.0
"""Seconds between two scrapes."""

_MONITOR: Final = "pipeline.monitoring.monitor.Monitor"
COUNTING: Final = MappingProxyType(
    {
        "metrics": (
            *(f"{_MONITOR}.{name}" for name in ("count", "processed", "committing", "committed", "update")),
            "pipeline.monitoring.client_statistics.ClientStatistics.__call__",
        )
    }
)
"""What a worker's thread does for its metrics."""


def run(options: Options) -> dict[str, Any]:
    """Return events a second and microseconds of the processor an event of both, and the ratios."""
    result = compare_throughput(options, {"with": _with_metrics, "without": _without}, EVENTS, REPETITIONS)
    rounds: list[Mapping[str, Mapping[str, float]]] = result["rounds"]
    logs = [math.log(one["with"]["events_per_s"] / one["without"]["events_per_s"]) for one in rounds]
    return {
        "ratio": round(result["with_events_per_s"] / result["without_events_per_s"], 3),
        "mean_ratio": round(math.exp(fmean(logs)), 3),
        "standard_error": round(stdev(logs) / math.sqrt(len(logs)), 3) if len(logs) > 1 else None,
        "cpu_ratio": round(result["with_cpu_us"] / result["without_cpu_us"], 3),
        "share": _share(options),
        **result,
    }


def _share(options: Options) -> list[float]:
    """Return the share of metrics in the time that a worker's thread is at work, of each round."""
    count, found = options.events or EVENTS, []
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder = Path(name)
        events = invented(folder, count)
        for number in range(options.runs or REPETITIONS):
            [port] = free_ports(1)
            more = f'[metrics]\naddress = "{port}"\n'
            deployment = Deployment.create(folder, bootstrap, f"share-{number}", more=more)
            deployment.send(events)
            with _scraped(f"http://127.0.0.1:{port}/metrics"):
                stages = measure_stages(deployment, count, COUNTING)
            found.append(round(stages["metrics"]["cpu_us"] / stages["all"]["cpu_us"], 5))
            options.say(f"round {number + 1}: metrics take {found[-1]:.2%} of the thread's processor time")
    return found


def _with_metrics(deployment: Deployment, count: int, broker: psutil.Process) -> Throughput:
    [port] = free_ports(1)
    with _scraped(f"http://127.0.0.1:{port}/metrics"):
        return _measure(deployment, "with", f'[metrics]\naddress = "{port}"\n', count, broker)


def _without(deployment: Deployment, count: int, broker: psutil.Process) -> Throughput:
    return _measure(deployment, "without", "", count, broker)


def _measure(inputs: Deployment, name: str, more: str, count: int, broker: psutil.Process) -> Throughput:
    """Let a worker with outputs of its own go through the inputs of a deployment."""
    own = with_own_outputs(inputs, name, more)
    committed = CommittedOffsets(inputs.config.kafka, own.config.kafka.group)
    with own.worker() as process:
        return measure_throughput(committed, count, [process], broker)


@contextmanager
def _scraped(url: str) -> Iterator[None]:
    """Scrape inside the block."""
    ended = threading.Event()

    def scrape() -> None:
        while not ended.wait(SCRAPE_INTERVAL):
            try:
                with urlopen(url, timeout=SCRAPE_INTERVAL) as answer:
                    answer.read()
            except HTTPError as error:
                error.close()
            except OSError:
                pass

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
