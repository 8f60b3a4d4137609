"""Contenders that go through the same logs of the same broker, one after the other, for some rounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import psutil

from bench.deployment import Stage, broker_process, invented
from bench.group_progress import Committed, Course, course
from bench.options import Options
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure

Contender: TypeAlias = Callable[[Stage, int, psutil.Process], Course]
"""Goes through so many events of a stage, with a broker's process."""


def race(options: Options, contenders: Mapping[str, Contender], count: int, rounds: int) -> dict[str, Any]:
    """Let all go through logs of one partition, in another order in the next round.

    Parameters
    ----------
    options
        Numbers of rounds and events that differ from those given.
    contenders
        By name.
    count
        Events in the logs.
    rounds
        How many.

    Returns
    -------
    dict
        Of each contender the medians over the rounds, then all rounds.
    """
    configure()
    count, found = options.events or count, []
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder, broker = Path(name), broker_process()
        options.say(f"inventing {count:,} events ...")
        events = invented(folder, count)
        for number in range(options.runs or rounds):
            stage = Stage.set(folder, bootstrap, f"round-{number}")
            stage.send(events)
            order = list(contenders) if number % 2 else list(contenders)[::-1]
            courses = {name: contenders[name](stage, count, broker) for name in order}
            found.append(courses)
            rates = ", ".join(f"{name} {one.events_per_s:,.0f} events/s" for name, one in courses.items())
            options.say(f"round {number + 1}: {rates}")
    result: dict[str, Any] = {
        "events": count,
        "batch": stage.config.worker.batch,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }
    for contender in contenders:
        middle = Course.median([courses[contender] for courses in found])
        result |= {f"{contender}_{figure}": value for figure, value in middle.figures().items()}
    result["rounds"] = [{name: one.figures() for name, one in courses.items()} for courses in found]
    return result


def pipeline(stage: Stage, count: int, broker: psutil.Process) -> Course:
    """Let a worker go through the logs: `forks run` with its defaults and the tables of the plays."""
    kafka = stage.config.kafka
    with stage.worker() as process:
        return course(Committed(kafka, kafka.group), count, [process], broker)
