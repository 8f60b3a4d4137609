"""`forks serve` as a process, beside a real worker and the real client."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from forks.client import Client
from pipeline.broker.launch import free_ports
from pipeline.cli import app
from pipeline.sources.kuairec import Events
from pipeline.tools.demo import DemoData, example_request, serving
from tests.integration.followers import answers, follower, start
from tests.integration.harness import TIMEOUT, Pipeline, invented_events, until
from tests.support.forked import ForkedCommand


def test_scores_are_those_of_the_stream_s_model(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    """The client asks while a worker learns; then an audit derives again what was answered."""
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2)
    pipeline.environment = {"FORKS_WORKER__BATCH": "50", "FORKS_CHECKPOINT__OUTCOMES": "300"}
    events = invented_events(tmp_path, 3_000)
    half = len(events) // 2
    pipeline.produce_events(events[:half])
    pipeline.run_until({pipeline.topics.outcomes: half})
    log = tmp_path / "scores.jsonl"
    versions: set[tuple[int, int]] = set()
    with follower(pipeline, "--log-scores", str(log)) as url, Client([url], timeout=TIMEOUT) as client:
        pipeline.produce_events(events[half:])
        with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as counted:
            while not counted.reached(len(events)):
                row = events.row(31 * len(versions) % half, named=True)
                items = [{"video_id": each} for each in (row["video_id"], 10**9)]
                scores = client.score({"user_id": row["user_id"]}, items, time=row["timestamp"], explain=True)
                assert scores.items[1].unknown == ("video_id",)
                for each in scores.items:
                    assert each.explain is not None
                    assert abs(sum(term.value for term in each.explain.terms) - each.score) < 1e-12
                versions.add((scores.partition, scores.model_version))
                assert worker.poll() is None

        def caught_up() -> bool:
            with urlopen(f"{url}/v1/model", timeout=TIMEOUT) as answer:
                partitions = json.load(answer)["partitions"]
            versions_now: list[int] = [each["model_version"] for each in partitions]
            return sum(versions_now) == len(events)

        until(caught_up, "all outcomes")
    assert len(versions) > 4
    lines = log.read_text().splitlines()
    kafka = pipeline.kafka
    arguments = ["audit", "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group]
    audited = CliRunner().invoke(app, [*arguments, "--scores", str(log), "--json"])
    assert audited.exit_code == 0, audited.output
    changed = json.loads(lines[-1])
    changed["scores"][0] += 1e-15
    log.write_text("\n".join([*lines[:-1], json.dumps(changed)]) + "\n")
    assert CliRunner().invoke(app, [*arguments, "--scores", str(log)]).exit_code == 1


def test_no_request_fails_while_one_of_two_followers_is_killed_again_and_again(
    bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=1)
    events = invented_events(tmp_path, 300)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    [port] = free_ports(1)
    other, ended = f"http://127.0.0.1:{port}", threading.Event()

    def kill_again_and_again() -> None:
        for number in range(4):
            process = start(pipeline, port)
            try:
                until(partial(answers, other), "the other follower", process)
                wanted = count + 10 * number  # under load, each time a little longer
                until(lambda: count >= wanted, "requests", process)  # noqa: B023 - called at once
            finally:
                process.kill()
                process.wait()
        ended.set()

    versions: set[int] = set()
    count = 0
    with follower(pipeline) as url, Client([url, other], timeout=TIMEOUT) as client:
        killing = threading.Thread(target=kill_again_and_again)
        killing.start()
        while killing.is_alive():
            row = events.row(count % len(events), named=True)
            scores = client.score({"user_id": row["user_id"]}, [{"video_id": row["video_id"]}])
            versions.add(scores.model_version)
            count += 1
        killing.join()
    assert ended.is_set()
    assert versions == {len(events)}, "restored, or refused"
    assert count > 50


def test_a_follower_without_topics_says_so(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    [port] = free_ports(1)
    options = ["serve", "--bootstrap", bootstrap, "--prefix", topic_prefix, "--address", str(port)]
    process = ForkedCommand(options, tmp_path / "log", dict(os.environ), tmp_path)
    assert process.wait(TIMEOUT) == 4
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_line_that_the_demo_shows_is_answered(bootstrap: str, topic_prefix: str, tmp_path: Path) -> None:
    pipeline = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=1)
    events = invented_events(tmp_path, 100)
    pipeline.produce_events(events)
    pipeline.run_until({pipeline.topics.outcomes: len(events)})
    data = DemoData(Events(events, len(events), {}), pipeline.topics.stream, {})
    request = json.loads(example_request(data))
    assert (len(request["items"]), [*request["items"][0]]) == (3, ["video_id"])
    with serving(pipeline.kafka, data, tmp_path / "log") as found:
        found.wait_until_ready()
        done = subprocess.run(
            found.curl_line, shell=True, capture_output=True, text=True, timeout=TIMEOUT, check=True
        )
        assert len(json.loads(done.stdout)["items"]) == 3
        found.stop()
        found.wait()
