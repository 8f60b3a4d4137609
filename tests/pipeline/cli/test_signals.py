from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from pipeline.cli.signals import StopRequest, stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_to_stop_and_the_second_is_pythons_own_again(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stop = Event()
    with stop_on_signals(stop.set):
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
        assert signal.getsignal(number) == before
    assert signal.getsignal(number) == before


def test_a_signal_before_anything_runs_ends_the_process_with_zero() -> None:
    request = StopRequest()
    with stop_on_signals(request), pytest.raises(SystemExit) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 0


def test_a_request_that_did_not_end_the_process_stops_what_runs_later() -> None:
    request, stop = StopRequest(), Event()
    with pytest.raises(SystemExit):
        request()
    request.pass_to(stop.set)
    assert stop.is_set()


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_worker_that_is_stopped_while_it_starts_ends_with_zero(workers: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and answers nothing
        host, port = silent.getsockname()
        command = [sys.executable, "-c", "from pipeline.cli import main; main()", "run"]
        command += ["--workers", workers, "--bootstrap", f"{host}:{port}"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
            silent.accept()[0].close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60.0) == 0
