"""A follower for tests of HTTP alone, and streams whose candidates have features of messages."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, Final, NamedTuple

from prometheus_client.core import Metric

from pipeline.broker.launch import free_ports
from pipeline.config.settings import Config
from pipeline.config.stream import Stream
from pipeline.monitoring.http_server import listening, serve
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction
from pipeline.recovery.libraries import ARITHMETIC_HERE
from pipeline.serving.answers import (
    Explanation,
    FollowerFigures,
    NearPoint,
    PartitionFigures,
    PartitionNotReadyError,
    Scores,
    ScoreTerm,
    UnknownChallengerError,
)
from pipeline.serving.application import application, server_limits
from pipeline.serving.metrics import follower_registry
from pipeline.serving.score_log import ScoreLog

DELIVERIES: Final = Stream.model_validate(
    tomllib.loads(files("pipeline.config").joinpath("streams/deliveries.toml").read_text("utf-8"))
)
"""Deliveries: numbers, booleans and hours, times as text."""


def figures(**changed: Any) -> FollowerFigures:
    """Where a follower of one partition is, all well but for what is changed."""
    partition = PartitionFigures(
        partition=0,
        state="following",
        reason=None,
        model_version=41,
        epoch=0,
        as_of=1_000,
        lag=0,
        current_at=time.monotonic(),
        records_left=0,
        settings={"learner.budget": "100"},
        challengers=("wider",),
    )
    return FollowerFigures((partition._replace(**changed),), 12.5, None)


def follower_metrics() -> list[Metric]:
    """The metrics of a follower that has answered a request, without those of the process."""
    registry, requests = follower_registry(figures, None, max_lag=10_000)
    requests.requests.labels("/v1/score", "200").inc()
    requests.seconds.labels("/v1/score").observe(0.1)
    return [each for each in registry.collect() if each.name.startswith("forks_")]


class FakeFollower:
    """Scores a candidate by the text of its ids, and remembers what it was asked for.

    It is for tests of HTTP alone; `tests/integration/test_serve.py` has real ones.
    """

    def __init__(self) -> None:
        self.figures = figures()
        self.asked: list[list[Interaction]] = []
        self.failure: Exception | None = None

    def partition_of(self, key: Id) -> int:
        return len(str(key)) % 2

    @contextmanager
    def lend_model(self, partition: int) -> Iterator[FakeModel]:
        if self.failure is not None:
            raise self.failure
        yield FakeModel(partition, self.asked)


class FakeModel(NamedTuple):
    """The model of a partition of the fake follower."""

    partition: int
    asked: list[list[Interaction]]

    def score_candidates(
        self,
        interactions: Sequence[Interaction],
        challenger: str | None = None,
        *,
        explain: bool = False,
        variances: bool = False,
    ) -> Scores:
        if challenger not in {None, "wider"}:
            raise UnknownChallengerError(challenger or "", ("wider",))
        self.asked.append([*interactions])
        scores = [score_of(each.ids) for each in interactions]
        why = Explanation([ScoreTerm("bias", "bias", 0.5)], [NearPoint(0.25, 0.75, 7)])
        return Scores(
            partition=self.partition,
            model_version=41,
            epoch=0,
            arithmetic=ARITHMETIC_HERE,
            as_of=1_000,
            tables={},
            scores=scores,
            probabilities=[0.5] * len(scores),
            predicted=[score > 0 for score in scores],
            unknown=[("user_id",) if each.ids[0] == "new" else () for each in interactions],
            explanations=[why] * len(scores) if explain else None,
            variances=[0.25] * len(scores) if variances else None,
        )


def score_of(ids: Sequence[Id]) -> float:
    """The score that the fake follower gives."""
    return sum(map(ord, repr(tuple(ids)))) / 7.0


NOT_READY: Final = PartitionNotReadyError(1, "it is being restored", 2.0)


@contextmanager
def served(
    follower: FakeFollower,
    config: Config,
    log: ScoreLog | None = None,
    port: int | None = None,
    connections: int | None = None,
) -> Iterator[str]:
    """A real server in a thread, at the address that this yields."""
    limits = server_limits(config.serve)
    if connections is not None:
        limits = limits._replace(connections=connections)
    address = f"127.0.0.1:{port or free_ports(1)[0]}"
    app = application(follower, config, {"forks-stream": "0"}, log)
    with listening(address, "serve.address") as listener, serve(app, listener, limits):
        yield address
