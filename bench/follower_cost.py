"""What a follower costs the worker: events a second with one that follows and without, in turns.

The worker goes through logs that are there. The follower has the last processor for itself; worker and broker
share the others in all cases. A message from one processor to another interrupts both, which costs much on
some virtual machines, whoever sends it. So a third case has two processes that talk over TCP across the same
border and have nothing to do with Kafka.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from socket import create_connection, create_server, socket
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
CASES: Final = ("alone", "talking", "followed")
"""No process on the last processor, one that talks to another across the border, or a follower."""
TALKS_PER_SECOND: Final = 30
"""About as many as a worker commits transactions while it goes through its logs."""
TALK_BYTES: Final = 100_000


def measure_cost(options: Options, folder: Path, bootstrap: str, events: Events) -> dict[str, Any]:
    """Return events a second of a worker in each case, and ratios of those with a follower to the others."""
    rounds: list[dict[str, Throughput]] = []
    with _last_processor_kept_free() as kept:
        for number in range(options.runs or ROUNDS):
            inputs = Deployment.create(folder, bootstrap, f"cost-{number}")
            inputs.send(events)
            first = number % len(CASES)
            found = {
                case: _throughput(inputs, case, len(events), kept)
                for case in (*CASES[first:], *CASES[:first])
            }
            rounds.append(found)
            rates = ", ".join(f"{case} {found[case].events_per_s:,.0f} events/s" for case in CASES)
            options.say(f"round {number + 1}: {rates}")
    return {
        "ratio": _ratio(rounds, "followed", "alone"),
        "ratio_of_talking": _ratio(rounds, "talking", "alone"),
        "rounds": [{case: each.figures() for case, each in one.items()} for one in rounds],
    }


def _ratio(rounds: list[dict[str, Throughput]], case: str, other: str) -> dict[str, float]:
    """Return the geometric mean of the ratios of events a second, and its relative standard error."""
    logs = [math.log(one[case].events_per_s / one[other].events_per_s) for one in rounds]
    ratio = mean_and_error(logs, digits=4)
    return {"mean": round(math.exp(ratio["mean"]), 3), "error": round(ratio["error"], 3)}


def _throughput(inputs: Deployment, case: str, count: int, kept: int) -> Throughput:
    own, broker = with_own_outputs(inputs, case), broker_process()
    committed = CommittedOffsets(inputs.config.kafka, own.config.kafka.group)
    with _beside(own, case, kept), own.worker() as process:
        return measure_throughput(committed, count, [process], broker)


@contextmanager
def _beside(own: Deployment, case: str, kept: int) -> Iterator[None]:
    """Run the process of a case on the processor that is kept for it."""
    if case == "followed":
        with follower(own) as found:
            _pin(found.process, [kept])
            yield
    elif case == "talking":
        with create_server(("127.0.0.1", 0)) as server:
            context, address = get_context("spawn"), server.getsockname()
            listener = context.Process(target=listen, args=(address, kept), daemon=True)
            listener.start()
            talker = context.Process(target=talk, args=(server.accept()[0],), daemon=True)
            talker.start()
            try:
                yield
            finally:
                for each in (talker, listener):
                    each.kill()
                    each.join()
    else:
        yield


def talk(connection: socket) -> None:
    """Send messages, each after the answer to the one before."""
    while True:
        connection.sendall(bytes(TALK_BYTES))
        connection.recv(1)
        time.sleep(1 / TALKS_PER_SECOND)


def listen(address: tuple[str, int], processor: int) -> None:
    """Receive messages on this processor, and answer each."""
    os.sched_setaffinity(0, [processor])
    with create_connection(address) as connection:
        while True:
            left = TALK_BYTES
            while left:
                received = len(connection.recv(left))
                if not received:
                    return
                left -= received
            connection.sendall(b"x")


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
