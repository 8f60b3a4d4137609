"""What a follower costs the worker: events a second with one that follows and without, in turns.

The worker goes through logs that are there. The follower has the last processor for itself; worker and broker
share the others in both cases.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from bench.deployment import Deployment, broker_process
from bench.follower_process import follower
from bench.group_progress import CommittedOffsets, Throughput, measure_throughput
from bench.options import Options
from bench.summary import mean_and_error
from bench.throughput_comparison import with_own_outputs
from pipeline.sources.kuairec import Events

ROUNDS: Final = 5


def measure_cost(options: Options, folder: Path, bootstrap: str, events: Events) -> dict[str, Any]:
    """Return events a second of a worker with a follower and without, and their ratio."""
    rounds: list[dict[str, Throughput]] = []
    with _last_processor_kept_free() as kept:
        for number in range(options.runs or ROUNDS):
            inputs = Deployment.create(folder, bootstrap, f"cost-{number}")
            inputs.send(events)
            order = ("followed", "alone") if number % 2 else ("alone", "followed")
            found = {name: _throughput(inputs, name, len(events), kept) for name in order}
            rounds.append(found)
            rates = ", ".join(f"{name} {each.events_per_s:,.0f} events/s" for name, each in found.items())
            options.say(f"round {number + 1}: {rates}")
    logs = [math.log(one["followed"].events_per_s / one["alone"].events_per_s) for one in rounds]
    ratio = mean_and_error(logs, digits=4)
    return {
        "ratio": {"mean": round(math.exp(ratio["mean"]), 3), "error": round(ratio["error"], 3)},
        "rounds": [{name: each.figures() for name, each in one.items()} for one in rounds],
    }


def _throughput(inputs: Deployment, name: str, count: int, kept: int) -> Throughput:
    own, broker = with_own_outputs(inputs, name), broker_process()
    committed = CommittedOffsets(inputs.config.kafka, own.config.kafka.group)
    if name == "alone":
        with own.worker() as process:
            return measure_throughput(committed, count, [process], broker)
    with follower(own) as found:
        _pin(found.process, [kept])
        with own.worker() as process:
            return measure_throughput(committed, count, [process], broker)


@contextmanager
def _last_processor_kept_free() -> Iterator[int]:
    """Keep this process and its children, but for those that are pinned, off the last processor."""
    processes = [psutil.Process(), broker_process()]
    before = processes[0].cpu_affinity()
    *others, last = before
    for each in processes:
        _pin(each, others or before)
    try:
        yield last
    finally:
        for each in processes:
            _pin(each, before)


def _pin(process: psutil.Process, processors: list[int]) -> None:
    """Let all threads of a process run on these processors alone."""
    for thread in process.threads():
        os.sched_setaffinity(thread.id, processors)
