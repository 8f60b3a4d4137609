"""The command `forks broker`, and that no broker is left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from pipeline.broker.embedded import RunningBroker, start, state_file, status, write_state
from pipeline.broker.temporary import temporary_broker
from pipeline.errors import BrokerError
from tests.integration.harness import TIMEOUT, until

FORKS = Path(sys.executable).with_name("forks")

HOLD_A_BROKER = """
import sys, tempfile
from pipeline.broker.temporary import temporary_broker
tempfile.tempdir = sys.argv[1]
with temporary_broker() as bootstrap:
    print(bootstrap, flush=True)
    sys.stdin.read()
"""


def forks_broker(command: str, data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [str(FORKS), "broker", command, "--data", str(data), *options]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=TIMEOUT)


def forks_broker_json(command: str, data: Path) -> dict[str, Any]:
    answer = forks_broker(command, data, "--json")
    assert answer.returncode == 0, answer.stderr
    content: dict[str, Any] = json.loads(answer.stdout)
    return content


@contextmanager
def stopped_at_the_end(data: Path) -> Iterator[None]:
    try:
        yield
    finally:
        forks_broker("stop", data)


def write_record(bootstrap: str, topic: str, value: bytes) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def read_record(bootstrap: str, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []

    def record_arrived() -> bool:
        """Poll once; a broker that has just started may answer that it does not know the partition."""
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value())
        return bool(found)

    until(record_arrived, "the record")
    consumer.close()
    return found[0]


@pytest.mark.slow
def test_a_broker_starts_once_stops_and_keeps_its_data(tmp_path: Path) -> None:
    data = tmp_path / "a folder with spaces and ümlauts"
    data.mkdir()
    write_state(
        RunningBroker(os.getpid(), 0.0, "127.0.0.1:1", str(data), "", "")
    )  # the number of another process

    with stopped_at_the_end(data):
        first = forks_broker_json("start", data)
        assert first["already_running"] is False
        process = psutil.Process(first["pid"])

        again = forks_broker("start", data)
        assert again.returncode == 0
        assert f"runs already at {first['bootstrap']}" in again.stdout
        assert f"export FORKS_KAFKA__BOOTSTRAP={first['bootstrap']}" in again.stdout
        running = forks_broker_json("status", data)
        assert (running["running"], running["pid"]) == (True, first["pid"])

        write_record(first["bootstrap"], "kept", b"a record")
        stopped = forks_broker("stop", data)
        assert stopped.returncode == 0
        assert f"stopped the broker at {first['bootstrap']}" in stopped.stdout
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        absent = forks_broker("status", data)
        assert absent.returncode == 3
        assert "no broker runs" in absent.stdout

        second = forks_broker_json("start", data)
        assert read_record(second["bootstrap"], "kept") == b"a record"
    assert status(data) is None


def test_a_broker_that_ends_while_starting_is_reported_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(BrokerError) as raised:
        start(tmp_path, heap="5m")

    message = str(raised.value)
    assert "ended while it was starting" in message
    assert str(tmp_path / "broker.log") in message
    assert "OutOfMemoryError" in message
    assert not state_file(tmp_path).exists()


def test_a_temporary_broker_ends_with_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    before = set(psutil.Process().children(recursive=True))
    processes: set[psutil.Process] = set()

    def fail_in_the_block() -> None:
        with temporary_broker() as bootstrap:
            assert AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).brokers
            processes.update(set(psutil.Process().children(recursive=True)) - before)
            raise LookupError

    with pytest.raises(LookupError):
        fail_in_the_block()
    assert len(processes) == 2  # the guard and Java
    assert not any(process.is_running() for process in processes)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_broker_that_does_not_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with pytest.raises(BrokerError, match="OutOfMemoryError"), temporary_broker(heap="5m"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_broker_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD_A_BROKER, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline().startswith(b"127.0.0.1:")
    processes = psutil.Process(owner.pid).children(recursive=True)
    owner.send_signal(signal.SIGKILL)
    owner.communicate()

    assert len(processes) == 2  # the guard and Java
    _, alive = psutil.wait_procs(processes, timeout=TIMEOUT)
    assert alive == []
    assert list(tmp_path.iterdir()) == []
