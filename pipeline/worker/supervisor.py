"""Several workers on one machine: processes that start, stop and fail together."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, TypeAlias

import structlog

RegisterStop: TypeAlias = Callable[[Callable[[], None]], None]
"""What a member calls, once it can be stopped, with what stops it."""
WorkerMain: TypeAlias = Callable[[int, RegisterStop], None]
"""What a process does, given its number; it can be pickled."""

ORPHANED: Final = 1
"""Exit code of a member whose crew is gone."""
SIGNAL_EXIT_BASE: Final = 128
"""A process that a signal ended is told of as a shell does: by this and the signal's number."""

_log = structlog.get_logger()


class Supervisor:
    """Processes that all do the same, and of which none goes on or is started again when one has failed.

    Members do not listen to signals: the process that holds the crew does, and passes on what it is told.
    When it is gone, they end at once.

    Parameters
    ----------
    member
        What each of them does.
    size
        How many there are.
    """

    def __init__(self, worker_main: WorkerMain, size: int) -> None:
        context = get_context("spawn")
        pipes = [context.Pipe(duplex=False) for _ in range(size)]
        self._stop_pipes = [mine for _, mine in pipes]
        self._processes: list[BaseProcess] = [
            context.Process(target=_run_member, args=(worker_main, number, theirs), daemon=True)
            for number, (theirs, _) in enumerate(pipes)
        ]
        self._stopping = False

    def stop(self) -> None:
        """Tell all members to stop in good order, once."""
        if not self._stopping:
            self._stopping = True
            for pipe in self._stop_pipes:
                with suppress(BrokenPipeError):  # that one has ended already
                    pipe.send_bytes(b"")

    def run(self) -> int:
        """Start the members and wait until all have ended.

        Returns
        -------
        int
            The exit code of the one that failed first; 0 if none has.
        """
        try:
            with _signals_blocked():
                for number, process in enumerate(self._processes):
                    process.start()
                    _log.info("started", worker=number, pid=process.pid)
            return self._wait()
        finally:
            for process in self._processes:
                if process.is_alive():
                    process.kill()

    def _wait(self) -> int:
        failed = 0
        left = dict(enumerate(self._processes))
        while left:
            ended = wait([process.sentinel for process in left.values()])
            for number in [number for number, process in left.items() if process.sentinel in ended]:
                code = _exit_code(left.pop(number))
                if code:
                    _log.error("a worker has failed: all stop", worker=number, exit_code=code)
                    failed = failed or code
                    self.stop()
        return failed


def _exit_code(process: BaseProcess) -> int:
    process.join()
    code = process.exitcode or 0
    return SIGNAL_EXIT_BASE - code if code < 0 else code


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Let processes that are started here never get the signals that are for this process to pass on.

    What is blocked stays so in processes that are started, and waits here. Ignored, a signal that comes in
    between would be lost.
    """
    resource_tracker.ensure_running()  # its start would let the signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_member(worker_main: WorkerMain, number: int, stop_pipe: Connection) -> None:
    def register_stop(stop: Callable[[], None]) -> None:
        threading.Thread(target=_stop_on_request, args=(stop_pipe, stop), daemon=True).start()

    worker_main(number, register_stop)


def _stop_on_request(stop_pipe: Connection, stop: Callable[[], None]) -> None:
    """Stop when told to; end at once when there is nobody any more who could."""
    try:
        stop_pipe.recv_bytes()
        stop()
        stop_pipe.recv_bytes()
    except EOFError:
        os._exit(ORPHANED)
