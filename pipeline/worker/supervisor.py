"""Run several workers on one machine: processes that start, stop and fail together."""

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
"""A worker calls it once it can be stopped, with the function that stops it."""
WorkerMain: TypeAlias = Callable[[int, RegisterStop], None]
"""The main function of a process: it is given the worker's number, and can be pickled."""

ORPHANED: Final = 1
"""Exit code of a worker whose supervisor has ended."""
SIGNAL_EXIT_BASE: Final = 128
"""The exit code of a process that a signal ended, as in a shell, is this and the signal's number."""

_log = structlog.get_logger()


class Supervisor:
    """Runs worker processes; when one of them fails, it stops all, and starts none again.

    Workers ignore signals: the supervisor's process receives them and stops the workers. When that process
    is gone, they end at once.

    Parameters
    ----------
    worker_main
        The main function of each worker.
    size
        How many workers there are.
    """

    def __init__(self, worker_main: WorkerMain, size: int) -> None:
        context = get_context("spawn")
        pipes = [context.Pipe(duplex=False) for _ in range(size)]
        self._stop_pipes = [mine for _, mine in pipes]
        self._processes: list[BaseProcess] = [
            context.Process(target=_run_worker, args=(worker_main, number, theirs), daemon=True)
            for number, (theirs, _) in enumerate(pipes)
        ]
        self._stopping = False

    def stop(self) -> None:
        """Tell all workers once to stop after their batch."""
        if not self._stopping:
            self._stopping = True
            for pipe in self._stop_pipes:
                with suppress(BrokenPipeError):  # this worker has ended already
                    pipe.send_bytes(b"")

    def run(self) -> int:
        """Start the workers and wait until all have ended.

        Returns
        -------
        int
            The exit code of the worker that failed first; 0 if none has.
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
    """Start processes in this context with SIGINT and SIGTERM blocked.

    Processes inherit blocked signals. In this process such a signal is delivered afterwards; if it were
    ignored meanwhile, it would be lost.
    """
    resource_tracker.ensure_running()  # its start would unblock the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_worker(worker_main: WorkerMain, number: int, stop_pipe: Connection) -> None:
    def register_stop(stop: Callable[[], None]) -> None:
        threading.Thread(target=_stop_on_request, args=(stop_pipe, stop), daemon=True).start()

    worker_main(number, register_stop)


def _stop_on_request(stop_pipe: Connection, stop: Callable[[], None]) -> None:
    """Stop when the supervisor says so; end the process at once when the supervisor is gone."""
    try:
        stop_pipe.recv_bytes()
        stop()
        stop_pipe.recv_bytes()
    except EOFError:
        os._exit(ORPHANED)
