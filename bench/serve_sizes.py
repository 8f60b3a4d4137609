"""What a follower needs: memory by the number of entities, and how fast it learns what is committed.

Memory is that of a process which restores a snapshot of one partition and scores, as a follower does. The
snapshot is written by another process. Outcomes a second are those of a real follower of a real log, which
has no snapshot, so that all of it is learned in the follower's way, between two requests.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import psutil

from bench.deployment import Deployment, invented
from bench.group_progress import CommittedOffsets
from bench.options import Options
from bench.sizes import count_labels, end_first_stage
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.config.tree import Config
from pipeline.model.factory import ModelFactory
from pipeline.model.snapshot import pack, unpack
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.serving.answers import PartitionNotReadyError
from pipeline.serving.follower import Follower
from pipeline.serving.served_model import ServedModel

ENTITIES: Final = (0, 10_000, 100_000, 1_000_000)
"""Users, and as many videos; the last number is the default of `features.max_entities`."""
CANDIDATES: Final = 200
EVENTS: Final = 300_000
RUNS: Final = 3
WITHOUT_SNAPSHOT: Final = f'[checkpoint]\noutcomes = {10**9}\ninterval = "365d"\n'
PAUSE: Final = 0.01
"""Seconds between two looks."""
STALL_TIMEOUT: Final = 300.0
"""Seconds after which something is wrong."""


class Memory(NamedTuple):
    """Mebibytes of a process."""

    before: float
    """With all that is imported and compiled, but no model."""
    after: float
    """With the model, after it has scored."""
    peak: float
    """At most, which is while the snapshot is read."""


def run(options: Options) -> dict[str, Any]:
    """Return mebibytes by the number of entities, and outcomes a second that a follower learns."""
    configure()
    with TemporaryDirectory() as name:
        folder = Path(name)
        memory = {}
        for count in ENTITIES:
            options.say(f"restoring a model of {count:,} users and as many videos ...")
            memory[count] = _memory(count, folder / "snapshot")
        rates = _rates(options, folder)
    most = max(ENTITIES)
    return {
        "mib_before": round(memory[0].before),
        "mib": {str(count): round(each.after) for count, each in memory.items()},
        "mib_at_most": {str(count): round(each.peak) for count, each in memory.items()},
        "bytes_of_user_and_video": round(2**20 * (memory[most].after - memory[0].after) / most),
        "outcomes_per_s": round(median(rates)),
        "outcomes_per_s_of_runs": [round(each) for each in rates],
    }


def _memory(count: int, path: Path) -> Memory:
    """Return what a process takes that restores a model of so many users and videos."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        pool.submit(write_snapshot, count, path).result()
        return pool.submit(restore_and_score, path).result()


def write_snapshot(count: int, path: Path) -> None:
    """Write the snapshot of a model that knows so many users and videos.

    Parameters
    ----------
    count
        The number of each.
    path
        Where to write it.
    """
    model = ModelFactory(Config()).new_model()
    end_first_stage(model)
    if count:
        count_labels(model, list(range(count)), list(range(count)))
    path.write_bytes(pack(model))


def restore_and_score(path: Path) -> Memory:
    """Restore a snapshot as a follower does, score candidates, and return the memory of this process.

    Parameters
    ----------
    path
        The snapshot.
    """
    factory = ModelFactory(Config())
    factory.warm_up()
    before = _resident()
    model = factory.new_model()
    unpack(path.read_bytes(), model)
    candidates = [KuaiRecInteraction("", 7, video, 0, 10_000) for video in range(CANDIDATES)]
    ServedModel(0, model, {}, 0).score(candidates, None, explain=False)
    after, peak = _resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    return Memory(before, after, max(after, peak))  # the system counts pages a little late


def _resident() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20


def _rates(options: Options, folder: Path) -> list[float]:
    """Return outcomes a second of followers that learn the same log."""
    count = options.events or EVENTS
    with temporary_broker() as bootstrap:
        options.say(f"writing a log of {count:,} events ...")
        deployment = Deployment.create(folder, bootstrap, "sizes", more=WITHOUT_SNAPSHOT)
        deployment.send(invented(folder, count))
        committed = CommittedOffsets(deployment.config.kafka, deployment.config.kafka.group)
        with deployment.worker():
            _wait(lambda: committed.messages() >= 2 * count, "the worker")
        options.say("following it ...")
        return [_rate(deployment.config, count) for _ in range(options.runs or RUNS)]


def _rate(config: Config, count: int) -> float:
    """Return outcomes a second of a follower, from the first that it has learned to the last."""
    follower, candidates = Follower(config), [KuaiRecInteraction("", 7, 7, 0, 10_000)]

    def learned() -> int:
        with suppress(PartitionNotReadyError):
            return follower.score(0, candidates).model_version
        return 0

    follower.start()
    try:
        _wait(lambda: learned() > 0, "a follower that learns")
        begin, first = time.monotonic(), learned()
        _wait(lambda: learned() >= count, "a follower that has learned all")
        return (count - first) / (time.monotonic() - begin)
    finally:
        follower.stop()


def _wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + STALL_TIMEOUT
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {STALL_TIMEOUT:.0f} s")
        time.sleep(PAUSE)
