"""Answers that are derived again: a worker is killed again and again, while a client asks a follower.

The worker goes through logs that are there. Then `forks audit --scores` derives every answer again.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from bench.deployment import VIDEOS, Deployment
from bench.follower_process import follower
from bench.options import Options
from bench.recovery_worker import FORKS, Tail, worker
from forks.client import Client
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.offsets import PartitionId, high_watermarks
from pipeline.sources.kuairec import Events

ANSWERS: Final = 10_000
"""Answers, at least."""
IDLE_ANSWERS: Final = 1_000
"""Of these, after the last kill: nobody but the follower is left to write."""
KILLS: Final = 10
PAUSE: Final = 0.005
"""Seconds between two requests."""
CANDIDATES: Final = 5
"""Of each request."""
SMALL_BATCHES: Final = "[worker]\nbatch = 100\n[checkpoint]\noutcomes = 5_000\n"
"""A worker that does not get through the logs before enough was asked."""


def derive_again(options: Options, folder: Path, bootstrap: str, events: Events) -> dict[str, Any]:
    """Return how many answers were derived again while a worker was killed, and what was not."""
    deployment = Deployment.create(folder, bootstrap, "proof", more=SMALL_BATCHES)
    deployment.send(events)
    log, users = folder / "scores.jsonl", events.frame["user_id"].to_list()
    marks = np.linspace(0, len(events), KILLS + 2).astype(int).tolist()[1:]
    with (
        follower(deployment, "--log-scores", str(log)) as found,
        _requests(found.url, users) as versions,
        Tail(deployment.config, deployment.topics.outcomes) as outcomes,
    ):
        for mark in marks:
            with worker(deployment.file, deployment.log, "worker-0") as process:
                outcomes.wait_for(mark, process)
            options.say(f"killed at {outcomes.count:,} outcomes, {len(versions):,} answers")
        before, working = _ends(deployment), len(versions)
        while len(versions) < max(ANSWERS, working + IDLE_ANSWERS):
            time.sleep(0.05)
        after = _ends(deployment)
    options.say(f"{len(versions):,} answers; deriving them again ...")
    done = subprocess.run(
        (*FORKS, "audit", "--json", "--config", str(deployment.file), "--scores", str(log)),
        capture_output=True,
        check=False,
    )
    audit = msgspec.json.decode(done.stdout)
    return {
        "answers": len(versions),
        "while_working": working,
        "versions": len(set(versions)),
        "kills": len(marks),
        "scores": audit["scores"],
        "differences": audit["differences"],
        "exit_code": done.returncode,
        "written_by_nobody_else": sum(after.values()) - sum(before.values()),
    }


@contextmanager
def _requests(url: str, users: list[int]) -> Iterator[list[int]]:
    """Ask in a thread inside the block; what this yields has the model's version of each answer."""
    versions: list[int] = []
    ended = threading.Event()

    def ask() -> None:
        chance = np.random.default_rng(0)
        with Client([url]) as client:
            while not ended.wait(PAUSE):
                items = [{"video_id": each} for each in chance.integers(1, VIDEOS, CANDIDATES).tolist()]
                user = users[len(versions) % len(users)]
                versions.append(client.score({"user_id": user}, items).model_version)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield versions
    finally:
        ended.set()
        thread.join()


def _ends(deployment: Deployment) -> dict[PartitionId, int]:
    """Return the end offsets of all topics."""
    topics = deployment.topics
    names = (*topics.inputs, topics.predictions, topics.outcomes, topics.dead_letters, topics.checkpoints)
    return high_watermarks(Admin(deployment.config.kafka), [PartitionId(name, 0) for name in names])
