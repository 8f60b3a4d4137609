"""How many events a second a machine of so many cores would process, simulated from what an event costs.

Workers and brokers share the cores. A worker's busy thread processes one batch after the other. The threads
of its clients and the broker finish the transaction of the batch before, at most one at a time. All that is
under way has an equal part of the cores, and no more than one core each. Costs vary from batch to batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

BATCHES: Final = 300
"""Batches of each worker that are simulated."""
WARM_UP: Final = 50
"""Those of the first that are not counted."""
VARIATION: Final = 0.3
"""Standard deviation of a batch's costs, relative to their mean."""
SEED: Final = 1


@dataclass(frozen=True)
class Costs:
    """What an event takes of the processors, in microseconds.

    Parameters
    ----------
    thread
        In the busy thread of the worker.
    clients
        In the other threads of the worker.
    broker
        In the broker.
    """

    thread: float
    clients: float
    broker: float


def simulate(costs: Costs, cores: int, workers: int, batch: int) -> float:
    """Return events a second, of all workers.

    Parameters
    ----------
    costs
        Of an event.
    cores
        Of the machine.
    workers
        Each with as many events before it.
    batch
        Events of a transaction.
    """
    chance = np.random.default_rng(SEED)
    shape = 1.0 / VARIATION**2
    work = chance.gamma(shape, 1.0 / shape, (2, workers, BATCHES)) * batch * 1e-6
    computing = work[0] * costs.thread
    committing = work[1] * (costs.clients + costs.broker)
    ends = _ends(computing, committing, cores)
    counted = BATCHES - WARM_UP
    return float(batch * counted * np.sum(1.0 / (ends[:, -1] - ends[:, WARM_UP - 1])))


def best_number(costs: Costs, cores: int, batch: int) -> tuple[int, float]:
    """Return the fewest workers with which a machine comes within a hundredth of its most, and their rate."""
    rates = {workers: simulate(costs, cores, workers, batch) for workers in _numbers(cores)}
    most = max(rates.values())
    return next((workers, rate) for workers, rate in rates.items() if rate >= 0.99 * most)


def _numbers(cores: int) -> Sequence[int]:
    return sorted({max(1, round(cores * share)) for share in (0.25, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5)})


def _ends(computing: NDArray[np.float64], committing: NDArray[np.float64], cores: int) -> NDArray[np.float64]:
    """Return when each transaction is done, in seconds.

    Parameters
    ----------
    computing, committing
        Seconds of a core that each batch takes before its transaction and in it, shape (workers, batches).
    cores
        What all share.
    """
    workers, batches = computing.shape
    ends, now = np.zeros((workers, batches)), 0.0
    left = np.stack([computing[:, 0], np.full(workers, np.inf)])  # of each worker's two jobs
    at = np.zeros((2, workers), dtype=np.int64)  # the batch that is computed, and that is committed next
    waiting = np.zeros(workers, dtype=np.bool_)  # a batch is computed, and the one before it is committed
    while np.isfinite(left).any():
        under_way = np.isfinite(left)
        pace = min(1.0, cores / np.count_nonzero(under_way))
        step = float(left[under_way].min())
        now += step / pace
        left[under_way] -= step
        for job, worker in np.argwhere(left <= 1e-12).tolist():
            left[job, worker] = np.inf
            if job == 0:
                at[0, worker] += 1
                waiting[worker] = True
            else:
                ends[worker, at[1, worker]] = now
                at[1, worker] += 1
            if waiting[worker] and not np.isfinite(left[1, worker]):
                waiting[worker] = False
                left[1, worker] = committing[worker, at[1, worker]]
                if at[0, worker] < batches:
                    left[0, worker] = computing[worker, at[0, worker]]
    return ends
