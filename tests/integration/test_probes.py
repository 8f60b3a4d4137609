"""The probes of a real worker, while brokers fail it in one way or another."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.broker import Broker
from tests.integration.harness import Feed, Pipeline, invented_events, until
from tests.integration.proxy import END_TRANSACTION, PASS, SILENCE, Proxy
from tests.integration.scrapes import probe, reasons, scrape
from tests.integration.test_network import Proxied, proxied
from tests.support.forked import CommandProcess

__all__ = ["proxied"]
FETCH = 1
"""The request's number in Kafka's protocol."""
LIMIT = 30.0
"""Seconds within which a worker that does not do its work says so."""


def turns_red(address: str, codes: set[str], worker: CommandProcess, within: float = LIMIT) -> None:
    """The worker is not ready within the limit, for one of these reasons, and is alive meanwhile."""
    begin = time.monotonic()
    until(lambda: probe(address)[0] == 503, "a red probe", worker)
    assert time.monotonic() - begin < within
    until(lambda: bool(codes & reasons(address)), f"one of {codes}", worker)
    assert time.monotonic() - begin < within
    status, body = probe(address, "/livez")
    assert (status, body["alive"]) == (200, True)


def turns_green(address: str, worker: CommandProcess) -> None:
    until(lambda: probe(address)[0] == 200, "a green probe", worker)


@pytest.mark.slow
def test_a_broker_that_is_killed_turns_the_probe_red_also_of_an_idle_worker(
    tmp_path: Path, free_port: int
) -> None:
    address = f"127.0.0.1:{free_port}"
    with Broker(tmp_path / "broker") as broker:
        pipeline = Pipeline(broker.bootstrap, "probed-", tmp_path)
        pipeline.environment = {"FORKS_METRICS__ADDRESS": address}
        with pipeline.worker() as worker:
            turns_green(address, worker)
            broker.process.kill()
            broker.wait()
            turns_red(address, {"starting"}, worker)
            [reason] = probe(address)[1]["reasons"]
            assert "no session with the brokers yet" in reason["text"]
            broker.start()
            turns_green(address, worker)
            restarts = scrape(address).samples["forks_session_restarts_total"]
            assert sum(restarts.values()) >= 1.0


@pytest.mark.slow
def test_a_commit_that_hangs_and_a_restore_that_stands_still_turn_the_probe_red(
    proxied: tuple[Proxy, str], tmp_path: Path, free_port: int
) -> None:
    proxy, direct = proxied
    address = f"127.0.0.1:{free_port}"
    pipeline = Proxied(direct, "hanging-", tmp_path)
    pipeline.through = f"127.0.0.1:{proxy.port}"
    pipeline.environment = {"FORKS_METRICS__ADDRESS": address, "FORKS_CHECKPOINT__OUTCOMES": "100000"}
    feed = Feed(pipeline, invented_events(tmp_path, 4_000))
    feed.send(2_000)

    def hang_at(request: int) -> Callable[[int], str]:
        return lambda number: SILENCE if number == request else PASS

    with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as follower:
        until(lambda: follower.reached(feed.labels), "outcomes", worker)
        turns_green(address, worker)
        proxy.fault_rule = hang_at(END_TRANSACTION)
        feed.send(500)
        turns_red(address, {"commit_stalled"}, worker)
        proxy.heal()
        until(lambda: follower.reached(feed.labels), "the outcomes after that", worker)
        turns_green(address, worker)
        assert scrape(address).value("forks_transaction_failures_total") <= 1.0
    worker = pipeline.start_worker()
    try:
        until(lambda: probe(address)[0] != 0, "the server", worker)
        proxy.fault_rule = hang_at(FETCH)
        turns_red(address, {"restoring", "restore_stalled"}, worker)
        until(
            lambda: bool({"restore_stalled", "starting"} & reasons(address)),
            "a restore that stands still, or is given up",
            worker,
        )
        proxy.heal()
        turns_green(address, worker)
    finally:
        worker.kill()
        worker.wait()


def test_a_worker_for_whom_no_partition_is_left_is_ready_and_says_so(
    bootstrap: str, topic_prefix: str, tmp_path: Path, free_port: int
) -> None:
    pipeline, address = Pipeline(bootstrap, topic_prefix, tmp_path), f"127.0.0.1:{free_port}"
    with pipeline.worker("first") as first:
        until(lambda: b"restored" in pipeline.log_of("first").read_bytes(), "its partition", first)
        pipeline.environment = {"FORKS_METRICS__ADDRESS": address}
        with pipeline.worker("second") as second:
            until(lambda: probe(address)[0] == 200, "a green probe", second)

            def one_has_none() -> bool:
                status, body = probe(address)
                return status == 200 and (bool(body["partitions"]) or "no partitions" in body.get("note", ""))

            until(one_has_none, "an answer", second)
            text = json.dumps(probe(address)[1])
            assert ("note" in text) == ('"partitions": []' in text)
