"""Start, find and stop an embedded broker that outlives the command, with its data in a folder."""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from pipeline.broker.launch import DEFAULT_HEAP, MAIN_CLASS, Launch, log_file, prepare, start_failure
from pipeline.broker.ready import wait_until_ready
from pipeline.broker.settings import VERSION
from pipeline.errors import BrokerError, ConfigError

DEFAULT_DATA: Final = Path("forks-data/broker")

STOP_SECONDS: Final = 60.0  # a clean stop takes one or two; it writes out what is in memory


@dataclass(frozen=True)
class RunningBroker:
    """A broker that runs: its process and when that began (Unix time), its address and its files."""

    pid: int
    created: float
    bootstrap: str
    data: str
    log: str
    version: str


def status(data: Path = DEFAULT_DATA) -> RunningBroker | None:
    """Give the broker that runs on this data folder, if one does."""
    state = state_file(data)
    if not state.exists():
        return None
    running = RunningBroker(**json.loads(state.read_text()))
    return running if process_of(running) else None


def start(data: Path = DEFAULT_DATA, port: int | None = None, heap: str = DEFAULT_HEAP) -> RunningBroker:
    """Start a broker and return when it answers; if one runs on this data folder already, give that.

    Parameters
    ----------
    data : Path
        Where the broker keeps its data, log and state file; made if it is not there.
    port : int, optional
        The port to listen on, on 127.0.0.1; a free one by default.
    heap : str
        Size of the Java heap, such as ``512m`` or ``2g``.

    Raises
    ------
    ConfigError
        The data folder cannot be written, the heap is no size, or the port is in use.
    BrokerError
        A jar cannot be had, or the broker does not start.
    """
    with lock_folder(data):
        if running := status(data):
            return running
        launch = prepare(data.resolve(), port, heap)
        return wait_until_running(launch, run(launch))


def run(launch: Launch) -> subprocess.Popen[bytes]:
    """Run the commands, the last one in the background; the log of the run before is kept beside the new."""
    log_path = log_file(launch.folder)
    if log_path.exists():
        log_path.replace(log_path.with_suffix(".log.1"))
    *before, broker = launch.commands
    with log_path.open("ab") as log:
        for command in before:
            done = subprocess.run(command, cwd=launch.folder, stdout=log, stderr=log, check=False)
            if done.returncode:
                raise BrokerError(start_failure(launch.folder, done.returncode))
        return subprocess.Popen(
            broker,
            cwd=launch.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it outlives this command and its terminal
        )


def wait_until_running(launch: Launch, process: subprocess.Popen[bytes]) -> RunningBroker:
    """Note down the new process and wait until it answers; if that fails, end it."""

    def check_alive() -> None:
        if (code := process.poll()) is not None:
            raise BrokerError(start_failure(launch.folder, code))

    state = state_file(launch.folder)
    try:
        running = RunningBroker(
            pid=process.pid,
            created=psutil.Process(process.pid).create_time(),
            bootstrap=launch.bootstrap,
            data=str(launch.folder),
            log=str(log_file(launch.folder)),
            version=VERSION,
        )
        write_state(running)
        wait_until_ready(launch.bootstrap, check_alive)
    except BaseException:
        process.kill()
        process.wait()
        state.unlink(missing_ok=True)
        raise
    return running


def stop(data: Path = DEFAULT_DATA) -> RunningBroker | None:
    """Stop the broker of this data folder and wait for its end; give what ran, None if nothing did.

    Raises
    ------
    BrokerError
        The broker did not end by itself and was killed; its data will be recovered at the next start.
    """
    if not data.is_dir():
        return None
    with lock_folder(data):
        running = status(data)
        process = process_of(running) if running else None
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait()
                state_file(data).unlink()
                raise BrokerError(
                    f"the broker (pid {process.pid}) did not end within {STOP_SECONDS:g} seconds of SIGTERM "
                    f"and was killed; the next start recovers its data. Its log: {log_file(data)}"
                ) from None
        state_file(data).unlink(missing_ok=True)
    return running


def process_of(running: RunningBroker) -> psutil.Process | None:
    """Give the broker's process, None if it is gone or its number now belongs to another process.

    The time of creation alone would not do: it is reckoned from the wall clock, and moves when that is set.
    """
    try:
        process = psutil.Process(running.pid)
        with process.oneshot():
            ours = MAIN_CLASS in process.cmdline() and Path(process.cwd()) == Path(running.data)
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # ended, or somebody else's
        return None
    return process if ours else None


def write_state(running: RunningBroker) -> None:
    """Note down what runs, whole or not at all."""
    state = state_file(Path(running.data))
    new = state.with_suffix(".new")
    new.write_text(json.dumps(asdict(running), indent=2) + "\n")
    new.replace(state)


def state_file(data: Path) -> Path:
    """Give the file that says which process is this folder's broker."""
    return data / "broker.json"


@contextmanager
def lock_folder(data: Path) -> Iterator[None]:
    """Hold the data folder for one start or stop at a time, making it if need be.

    Raises
    ------
    ConfigError
        The folder cannot be made or written.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = (data / "lock").open("w")
    except OSError as error:
        raise ConfigError(
            f"the broker cannot keep its data in {data}: {error.strerror}. "
            "Name a folder that can be written with --data."
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
