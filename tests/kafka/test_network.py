"""Connections that are cut, slow or silent between worker and broker: what is committed does not show it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pipeline.broker.settings import server_properties
from pipeline.broker.temporary import temporary_broker
from tests.kafka.harness import Pipeline, in_one_go, invented_events, until
from tests.kafka.proxy import CUT, END_TRANSACTION, LOSE_ANSWER, PASS, SWALLOW, Proxy

EVENTS = 3_000


class Proxied(Pipeline):
    """A pipeline whose workers reach the broker through the proxy; the tests reach it directly."""

    through = ""

    def start_worker(self, *options: Any, **more: Any) -> subprocess.Popen[bytes]:
        direct = self.kafka
        self.kafka = direct.model_copy(update={"bootstrap": self.through})
        try:
            return super().start_worker(*options, **more)
        finally:
            self.kafka = direct


@pytest.fixture(scope="module")
def proxied() -> Iterator[tuple[Proxy, str]]:
    """A proxy, and the address of the broker behind it."""
    with Proxy() as proxy, socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        proxy.target = port.getsockname()[1]
        port.close()

        def with_proxy(broker_port: int, controller_port: int) -> str:
            plain, controller = f"PLAINTEXT://127.0.0.1:{broker_port}", f"127.0.0.1:{controller_port}"
            return server_properties(broker_port, controller_port) + (
                f"listeners={plain},CONTROLLER://{controller},PROXIED://127.0.0.1:{proxy.target}\n"
                f"advertised.listeners={plain},PROXIED://127.0.0.1:{proxy.port}\n"
                "listener.security.protocol.map="
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT\n"
                "inter.broker.listener.name=PLAINTEXT\n"
            )

        with mock.patch("pipeline.broker.launch.server_properties", with_proxy), temporary_broker() as direct:
            yield proxy, direct


@pytest.fixture
def pipeline(proxied: tuple[Proxy, str], topic_prefix: str, tmp_path: Path) -> Iterator[Pipeline]:
    proxy, direct = proxied
    pipeline = Proxied(direct, topic_prefix, tmp_path)
    pipeline.environment = {
        "FORKS_WORKER__BATCH": "50",
        "FORKS_WORKER__TRANSACTION_TIMEOUT": "5s",
        "FORKS_WORKER__SESSION_TIMEOUT": "6s",
    }
    pipeline.through = f"127.0.0.1:{proxy.port}"
    yield pipeline
    proxy.heal()


def nothing_shows(pipeline: Pipeline, proxy: Proxy, what: str, enough: Callable[[], bool]) -> None:
    """Process events, in trouble until it was enough: records are those of an undisturbed run."""
    events = invented_events(pipeline.folder, EVENTS)
    pipeline.produce_events(events)
    with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as follower:
        until(enough, what, worker)
        assert not follower.reached(len(events))
        proxy.heal()
        until(partial(follower.reached, len(events)), "all outcomes", worker)
    predictions, outcomes = in_one_go(pipeline, events)
    assert [written.value for written in pipeline.read(pipeline.topics.predictions)] == predictions
    assert [written.value for written in pipeline.read(pipeline.topics.outcomes)] == outcomes


def test_the_answer_to_a_commit_may_be_lost(proxied: tuple[Proxy, str], pipeline: Pipeline) -> None:
    """The broker has committed, the worker does not know it."""
    proxy, _ = proxied
    commits = count()

    def lose_some(request: int) -> str:
        return LOSE_ANSWER if request == END_TRANSACTION and next(commits) % 7 in {3, 4} else PASS

    proxy.done.clear()
    proxy.rule = lose_some
    nothing_shows(pipeline, proxy, "lost answers", lambda: proxy.done[LOSE_ANSWER] >= 4)


def test_connections_may_be_slow_and_break(proxied: tuple[Proxy, str], pipeline: Pipeline) -> None:
    """Requests of any kind are held up, and some never arrive."""
    proxy, _ = proxied
    requests = count(1)
    proxy.done.clear()
    proxy.delay = 0.005
    proxy.rule = lambda _: CUT if next(requests) % 61 == 0 else PASS
    nothing_shows(pipeline, proxy, "broken connections", lambda: proxy.done[CUT] >= 5)


def test_the_network_may_fall_silent_in_the_middle_of_a_commit(
    proxied: tuple[Proxy, str], pipeline: Pipeline
) -> None:
    """No connection ends, but nothing passes, for longer than transaction and membership last."""
    proxy, _ = proxied
    commits = count()
    silent_since: list[float] = []

    def fall_silent(request: int) -> str:
        if request == END_TRANSACTION and next(commits) == 5:
            silent_since.append(time.monotonic())
            return SWALLOW
        return PASS

    proxy.rule = fall_silent
    nothing_shows(
        pipeline,
        proxy,
        "twelve seconds of silence",
        lambda: bool(silent_since) and time.monotonic() - silent_since[0] > 12.0,
    )
