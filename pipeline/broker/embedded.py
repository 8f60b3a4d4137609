"""Start, find and stop an embedded broker that goes on after the command, with its data in a folder."""

from __future__ import annotations

import json
import subprocess
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec
import psutil

from pipeline.broker.class_archive import ensure_class_archive
from pipeline.broker.folder_lock import locked
from pipeline.broker.launch import MAIN_CLASS, Launch, log_file, prepare, start_failure
from pipeline.broker.ready import wait_until_ready
from pipeline.broker.settings import DEFAULT_DATA, DEFAULT_HEAP, VERSION
from pipeline.errors import BrokerError, ConfigError

STOP_SECONDS: Final = 60.0  # a clean stop, which writes all data to disk, takes one or two


@dataclass(frozen=True)
class RunningBroker:
    """A running broker, as its state file describes it.

    Attributes
    ----------
    pid : int
        The number of its process.
    created : float
        When the process started, in seconds of Unix time.
    bootstrap : str
        Its address, ``host:port``.
    data : str
        The folder of its data, absolute.
    log : str
        The file of its log.
    version : str
        The version of Apache Kafka.
    """

    pid: int
    created: float
    bootstrap: str
    data: str
    log: str
    version: str


def status(data: Path = DEFAULT_DATA) -> RunningBroker | None:
    """Return the broker that runs on this data folder, None if there is none.

    Raises
    ------
    ConfigError
        The file that names the broker is damaged.
    """
    state = state_file(data)
    if not state.exists():
        return None
    try:
        running = msgspec.json.decode(state.read_bytes(), type=RunningBroker)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{state}: this is not what `forks broker start` wrote: {error}. "
            f"If no broker runs on {data}, remove the file"
        ) from error
    return running if find_process(running) else None


def start(data: Path = DEFAULT_DATA, port: int | None = None, heap: str = DEFAULT_HEAP) -> RunningBroker:
    """Start a broker on this data folder and return when it answers, unless one runs on it already.

    Parameters
    ----------
    data : Path
        The folder for the broker's data, log and state file; made if it does not exist.
    port : int, optional
        The port of 127.0.0.1 to listen on; a free one by default.
    heap : str
        The size of the Java heap, such as ``512m`` or ``2g``.

    Returns
    -------
    Running
        The new broker, or the one that ran already.

    Raises
    ------
    ConfigError
        The data folder or the cache folder for jars cannot be written, the heap is not a size, the port is
        in use, or a package of the extra `broker` is not installed.
    BrokerError
        A jar cannot be downloaded, or the broker does not start.
    """
    with lock_data(data):
        if running := status(data):
            return running
        ensure_class_archive()
        launch = prepare(data.resolve(), port, heap)
        return wait_for_start(launch, run_commands(launch))


def run_commands(launch: Launch) -> subprocess.Popen[bytes]:
    """Run the commands, and return the process of the last one, the broker, which goes on in the background.

    The log of the run before is kept as ``broker.log.1``.

    Raises
    ------
    BrokerError
        A command before the last one failed.
    """
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
            start_new_session=True,  # it goes on after this command and its terminal
        )


def wait_for_start(launch: Launch, process: subprocess.Popen[bytes]) -> RunningBroker:
    """Write the state file of a new broker and wait until it answers; kill it if that fails.

    Raises
    ------
    BrokerError
        The broker ended while it was starting, or did not answer in time.
    """

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
    """Stop the broker of this data folder, and wait for its end.

    Returns
    -------
    Running or None
        The broker that ran; None if none did.

    Raises
    ------
    ConfigError
        The data folder cannot be written.
    BrokerError
        The broker did not end after SIGTERM and was killed. The next start recovers its data.
    """
    if not data.is_dir():
        return None
    with lock_data(data):
        running = status(data)
        process = find_process(running) if running else None
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


def find_process(running: RunningBroker) -> psutil.Process | None:
    """Return the process of a broker, None if it has ended or its number now belongs to another process.

    Command and folder identify it. The time of its creation does not: it is computed from the system clock,
    and changes when that is set.
    """
    try:
        process = psutil.Process(running.pid)
        with process.oneshot():
            is_broker = MAIN_CLASS in process.cmdline() and Path(process.cwd()) == Path(running.data)
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # it ended, or belongs to another user
        return None
    return process if is_broker else None


def write_state(running: RunningBroker) -> None:
    """Write the state file of a running broker, atomically."""
    state = state_file(Path(running.data))
    new = state.with_suffix(".new")
    new.write_text(json.dumps(asdict(running), indent=2) + "\n")
    new.replace(state)


def state_file(data: Path) -> Path:
    """Return the file that names the broker process of a data folder."""
    return data / "broker.json"


def lock_data(data: Path) -> AbstractContextManager[None]:
    """Hold the data folder for one start or stop at a time; make it if it does not exist."""
    return locked(data, "the broker's data", "Name another folder with --data.")
