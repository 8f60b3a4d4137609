"""What metrics cost: events a second of a worker with `metrics.address` beside one without.

Both read the same logs of the same broker, in one partition, one after the other, and the order changes from
round to round. The one with metrics is scraped every five seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.request import urlopen

import psutil

from bench.deployment import Deployment
from bench.group_progress import CommittedOffsets, Throughput, measure_throughput
from bench.options import Options
from bench.throughput_comparison import compare_throughput
from pipeline.broker.launch import free_ports

REPETITIONS: Final = 5
EVENTS: Final = 200_000
SCRAPE_INTERVAL: Final = 5.0
"""Seconds between two scrapes."""


def run(options: Options) -> dict[str, Any]:
    """Return events a second and microseconds of the processor an event of both, and the ratios."""
    result = compare_throughput(options, {"with": _with_metrics, "without": _without}, EVENTS, REPETITIONS)
    return {
        "ratio": round(result["with_events_per_s"] / result["without_events_per_s"], 3),
        "cpu_ratio": round(result["with_cpu_us"] / result["without_cpu_us"], 3),
        **result,
    }


def _with_metrics(deployment: Deployment, count: int, broker: psutil.Process) -> Throughput:
    [port] = free_ports(1)
    with _scraped(f"http://127.0.0.1:{port}/metrics"):
        return _measure(deployment, "with", f'[metrics]\naddress = "{port}"\n', count, broker)


def _without(deployment: Deployment, count: int, broker: psutil.Process) -> Throughput:
    return _measure(deployment, "without", "", count, broker)


def _measure(inputs: Deployment, name: str, more: str, count: int, broker: psutil.Process) -> Throughput:
    """Let a worker with outputs of its own go through the inputs of a deployment."""
    kafka, folder = inputs.config.kafka, inputs.file.parent
    own = Deployment.create(
        folder,
        kafka.bootstrap,
        f"{inputs.file.stem}-{name}",
        input_prefix=kafka.prefix,
        more=more,
    )
    committed = CommittedOffsets(kafka, own.config.kafka.group)
    with own.worker() as process:
        return measure_throughput(committed, count, [process], broker)


@contextmanager
def _scraped(url: str) -> Iterator[None]:
    """Scrape inside the block."""
    ended = threading.Event()

    def scrape() -> None:
        while not ended.wait(SCRAPE_INTERVAL):
            with suppress(OSError), urlopen(url, timeout=SCRAPE_INTERVAL) as answer:
                answer.read()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
