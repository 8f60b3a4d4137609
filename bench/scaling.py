"""Events a second by partitions and workers, for each second of the processors too, and what a million take.

All interactions and labels become visible at once, when every worker has its share of the partitions. Workers
are those of `forks run --workers`. On a machine of few cores the rate ends where the cores do, since workers
share them with the broker; what still tells something then is the processors' time for an event. From that
of one worker, `bench.growth` simulates the rates that were measured, and those of machines of more cores.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec
import psutil

from bench.deployment import Deployment, broker_process, invented
from bench.group_progress import CommittedOffsets, Throughput, measure_throughput
from bench.growth import Costs, best_number, simulate
from bench.needs import BUSY, REPLICAS, Event, needs
from bench.open_transaction import OpenTransaction
from bench.options import Options
from bench.recovery_worker import FORKS
from bench.sizes import snapshot_bytes
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.model.factory import ModelFactory
from pipeline.sources.kuairec import Events

REPETITIONS: Final = 3
EVENTS: Final = 200_000
LAYOUTS: Final = ((1, 1), (2, 2), (4, 4), (8, 8), (8, 1))
"""Partitions and workers."""
SECTIONS: Final = '[join]\nmax_idle = "60s"\n[sharing]\ninterval = "off"\n'
"""So much comes at once that one input would be days ahead before the first of the other is fetched, so each
waits for the other. What partitions share costs the more the more of them there are, so it is left out."""
MEASURED: Final = 0.95
"""Share of the events that are measured: behind the last ones, an input waits for more of the other."""
RATE: Final = 1_000_000
"""Rates, in events a second, whose cost is reported."""
CORES: Final = (4, 16, 64)
"""Machines whose rates are simulated."""
TIMEOUT: Final = 180.0
"""Seconds within which all workers have to have their partitions."""
SETTLE: Final = 2.0
"""Seconds after which no further rebalance is expected."""


class Trial(NamedTuple):
    """One crew, once."""

    throughput: Throughput
    thread_share: float
    """Share of the workers' processor time that their busy threads take."""
    mib: float
    """Resident memory of a worker at the end, on average."""
    bytes_per_event: dict[str, float]
    """Of each topic, on the broker's disk."""


def run(options: Options) -> dict[str, Any]:
    """Return a row for each number of partitions and workers, and what `RATE` events a second take."""
    configure()
    count, trials = options.events or EVENTS, {layout: list[Trial]() for layout in LAYOUTS}
    with TemporaryDirectory() as path, temporary_broker() as bootstrap:
        folder = Path(path)
        options.say(f"inventing {count:,} events ...")
        events = invented(folder, count)
        for number in range(options.runs or REPETITIONS):
            for partitions, workers in LAYOUTS:
                name = f"layout-{partitions}-{workers}-{number}"
                deployment = Deployment.create(folder, bootstrap, name, partitions, more=SECTIONS)
                trial = _trial(deployment, events, partitions, workers)
                trials[partitions, workers].append(trial)
                rate, spent = trial.throughput.events_per_s, trial.throughput.cpu_us
                title = f"{partitions} partitions, {workers} workers"
                options.say(f"{title}: {rate:,.0f} events/s, {spent:.1f} us of processors each")
        snapshot = snapshot_bytes(ModelFactory(deployment.config).new_model())
    sizes = [trial.bytes_per_event for trial in trials[1, 1]]
    on_disk = {topic: round(median(size[topic] for size in sizes), 1) for topic in sizes[0]}
    event = _event([trial.throughput for trial in trials[1, 1]], on_disk)
    costs = _costs(event, median(trial.thread_share for trial in trials[1, 1]))
    batch = deployment.config.worker.batch // 2
    return {
        "events": count,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "rows": [
            _row(layout, found) | {"simulated": round(simulate(costs, os.cpu_count() or 1, layout[1], batch))}
            for layout, found in trials.items()
        ],
        "thread_us": round(costs.thread, 2),
        "clients_us": round(costs.clients, 2),
        "machines": [_machine(costs, cores, batch) for cores in CORES],
        "bytes_per_event": on_disk,
        "snapshot_bytes": snapshot,
        "replicas": REPLICAS,
        "busy": BUSY,
        f"for_{RATE}_events_per_s": {name: round(value, 1) for name, value in needs(event, RATE).items()},
    }


