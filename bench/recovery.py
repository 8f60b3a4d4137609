"""How long a partition takes to be restored, and a killed worker to predict again.

The log is a real worker's, in a real broker: one partition of invented plays with KuaiRec's tables. Its one
snapshot is nearly `SINCE` outcomes old when the worker is killed.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.options import Options
from bench.outcome_learning import rates
from bench.recovery_steps import Restores
from bench.recovery_worker import Tail, restart, worker
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.config.loader import load
from pipeline.config.settings import Config
from pipeline.config.stream import KUAIREC
from pipeline.config.topics import Topics
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import create
from pipeline.sources.kuairec import Events, read_events, tables_beside
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size
from pipeline.tools.demo import DemoData, fill_topics

RUNS: Final = 5
SINCE: Final = 100_000
"""Outcomes from one snapshot to the next; the kill comes shortly before the second one."""
EVENTS: Final = 2 * SINCE - 1_000
SLICE: Final = 500
"""Events that a worker finds before it is killed, and its successor after."""
NAMES: Final = {"named": "worker-0", "unnamed": None}


def run(options: Options) -> dict[str, Any]:
    """Return seconds by step, outcomes a second, and seconds from a kill to the next prediction.

    On a machine that others use as well, the processors' seconds tell more than those on the clock.
    """
    configure()
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder = Path(name)
        write_files(folder, Size(events=EVENTS + EVENTS // 10, users=2_000, videos=4_000))
        events, file = read_events(folder), _configuration(folder, bootstrap)
        config, empty = load(file), load(file, {"kafka.prefix": "empty."})
        options.say(f"writing a log of {EVENTS:,} events ...")
        _write_log(config, file, events.first(EVENTS))
        create(Admin(empty.kafka), Topics(empty.kafka.prefix), partitions=1, replication=1)
        runs = options.runs or RUNS
        restores = Restores(config, runs)
        options.say(f"restoring {runs} times ...")
        seconds, processors = restores.seconds()
        at_snapshot, since = restores.since_snapshot()
        result = {
            "outcomes_since_snapshot": len(since),
            "restore_s": round(seconds, 3),
            "restore_processor_s": round(processors, 3),
            "load_average": round(os.getloadavg()[0], 1),
            "parts_s": restores.parts(),
            "empty_partition_s": round(Restores(empty, runs).seconds()[0], 3),
        }
        options.say(f"folding {len(since):,} outcomes in memory {runs} times ...")
        result |= rates(at_snapshot, since, runs)
        result["session_timeout_s"] = config.worker.session_timeout / 1000
        result["kill_to_prediction_s"] = restarts = {}
        for number, (kind, instance) in enumerate(NAMES.items()):
            options.say(f"killing a worker, {kind} ...")
            first = EVENTS + 2 * SLICE * number
            slices = (_part(events, first), _part(events, first + SLICE))
            restarts[kind] = restart(config, file, instance, slices)
    for line in _lines(result):
        options.say(line)
    return result


def _configuration(folder: Path, bootstrap: str) -> Path:
    file = folder / "forks.toml"
    tables = "\n".join(f'{name} = "{path}"' for name, path in tables_beside(folder).items())
    file.write_text(
        f'[kafka]\nbootstrap = "{bootstrap}"\nprefix = "bench."\ngroup = "bench"\n'
        f'[checkpoint]\noutcomes = {SINCE}\ninterval = "1d"\n[features]\n{tables}\n'
    )
    return file


def _write_log(config: Config, file: Path, events: Events) -> None:
    """Let a worker predict and learn all events, and kill it."""
    fill_topics(DemoData(events, KUAIREC, {}), config.kafka, lambda _: None)
    outcomes = Topics(config.kafka.prefix).outcomes
    with worker(file, file.with_suffix(".log"), None) as process, Tail(config, outcomes) as tail:
        tail.wait_for(len(events), process)


def _part(events: Events, first: int) -> Events:
    return replace(events, frame=events.frame.slice(first, SLICE))


def _lines(result: dict[str, Any]) -> list[str]:
    steps = {f"  {name}": seconds for name, seconds in result["parts_s"].items()}
    restarts = {
        f"kill to prediction, {kind}: {name}": seconds
        for kind, found in result["kill_to_prediction_s"].items()
        for name, seconds in found.items()
    }
    rows = {
        "restore": result["restore_s"],
        "restore, processors": result["restore_processor_s"],
        **steps,
        "empty partition": result["empty_partition_s"],
        **restarts,
    }
    lines = [f"{name:50} {seconds:8.3f} s" for name, seconds in rows.items()]
    learned = {name: f"{value:8.2f} us" for name, value in result["outcome_us"].items()}
    return [
        *lines,
        *(f"{f'an outcome in memory: {name}':50} {value}" for name, value in learned.items()),
    ]
