"""What is refused before a broker starts, and how a state file is checked against its process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pipeline.broker import embedded
from pipeline.broker.embedded import RunningBroker, start, state_file, status, stop, write_state
from pipeline.broker.launch import MAIN_CLASS, check_free, free_ports
from pipeline.errors import BrokerError, ConfigError


def running_as(pid: int, data: Path) -> RunningBroker:
    return RunningBroker(pid, 0.0, "127.0.0.1:1", str(data), str(data / "broker.log"), "4.3.1")


@pytest.mark.parametrize("heap", ["512", "0m", "half", "512mb", "-1g", ""])
def test_a_heap_that_is_not_a_size_is_refused(tmp_path: Path, heap: str) -> None:
    with pytest.raises(ConfigError, match=r"heap .* is not a size"):
        start(tmp_path, heap=heap)


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"port {port} of 127\.0\.0\.1 cannot be used: .*--port"):
            start(tmp_path, port=port)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "one"}', b'{"pid": "\xff"}'])
def test_a_damaged_state_file_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    state_file(tmp_path).parent.mkdir(exist_ok=True)
    state_file(tmp_path).write_bytes(content)
    for command in (status, start, stop):
        with pytest.raises(ConfigError, match=r"not what `forks broker start` wrote.* remove the file"):
            command(tmp_path)


def test_a_free_port_is_reserved_for_servers_that_ask_for_it() -> None:
    for port in free_ports(2):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        check_free(port)


def test_a_data_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=r"cannot keep the broker's data in .*/file/data: .*--data"):
        start(tmp_path / "file" / "data")


def test_nothing_runs_on_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    assert status(tmp_path / "none") is None
    assert stop(tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_another_process_with_the_brokers_number_is_neither_reported_nor_stopped(tmp_path: Path) -> None:
    write_state(running_as(os.getpid(), tmp_path))

    assert status(tmp_path) is None
    assert stop(tmp_path) is None
    assert not state_file(tmp_path).exists()


def test_a_process_that_has_ended_is_not_reported(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    write_state(running_as(process.pid, tmp_path))

    assert status(tmp_path) is None


def test_a_broker_that_ignores_sigterm_is_killed_and_that_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "STOP_SECONDS", 0.3)
    ignoring = "from signal import *; signal(SIGTERM, SIG_IGN); print('ready', flush=True); pause()"
    with subprocess.Popen(
        [sys.executable, "-c", ignoring, MAIN_CLASS], cwd=tmp_path, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        write_state(running_as(process.pid, tmp_path))

        with pytest.raises(BrokerError, match=rf"pid {process.pid}\) did not end within 0\.3 seconds"):
            stop(tmp_path)
    assert not psutil.pid_exists(process.pid)
    assert not state_file(tmp_path).exists()
