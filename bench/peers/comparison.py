"""Events a second of a worker, beside the same job in Quix Streams and in Kafka Streams.

What the others do, and what they leave out, their programs say: `quix.py` and `KafkaStreamsJob.java`. All
read logs of the same broker, in one partition and in transactions of as many messages. Java compiles a
program while it runs. So the logs for Kafka Streams begin with events that are not counted, neither for it
nor for the worker beside it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import psutil

from bench.deployment import Deployment
from bench.group_progress import CommittedOffsets, Throughput, measure_throughput
from bench.options import Options
from bench.peers.environment import environment
from bench.peers.kafka_streams import STORES, KafkaStreamsProgram
from bench.throughput_comparison import compare_throughput, median_ratio, pipeline
from pipeline.errors import BrokerError, ConfigError

REPETITIONS: Final = 3
EVENTS: Final = 200_000
WARM_UP: Final = 1_000_000
"""Events in which Java compiles what is called often, and compiles it again with what it has seen."""
QUIX: Final = Path(__file__).with_name("quix.py")

Launcher: TypeAlias = Callable[[Deployment], tuple[str, list[str]]]
"""Gives the group and the command of a program that goes through the inputs of a deployment."""


def run(options: Options) -> dict[str, Any]:
    """Return what was measured of each framework and of the worker beside it, or why it is left out."""
    found = dict[str, Any]()
    with TemporaryDirectory() as name:
        for framework, (prepare, warm_up) in FRAMEWORKS.items():
            options.say(f"preparing {framework} ...")
            try:
                launchers = prepare(Path(name))
            except (BrokerError, ConfigError) as error:
                options.say(f"{framework} is left out: {error}")
                found[framework] = {"left_out": str(error)}
                continue
            found[framework] = _compare(options, launchers, warm_up)
    return found


def _quix_streams(_: Path) -> dict[str, Launcher]:
    python = environment()

    def launch(deployment: Deployment) -> tuple[str, list[str]]:
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
        return group, [str(python), str(QUIX), *(f"--{name}={value}" for name, value in options.items())]

    return {"quix": launch}


def _kafka_streams(folder: Path) -> dict[str, Launcher]:
    program = KafkaStreamsProgram(folder)
    return {store: partial(program.launch, store) for store in STORES}


FRAMEWORKS: Final[Mapping[str, tuple[Callable[[Path], dict[str, Launcher]], int]]] = MappingProxyType(
    {"quix_streams": (_quix_streams, 0), "kafka_streams": (_kafka_streams, WARM_UP)}
)
"""What makes a framework ready, with a folder for it, and how many events warm it up."""


def _compare(options: Options, launchers: Mapping[str, Launcher], warm_up: int) -> dict[str, Any]:
    """Return the worker's figures as multiples of each peer's, medians over the rounds, and all figures."""
    if warm_up:
        warm_up = options.warm_up or warm_up

    def peer(launcher: Launcher, deployment: Deployment, count: int, broker: psutil.Process) -> Throughput:
        group, command = launcher(deployment)
        committed = CommittedOffsets(deployment.config.kafka, group)
        log = deployment.file.with_suffix(".peer.log")
        with log.open("wb") as stream:
            process = subprocess.Popen(command, stdout=stream, stderr=stream)
        try:
            worker = psutil.Process(process.pid)
            return measure_throughput(committed, count, [worker], broker, warm_up=warm_up)
        finally:
            process.kill()
            process.wait()

    candidates = {name: partial(peer, launcher) for name, launcher in launchers.items()}
    worker = partial(pipeline, warm_up=warm_up)
    result = compare_throughput(options, {"pipeline": worker, **candidates}, EVENTS, REPETITIONS, warm_up)
    ratios = dict[str, float]()
    for name in launchers:
        ratios[f"{name}_ratio"] = median_ratio(result, "pipeline", name)
        ratios[f"{name}_cpu_ratio"] = median_ratio(result, "pipeline", name, "cpu_us")
    return ratios | result
