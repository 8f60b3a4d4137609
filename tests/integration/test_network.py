"""Connections that are cut, slow or silent between worker and broker: what is committed does not show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaException

from pipeline.broker.launch import free_ports
from pipeline.broker.settings import server_properties
from pipeline.broker.temporary import temporary_broker
from pipeline.worker.transaction import PartitionCommit
from tests.integration.harness import Feed, Pipeline, assert_as_in_one_go, invented_events, until
from tests.integration.proxy import CUT, END_TRANSACTION, HEARTBEAT, LOSE_ANSWER, PASS, SILENCE, Proxy
from tests.integration.test_session import learned, run_until, session_of
from tests.support.forked import CommandProcess

MAX_SILENCE = 8.0
"""Seconds, longer than a session and a transaction."""

Trouble = tuple[str, Callable[[], bool]]
"""What it is, and whether there was enough of it."""


class Proxied(Pipeline):
    """A pipeline whose workers reach the broker through the proxy; the tests reach it directly."""

    through = ""

    def start_worker(self, *options: Any, **more: Any) -> CommandProcess:
        direct = self.kafka
        self.kafka = direct.model_copy(update={"bootstrap": self.through})
        try:
            return super().start_worker(*options, **more)
        finally:
            self.kafka = direct


@pytest.fixture
def proxied() -> Iterator[tuple[Proxy, str]]:
    """A proxy, and the address of the broker behind it."""
    with Proxy() as proxy:
        [proxy.target] = free_ports(1)

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


def lose_answers(proxy: Proxy) -> Trouble:
    """The broker has committed, the worker does not know it."""
    commits = count()

    def lose_some(request: int) -> str:
        return LOSE_ANSWER if request == END_TRANSACTION and next(commits) % 7 in {3, 4} else PASS

    proxy.fault_rule = lose_some
    return "lost answers", lambda: proxy.done[LOSE_ANSWER] >= 4


def slow_and_broken(proxy: Proxy) -> Trouble:
    """Requests of any kind are held up, and some never arrive."""
    requests = count(1)
    proxy.delay = 0.005
    proxy.fault_rule = lambda _: CUT if next(requests) % 31 == 0 else PASS
    return "broken connections", lambda: proxy.done[CUT] >= 5


def fall_silent(proxy: Proxy) -> Trouble:
    """Nothing passes for longer than transaction and membership last, then what was sent arrives late."""
    commits = count()
    silent_since: list[float] = []

    def fall_silent_once(request: int) -> str:
        if request == END_TRANSACTION and next(commits) == 5:
            silent_since.append(time.monotonic())
            return SILENCE
        return PASS

    proxy.fault_rule = fall_silent_once
    return "silence", lambda: bool(silent_since) and time.monotonic() - silent_since[0] > MAX_SILENCE


@pytest.mark.slow
def test_trouble_on_the_network_does_not_show(proxied: tuple[Proxy, str], tmp_path: Path) -> None:
    proxy, direct = proxied
    pipeline = Proxied(direct, "network-", tmp_path)
    pipeline.through = f"127.0.0.1:{proxy.port}"
    pipeline.environment = {
        "FORKS_WORKER__BATCH": "50",
        "FORKS_WORKER__TRANSACTION_TIMEOUT": "5s",
        "FORKS_WORKER__SESSION_TIMEOUT": "6s",
    }
    feed = Feed(pipeline, invented_events(tmp_path, 40_000))
    with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as follower:
        for trouble in (lose_answers, slow_and_broken, fall_silent):
            what, enough = trouble(proxy)

            def met_at_work(enough: Callable[[], bool] = enough) -> bool:
                feed.keep_ahead(follower)
                return enough()

            until(met_at_work, what, worker)
            proxy.heal()
        until(partial(follower.reached, feed.labels), "outcomes after that", worker)
    feed.finish()
    assert_as_in_one_go(pipeline, feed.events)


@pytest.mark.slow
def test_who_was_lost_to_the_group_commits_nothing_though_the_client_knows_it_before_the_worker(
    proxied: tuple[Proxy, str], tmp_path: Path
) -> None:
    """Brokers take offsets of whoever names no membership; its own keeps who had one from being such."""
    proxy, direct = proxied
    pipeline = Pipeline(direct, "lost-", tmp_path)
    events = invented_events(tmp_path, 600)
    pipeline.produce_events(events)
    third = len(events) // 3
    straight = pipeline.kafka
    pipeline.kafka = straight.model_copy(update={"bootstrap": f"127.0.0.1:{proxy.port}"})
    with session_of(pipeline, "lost") as lost:
        run_until(lost, lambda: learned(lost, third), "the first outcomes")
        member, task = lost.consumer.memberid(), lost.partitions[0].task
        proxy.fault_rule = lambda request: CUT if request == HEARTBEAT else PASS
        pipeline.kafka = straight
        with session_of(pipeline, "other") as other:
            run_until(other, lambda: learned(other, 2 * third), "more outcomes")
            until(lambda: lost.consumer.memberid() != member, "news of the group")
            batch = task.advance(50)
            assert not batch.empty
            with pytest.raises(KafkaException):
                lost.writer.commit(
                    [PartitionCommit(task, batch, lost.partitions[0].encoder, snapshot=False)],
                    lost.membership.metadata,
                ).wait()
            run_until(other, lambda: learned(other, len(events)), "all outcomes")
    assert_as_in_one_go(pipeline, events)
