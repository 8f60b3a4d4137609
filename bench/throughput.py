"""Events a second of a worker, beside a loop that does nothing but Kafka and JSON.

Both read the same logs of the same broker, in one partition, one after the other, and the order changes from
round to round. An event is an interaction and a label, and each leads to a record. The worker is `forks run`
with its defaults and the tables of the plays.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psutil

from bench.bare import bare
from bench.bare import group as bare_group
from bench.course import Committed, Course, course
from bench.options import Options
from bench.recovery_worker import worker
from bench.stage import Stage, broker_process, invented
from pipeline.broker.temporary import temporary_broker
from pipeline.logs import configure

ROUNDS: Final = 5
EVENTS: Final = 200_000
FILL_WAIT: Final = 0.05
"""Seconds that the loop waits for a batch to fill; with logs that are there, it never does."""


def run(options: Options) -> dict[str, Any]:
    """Return events a second of both and their ratio: medians over the rounds, which are all listed."""
    configure()
    count, rounds = options.events or EVENTS, []
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder, broker = Path(name), broker_process()
        options.say(f"inventing {count:,} events ...")
        events = invented(folder, count)
        contenders = {"pipeline": _pipeline, "bare": _bare}
        for number in range(options.runs or ROUNDS):
            stage = Stage.set(folder, bootstrap, f"round-{number}")
            stage.send(events)
            names = list(contenders) if number % 2 else list(contenders)[::-1]
            courses = {name: contenders[name](stage, count, broker) for name in names}
            rounds.append(courses)
            rates = ", ".join(f"{name} {one.events_per_s:,.0f} events/s" for name, one in courses.items())
            options.say(f"round {number + 1}: {rates}")
    result: dict[str, Any] = {
        "events": count,
        "batch": stage.config.worker.batch,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }
    for contender in contenders:
        middle = Course.median([courses[contender] for courses in rounds])
        result |= {f"{contender}_{figure}": value for figure, value in middle.figures().items()}
    result["ratio"] = round(result["pipeline_events_per_s"] / result["bare_events_per_s"], 3)
    result["rounds"] = [{name: one.figures() for name, one in courses.items()} for courses in rounds]
    return result


def _pipeline(stage: Stage, count: int, broker: psutil.Process) -> Course:
    kafka = stage.config.kafka
    with worker(stage.file, stage.log, None) as process:
        return course(Committed(kafka, kafka.group), count, [psutil.Process(process.pid)], broker)


def _bare(stage: Stage, count: int, broker: psutil.Process) -> Course:
    kafka = stage.config.kafka
    with bare(kafka, stage.config.worker.batch, FILL_WAIT) as process:
        return course(Committed(kafka, bare_group(kafka)), count, [psutil.Process(process.pid)], broker)
