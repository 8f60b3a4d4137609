"""Memory of a follower by the number of entities.

It is that of a process which restores a snapshot of one partition and scores, as a follower does. Another
process writes the snapshot.
"""

from __future__ import annotations

import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import psutil

from bench.options import Options
from bench.sizes import count_labels, end_first_stage
from pipeline.config.settings import Config
from pipeline.model.factory import ModelFactory
from pipeline.model.snapshot import pack, unpack
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.serving.served_model import ServedModel

ENTITIES: Final = (0, 10_000, 100_000, 1_000_000)
"""Users, and as many videos; the last number is the default of `features.max_entities`."""
CANDIDATES: Final = 200


class Memory(NamedTuple):
    """Mebibytes of a process."""

    before: float
    """With all that is imported and compiled, but no model."""
    after: float
    """With the model, after it has scored."""
    peak: float
    """At most, which is while the snapshot is read."""


def run(options: Options) -> dict[str, Any]:
    """Return mebibytes by the number of entities, and bytes of a user with a video."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        memory = {}
        for count in ENTITIES:
            options.say(f"restoring a model of {count:,} users and as many videos ...")
            memory[count] = _memory(count, folder / "snapshot")
    most = max(ENTITIES)
    return {
        "mib_before": round(memory[0].before),
        "mib": {str(count): round(each.after) for count, each in memory.items()},
        "mib_at_most": {str(count): round(each.peak) for count, each in memory.items()},
        "bytes_of_user_and_video": round(2**20 * (memory[most].after - memory[0].after) / most),
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
    import_module("pipeline.serving.service")  # all that a follower imports
    factory = ModelFactory(Config())
    factory.warm_up()
    before = _resident()
    model = factory.new_model()
    unpack(path.read_bytes(), model)
    candidates = [KuaiRecInteraction("", 7, video, 0, 10_000) for video in range(CANDIDATES)]
    ServedModel(0, model, {}, 0).score_candidates(candidates)
    after, peak = _resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    return Memory(before, after, max(after, peak))  # the system counts pages a little late


def _resident() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20
