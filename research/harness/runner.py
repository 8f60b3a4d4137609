"""Execution of the trials whose results are not stored yet, in worker processes."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from research.harness.store import Store
from research.harness.trials import Result, Trial


def run_missing(trials: Sequence[Trial], store: Store, jobs: int, update: Callable[[int], None]) -> None:
    """Run the trials whose results the store lacks, and store each result as soon as it is known.

    Parameters
    ----------
    trials
        Trials whose results are wanted.
    store
        Store of results, entered as a context manager.
    jobs
        Number of processes; with 1, the trials run in this one.
    update
        Function called with the number of trials done so far, including those that were in the store.
    """
    missing = [trial for trial in trials if store.get(trial) is None]
    done = len(trials) - len(missing)
    update(done)
    for trial, result in _sequentially(missing) if jobs == 1 else _in_parallel(missing, jobs):
        store.add(trial, result)
        done += 1
        update(done)


def result_of(trial: Trial) -> Result:
    """Run one trial with BLAS on one thread: processes share the machine, and times are compared."""
    with threadpool_limits(limits=1, user_api="blas"):
        return trial.result()


def _sequentially(trials: Sequence[Trial]) -> Iterator[tuple[Trial, Result]]:
    for trial in trials:
        yield trial, result_of(trial)


def _in_parallel(trials: Sequence[Trial], jobs: int) -> Iterator[tuple[Trial, Result]]:
    with _processes(min(jobs, max(1, len(trials)))) as executor:
        futures = {executor.submit(result_of, trial): trial for trial in trials}
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of new processes; on an exception, such as Ctrl-C, terminate them at once."""
    before = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        count, mp_context=multiprocessing.get_context("spawn"), initializer=_ignore_interrupts
    )
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        executor.shutdown()


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which reaches the whole process group: the parent terminates its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
