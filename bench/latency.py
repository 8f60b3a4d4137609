"""How long after a play a reader sees its prediction, beside a loop that does nothing but Kafka and JSON.

A worker and the loop run on one broker, each on inputs of its own, and are fed in turns with plays and labels
that happen now. Each has been through `WARM_UP_EVENTS` events. Time goes from the call that sends a play to
the one that gives its prediction to a reader of committed records; feeding is a process of its own. A second
worker writes its model whole every second, so that it can be seen what that costs those who wait meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec
import polars as pl

from bench.bare import bare, outputs
from bench.delays import Delay, Listener, Percentiles, split_near
from bench.deployment import Deployment, invented
from bench.feed import feeding, plays
from bench.options import Options
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.config.settings import Kafka
from pipeline.sources.kuairec import Events

REPETITIONS: Final = {100: 3, 1_000: 5, 5_000: 3}
"""How often each rate is tried, in events a second."""
MAIN_RATE: Final = 1_000
"""The rate that counts."""
SECONDS: Final = 6
"""Of a round; the first one does not count."""
WARM_UP_EVENTS: Final = 100_000
"""Events that worker and loop are through before anything is measured."""
NEAR_SECONDS: Final = 0.25
"""An event counts as near a snapshot that is committed within so many seconds after it was sent."""
FREQUENT_SNAPSHOTS: Final = '[checkpoint]\ninterval = "1s"\n'


class System(NamedTuple):
    """Somebody who answers plays."""

    name: str
    kafka: Kafka
    listener: Listener


def run(options: Options) -> dict[str, Any]:
    """Return milliseconds at 1,000 events a second, medians over the rounds, then all rates and rounds."""
    configure()
    with TemporaryDirectory() as name, temporary_broker() as bootstrap, ExitStack() as stack:
        folder = Path(name)
        options.say(f"letting them go through {WARM_UP_EVENTS:,} events ...")
        events = until_now(invented(folder, WARM_UP_EVENTS))

        def filled(name: str, more: str = "") -> Deployment:
            deployment = Deployment.create(folder, bootstrap, name, more=more)
            deployment.send(events)
            return deployment

        systems = [
            stack.enter_context(_pipeline(filled("learning"))),
            stack.enter_context(_bare(filled("copying"))),
        ]
        rows = [_row(options, systems, events, rate) for rate in REPETITIONS]
        often = filled("often", FREQUENT_SNAPSHOTS)
        snapshots = _snapshots(options, stack.enter_context(_pipeline(often)), often, events)
    main = next(row for row in rows if row["rate"] == MAIN_RATE)
    return {
        **{name: value for name, value in main.items() if name != "rounds"},
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "rows": rows,
        "snapshots": snapshots,
    }


def until_now(events: Events) -> Events:
    """Shift events in time, so that the last label is known now."""
    shift = time.time_ns() // 1_000_000 - int(events.frame.select(pl.col("label_timestamp").max()).item())
    times = pl.col("timestamp", "label_timestamp") + shift
    return Events(events.frame.with_columns(times), events.rows, events.skipped)


@contextmanager
def _pipeline(deployment: Deployment) -> Iterator[System]:
    with deployment.worker(), _system("pipeline", deployment, deployment.topics.predictions) as system:
        yield system


@contextmanager
def _bare(deployment: Deployment) -> Iterator[System]:
    config = deployment.config
    with (
        bare(config.kafka, config.worker.batch, wait=0.0),
        _system("bare", deployment, outputs(config.kafka).predictions) as system,
    ):
        yield system


@contextmanager
def _system(name: str, deployment: Deployment, topic: str) -> Iterator[System]:
    """Let somebody who runs already go through what was before."""
    with Listener(deployment.config.kafka, topic) as listener:
        listener.skip(WARM_UP_EVENTS)
        yield System(name, deployment.config.kafka, listener)


def _row(options: Options, systems: Sequence[System], events: Events, rate: int) -> dict[str, Any]:
    """Let both answer at a rate, in turns, and return medians over the rounds."""
    repetitions: list[dict[str, Percentiles]] = []
    for number in range(min(options.runs or REPETITIONS[rate], REPETITIONS[rate])):
        order = systems if number % 2 else systems[::-1]
        found = {system.name: Percentiles.of(_delays(system, events, rate)) for system in order}
        repetitions.append(found)
        p99 = ", ".join(f"{name} {one.p99_ms} ms" for name, one in found.items())
        options.say(f"{rate} events/s, round {number + 1}, p99: {p99}")
    row: dict[str, Any] = {"rate": rate}
    for system in systems:
        middle = map(median, zip(*(found[system.name] for found in repetitions), strict=True))
        row |= {
            f"{system.name}_{name}": value for name, value in zip(Percentiles._fields, middle, strict=True)
        }
    row["ratio"] = round(row["pipeline_p99_ms"] / row["bare_p99_ms"], 2)
    row["rounds"] = [{name: one._asdict() for name, one in found.items()} for found in repetitions]
    return row


def _delays(system: System, events: Events, rate: int) -> list[Delay]:
    """Feed one side for a round and return the delays, without those of the first second."""
    process = feeding(system.kafka, plays(events, rate * SECONDS), rate)
    delays = system.listener.listen(rate * SECONDS)
    process.join()
    begin = delays[0].sent
    return [delay for delay in delays if delay.sent >= begin + 1.0]


def _snapshots(options: Options, system: System, deployment: Deployment, events: Events) -> dict[str, Any]:
    """Return percentiles of those sent shortly before a snapshot was there, and of the others."""
    delays = _delays(system, events, MAIN_RATE)
    written = [moment for moment in _moments(deployment.log) if delays[0].sent <= moment <= delays[-1].sent]
    near, others = split_near(delays, written, NEAR_SECONDS)
    options.say(f"{len(written)} snapshots; p99 of those near one: {Percentiles.of(near).p99_ms} ms")
    return {
        "rate": MAIN_RATE,
        "snapshots": len(written),
        "near": Percentiles.of(near)._asdict(),
        "others": Percentiles.of(others)._asdict(),
    }


def _moments(log: Path) -> list[float]:
    """Return when snapshots were committed, in seconds since 1970, by a worker's log."""
    lines = [msgspec.json.decode(line) for line in log.read_bytes().splitlines() if line.startswith(b"{")]
    return [
        datetime.fromisoformat(line["timestamp"]).timestamp() for line in lines if line["event"] == "snapshot"
    ]
