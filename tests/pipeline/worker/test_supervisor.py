from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn

import psutil
import pytest
import structlog

from pipeline.cli.signals import stop_on_signals
from pipeline.worker.supervisor import RegisterStop, Supervisor
from tests.support.members import failing, killed, obedient

SUPERVISOR_PROCESS = (sys.executable, "-c", "from tests.support.members import main; main()")


def wait_for(*files: Path) -> None:
    while not all(file.exists() for file in files):
        time.sleep(0.01)


@contextmanager
def supervisor_process(
    kind: str, folder: Path
) -> Iterator[tuple[subprocess.Popen[bytes], list[psutil.Process]]]:
    """A supervisor with two running workers, in a process group of its own as in a terminal."""
    process = subprocess.Popen((*SUPERVISOR_PROCESS, kind, str(folder)), start_new_session=True)
    try:
        begun = [folder / f"begun-{number}" for number in range(2)]
        wait_for(*begun)
        yield process, [psutil.Process(int(file.read_text())) for file in begun]
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_stops_them_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    with supervisor_process("obedient", tmp_path) as (process, _):
        os.killpg(process.pid, number)
        assert process.wait() == 0
    assert all((tmp_path / f"done-{n}").exists() for n in range(2))


def test_a_signal_during_the_start_of_the_workers_stops_them(tmp_path: Path) -> None:
    def stop_after_first_start(_: object, __: str, event: MutableMapping[str, object]) -> NoReturn:
        if event["event"] == "started" and event["worker"] == 0:
            signal.raise_signal(signal.SIGTERM)
        raise structlog.DropEvent

    structlog.configure(processors=[stop_after_first_start])
    supervisor = Supervisor(partial(obedient, tmp_path), 2)
    with stop_on_signals(supervisor.stop):
        assert supervisor.run() == 0
    assert all((tmp_path / f"done-{n}").exists() for n in range(2))


@pytest.mark.slow
def test_a_second_signal_ends_all_at_once(tmp_path: Path) -> None:
    with supervisor_process("stubborn", tmp_path) as (process, members):
        process.send_signal(signal.SIGTERM)
        wait_for(*(tmp_path / f"told-{n}" for n in range(2)))
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
        psutil.wait_procs(members)


@pytest.mark.slow
def test_workers_end_with_their_supervisor(tmp_path: Path) -> None:
    with supervisor_process("obedient", tmp_path) as (process, members):
        process.send_signal(signal.SIGKILL)
        psutil.wait_procs(members)
    assert not any((tmp_path / f"done-{n}").exists() for n in range(2))


@pytest.mark.parametrize(("member", "code"), [(failing, 5), (killed, 128 + signal.SIGKILL)])
def test_where_one_fails_all_stop_and_its_code_counts(
    tmp_path: Path, member: Callable[[Path, int, RegisterStop], None], code: int
) -> None:
    assert Supervisor(partial(member, tmp_path), 3).run() == code
    assert [(tmp_path / f"done-{n}").exists() for n in range(3)] == [True, False, True]