def _event(throughputs: Sequence[Throughput], on_disk: Mapping[str, float]) -> Event:
    """Return the figures of an event, of one worker with one partition."""
    figures = Throughput.median(throughputs)
    inputs = on_disk["interactions"] + on_disk["watch-labels"]
    return Event(
        worker_cpu_us=figures.cpu_us,
        broker_cpu_us=figures.broker_cpu_us,
        input_bytes=inputs,
        output_bytes=sum(on_disk.values()) - inputs,
    )


def _costs(event: Event, thread_share: float) -> Costs:
    thread = thread_share * event.worker_cpu_us
    return Costs(thread, event.worker_cpu_us - thread, event.broker_cpu_us)


def _machine(costs: Costs, cores: int, batch: int) -> dict[str, Any]:
    """Return what a machine with the broker on it would do, and how many workers it takes."""
    workers, rate = best_number(costs, cores, batch)
    return {"cores": cores, "workers": workers, "events_per_s": round(rate)}


def _row(layout: tuple[int, int], trials: Sequence[Trial]) -> dict[str, Any]:
    figures = Throughput.median([trial.throughput for trial in trials])
    return {
        "partitions": layout[0],
        "workers": layout[1],
        **figures.figures(),
        "events_per_cpu_s": round(1e6 / figures.cpu_us),
        "mib_per_worker": round(median(trial.mib for trial in trials)),
        "rounds": [round(trial.throughput.events_per_s) for trial in trials],
    }


def _trial(deployment: Deployment, events: Events, partitions: int, workers: int) -> Trial:
    kafka, broker = deployment.config.kafka, broker_process()
    transaction = OpenTransaction(events, kafka).write()
    with _running_workers(deployment, workers) as process:
        _until_shared(deployment, partitions, workers, process)
        processes = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        thread, all_threads = _seconds_of_threads(processes)
        transaction.commit()
        committed = CommittedOffsets(kafka, kafka.group, partitions)
        found = measure_throughput(committed, round(MEASURED * len(events)), processes, broker)
        later, all_later = _seconds_of_threads(processes)
        processed = committed.messages() / 2
        mib = sorted(one.memory_info().rss / 2**20 for one in processes)[-workers:]
    logs = Path(broker.cwd()) / "kafka"
    sizes = {
        topic.removeprefix(kafka.prefix): sum(file.stat().st_size for file in logs.glob(f"{topic}-*/*.log"))
        for topic in deployment.topics.all
    }
    inputs = {topic.removeprefix(kafka.prefix) for topic in deployment.topics.inputs}
    on_disk = {topic: size / (len(events) if topic in inputs else processed) for topic, size in sizes.items()}
    return Trial(found, (later - thread) / (all_later - all_threads), sum(mib) / workers, on_disk)


def _seconds_of_threads(processes: Sequence[psutil.Process]) -> tuple[float, float]:
    """Return the processor time of the first threads of processes, and of all their threads."""
    threads = [(thread.id == each.pid, thread) for each in processes for thread in each.threads()]
    seconds = [(first, thread.user_time + thread.system_time) for first, thread in threads]
    return sum(each for first, each in seconds if first), sum(each for _, each in seconds)


@contextmanager
def _running_workers(deployment: Deployment, workers: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run so many workers; they are killed in the end."""
    command = (*FORKS, "run", "--json", "--config", str(deployment.file), "--workers", str(workers))
    with deployment.log.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _until_shared(
    deployment: Deployment, partitions: int, workers: int, process: subprocess.Popen[bytes]
) -> None:
    """Wait until each worker has partitions, as many as there are in all."""
    end = time.monotonic() + TIMEOUT
    while True:
        shares = {line.get("worker", 0): line["partitions"] for line in _lines(deployment.log, "assigned")}
        if len(shares) == workers and sorted(chain(*shares.values())) == list(range(partitions)):
            break
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the workers did not share the partitions:\n{deployment.log.read_text()}")
        time.sleep(0.1)
    time.sleep(SETTLE)


def _lines(log: Path, event: str) -> list[dict[str, Any]]:
    """Return what a log of JSON lines says of something."""
    whole = [line for line in log.read_bytes().splitlines(keepends=True) if line.endswith(b"}\n")]
    return [line for line in map(msgspec.json.decode, whole) if line["event"] == event]
