"""The age of a follower's answers, beside the time until a reader has a prediction.

Plays and labels happen now, at a steady rate. A process of its own asks the follower at random moments, and
takes the age of each answer: how far its model is behind. Of the same seconds is the time from a play to the
moment at which a reader of committed records has its prediction.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from bench.delays import Delay, Listener, Percentiles
from bench.deployment import Deployment
from bench.feed import feeding, plays
from bench.follower_process import follower
from bench.latency import until_now
from bench.options import Options
from bench.summary import mean_and_error
from forks.client import Client
from pipeline.sources.kuairec import Events

RATE: Final = 1_000
"""Events a second."""
SECONDS: Final = 10
"""Of a round; the first one does not count."""
ROUNDS: Final = 5
PAUSE: Final = 0.004
"""Mean seconds between two requests."""


def measure_age(options: Options, folder: Path, bootstrap: str, events: Events) -> dict[str, Any]:
    """Return the 99th percentiles of both over the rounds, and their ratio."""
    deployment = Deployment.create(folder, bootstrap, "age")
    events = until_now(events)
    deployment.send(events)
    rounds: list[dict[str, Percentiles]] = []
    with (
        deployment.worker(),
        follower(deployment) as found,
        Listener(deployment.config.kafka, deployment.topics.predictions) as listener,
    ):
        listener.skip(len(events))
        for number in range(options.runs or ROUNDS):
            process = feeding(deployment.config.kafka, plays(events, RATE * SECONDS), RATE)
            with _asking(found.url) as ages:
                delays = listener.listen(RATE * SECONDS)
            process.join()
            begin, end = delays[0].sent + 1.0, delays[-1].sent
            rounds.append(
                {
                    "prediction": Percentiles.of([each for each in delays if each.sent >= begin]),
                    "age": Percentiles.of([each for each in ages if begin <= each.sent <= end]),
                }
            )
            texts = ", ".join(f"{name} {each.p99_ms} ms" for name, each in rounds[-1].items())
            options.say(f"round {number + 1}, p99: {texts}")
    p99 = {name: median(each[name].p99_ms for each in rounds) for name in ("prediction", "age")}
    return {
        "prediction_p99_ms": round(p99["prediction"], 2),
        "age_p99_ms": round(p99["age"], 2),
        "ratio": mean_and_error([each["age"].p99_ms / each["prediction"].p99_ms for each in rounds]),
        "rounds": [{name: each._asdict() for name, each in one.items()} for one in rounds],
    }


@contextmanager
def _asking(url: str) -> Iterator[list[Delay]]:
    """Ask inside the block; what this yields has the moments and ages of all answers after it."""
    found: list[Delay] = []
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_ask, args=(url, there), daemon=True)
    process.start()
    try:
        yield found
        here.send(None)
        found.extend(here.recv())
    finally:
        process.kill()
        process.join()


def _ask(url: str, end: Connection) -> None:
    """Ask for scores at random moments until told to stop; then send moments and ages."""
    chance, found = np.random.default_rng(0), []
    with Client([url]) as client:
        while not end.poll(chance.exponential(PAUSE)):
            user, item = chance.integers(1, 1_000, 2).tolist()
            scores = client.score({"user_id": user}, [{"video_id": item}])
            found.append(Delay(time.time(), float(scores.age_ms or 0)))
    end.send(found)
