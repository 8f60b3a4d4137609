"""Where the time of a worker goes: microseconds an event, by stage, with the whole worker in this process.

The function that makes up a stage is timed from outside, once a batch or less, so that there are no timers
in the product and none for single events. A stage does not count what it calls in another one. What the
broker and librdkafka's own threads do meanwhile shows only where the worker waits for them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from pkgutil import resolve_name
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final
from unittest.mock import patch

from bench.deployment import Deployment, invented
from bench.options import Options
from bench.stage_timer import Seconds, StageTimer
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.task.batch import Batch
from pipeline.task.task import Task
from pipeline.worker.worker import Worker

REPETITIONS: Final = 5
EVENTS: Final = 200_000
STAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "consume": "pipeline.worker.source.ConsumerSource.poll",
        "decode": "pipeline.worker.source.ConsumerSource._enqueue",
        "merge and join": "pipeline.task.task.Task.advance",
        "columns for the model": "pipeline.task.plan_run.PlanRun._run",
        "statistics and learner": "pipeline.model.model_run.ModelRun.run",
        "encode": "pipeline.worker.encoder.RecordEncoder.encode",
        "produce": "pipeline.worker.transaction.TransactionWriter._produce_batch",
        "snapshot": "pipeline.worker.transaction.TransactionWriter._produce_snapshots",
        "state record": "pipeline.worker.transaction.TransactionWriter.commit",
        "wait for the commit before": "pipeline.worker.transaction.InFlightCommit.end",
    }
)
"""The function of each, in the order in which a batch goes through them."""


def run(options: Options) -> dict[str, Any]:
    """Return microseconds an event by stage, on the clock and of the processor: medians over the rounds."""
    configure()
    count, repetitions = options.events or EVENTS, []
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder = Path(name)
        options.say(f"inventing {count:,} events ...")
        events = invented(folder, count)
        for number in range(options.runs or REPETITIONS):
            stage = Deployment.create(folder, bootstrap, f"round-{number}")
            stage.send(events)
            repetitions.append(measure_stages(stage, count))
            options.say(f"round {number + 1}: {repetitions[-1]['all']['us']} us an event")
    stages = {
        name: {
            figure: round(median(one[name][figure] for one in repetitions), 2) for figure in ("us", "cpu_us")
        }
        for name in repetitions[0]
    }
    for name, figures in stages.items():
        options.say(f"{name:30} {figures['us']:8.2f} us, processor {figures['cpu_us']:8.2f} us")
    return {
        "us_per_event": stages["all"]["us"],
        "events": count,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "stages": stages,
        "rounds": repetitions,
    }


def measure_stages(
    deployment: Deployment, count: int, more: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> dict[str, dict[str, float]]:
    """Let a worker go through the logs of a deployment, and time what comes after the first batch.

    Parameters
    ----------
    deployment
        Has the logs.
    count
        Events in the logs.
    more
        Further stages, each of any number of functions.

    Returns
    -------
    dict
        Microseconds an event by stage, of all of them, and of the processor time that other threads took.
    """
    worker, timer = Worker(deployment.config), StageTimer()
    advance = timer.timed("merge and join", Task.advance)
    processed = first = 0
    processors = 0.0
    seconds: dict[str, Seconds] = {}

    def counted(task: Task, limit: int) -> Batch:
        nonlocal processed, first, processors, seconds
        batch: Batch = advance(task, limit)
        processed += batch.steps
        if processed and not first:
            first, processors = processed, time.process_time()
            timer.restart()
        if processed >= 2 * count and not seconds:  # more, where predictions expire
            processors = time.process_time() - processors
            seconds = timer.totals()
            worker.stop()
        return batch

    functions = [*STAGES.items()]
    functions += [(name, function) for name, several in more.items() for function in several]
    with ExitStack() as patches:
        for name, function in functions:
            patches.enter_context(patch(function, timer.timed(name, resolve_name(function))))
        patches.enter_context(patch(STAGES["merge and join"], counted))
        worker.run()
    names = (*STAGES, *more, "rest")
    return _microseconds(
        {name: seconds.get(name, Seconds()) for name in names}, processors, count - first / 2
    )


def _microseconds(
    seconds: Mapping[str, Seconds], processors: float, events: float
) -> dict[str, dict[str, float]]:
    """Return those of each stage, of all of them, and of the processor time that other threads took."""
    everything = Seconds(*map(sum, zip(*seconds.values(), strict=True)))
    found = {**seconds, "all": everything, "other threads": Seconds(0.0, processors - everything.processor)}
    return {
        name: {"us": round(1e6 * one.clock / events, 3), "cpu_us": round(1e6 * one.processor / events, 3)}
        for name, one in found.items()
    }
