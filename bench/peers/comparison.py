"""Events a second of a worker, beside the same job in Quix Streams with a model of River's.

What the other one does, and what it leaves out, `bench.peers.quix` says. Both read the same logs of the same
broker, in one partition and in transactions of as many messages.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final

import psutil

from bench.deployment import Deployment
from bench.group_progress import CommittedOffsets, Throughput, measure_throughput
from bench.options import Options
from bench.peers.environment import environment
from bench.throughput_comparison import compare_throughput, median_ratio, pipeline

REPETITIONS: Final = 3
EVENTS: Final = 200_000
PROGRAM: Final = Path(__file__).with_name("quix.py")


def run(options: Options) -> dict[str, Any]:
    """Return events a second of both and how many times as many ours are: medians over the rounds."""
    options.say("looking after the other framework's packages ...")
    python = environment()

    def peer(deployment: Deployment, count: int, broker: psutil.Process) -> Throughput:
        return _quix(python, deployment, count, broker)

    result = compare_throughput(options, {"pipeline": pipeline, "peer": peer}, EVENTS, REPETITIONS)
    ratio = median_ratio(result, "pipeline", "peer")
    return {"ratio": ratio, "peer": "Quix Streams and River", **result}


def _quix(python: Path, deployment: Deployment, count: int, broker: psutil.Process) -> Throughput:
    kafka = deployment.config.kafka
    group = f"{kafka.group}-quix"
    options = {
        "bootstrap": kafka.bootstrap,
        "prefix": kafka.prefix,
        "group": group,
        "batch": str(deployment.config.worker.batch),
        "state": str(deployment.file.with_suffix(".state")),
        "tags": str(deployment.config.features.tags),
    }
    command = [str(python), str(PROGRAM), *(f"--{name}={value}" for name, value in options.items())]
    with deployment.file.with_suffix(".quix.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        return measure_throughput(
            CommittedOffsets(kafka, group), count, [psutil.Process(process.pid)], broker
        )
    finally:
        process.kill()
        process.wait()
