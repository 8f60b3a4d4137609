"""The broker that all processes of a test run share, without a broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from tests.integration import shared
from tests.integration.harness import until
from tests.integration.shared import shared_broker

HOLD_A_BROKER = """
import sys
from contextlib import nullcontext
from pathlib import Path
from tests.integration import shared
shared.available_broker = lambda: nullcontext("its own")
with shared.shared_broker(Path(sys.argv[1])) as address:
    print(address, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of the brokers that run; each that is started has another."""
    addresses: list[str] = []
    numbers = count(1)

    @contextmanager
    def numbered() -> Iterator[str]:
        address = f"broker {next(numbers)}"
        addresses.append(address)
        try:
            yield address
        finally:
            addresses.remove(address)

    monkeypatch.setattr(shared, "available_broker", numbered)
    return addresses


def test_the_first_keeps_it_until_the_last_has_left(running: list[str], tmp_path: Path) -> None:
    leave, left = Event(), Event()

    def first() -> None:
        with shared_broker(tmp_path):
            leave.wait()
        left.set()

    with ThreadPoolExecutor() as others:
        done = others.submit(first)
        until(lambda: running == ["broker 1"], "the first broker")
        with shared_broker(tmp_path) as address:
            assert address == "broker 1"
            leave.set()
            assert not left.wait(0.1)
            with shared_broker(tmp_path) as again:
                assert again == "broker 1"
            assert running == ["broker 1"]
        done.result()
    assert running == []
    with shared_broker(tmp_path) as address:
        assert address == "broker 2"


def test_a_failure_ends_it(running: list[str], tmp_path: Path) -> None:
    with pytest.raises(LookupError), shared_broker(tmp_path):
        raise LookupError
    assert running == []


def test_where_its_process_was_killed_the_next_starts_another(running: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD_A_BROKER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"its own\n"
        with shared_broker(tmp_path) as address:
            assert address == "its own"
            process.kill()
            process.wait()
    with shared_broker(tmp_path) as another:
        assert another == "broker 1"
    assert running == []
