"""Carries out the strikes of a schedule."""

from __future__ import annotations

import heapq
import signal
import time
from collections import Counter
from collections.abc import Callable
from itertools import count

from tests.chaos.broker import Broker
from tests.chaos.deployment import Stage
from tests.chaos.schedule import Fault, Strike
from tests.chaos.worker_pool import Worker


class Killer:
    """Strikes when the pipeline has come far enough, in the order of the schedule.

    Parameters
    ----------
    broker, stage
        The victims.
    strikes
        The schedule.
    say
        Told of each strike.
    """

    def __init__(
        self, broker: Broker, stage: Stage, strikes: list[Strike], say: Callable[[str], None]
    ) -> None:
        self.struck: Counter[Fault] = Counter()
        self._broker = broker
        self._stage = stage
        self._strikes = strikes[::-1]
        self._say = say
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def done(self) -> bool:
        """Whether all is struck, and everybody is back."""
        return not (self._strikes or self._later)

    def step(self) -> None:
        """Do what is due."""
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[-1]()
        if self._strikes and self._stage.progress >= self._strikes[-1].at and self._can(self._strikes[-1]):
            strike = self._strikes.pop()
            self._say(str(strike))
            self.struck[strike.fault] += 1
            self._strike(strike)

    def _can(self, strike: Strike) -> bool:
        """Whether there is something to strike at: a worker with partitions, or a broker."""
        if strike.fault is Fault.BROKER:
            return self._broker.running
        worker = self._stage.crew.workers.get(strike.worker)
        return worker is not None and bool(worker.partitions) and self._broker.running

    def _strike(self, strike: Strike) -> None:
        struck = time.monotonic()
        match strike.fault:
            case Fault.BROKER:
                self._broker.kill()
                self._after(strike.seconds, lambda: self._revive_broker(struck))
            case Fault.KILL:
                worker = self._stage.crew.take(strike.worker)
                worker.process.kill()
                self._stage.watch.wait_for_recovery(struck, worker.partitions)
                self._after(strike.seconds, lambda: self._stage.crew.start(strike.worker))
            case Fault.RESTART:
                worker = self._stage.crew.take(strike.worker)
                held = worker.partitions
                worker.process.send_signal(signal.SIGTERM)
                self._after(0.0, lambda: self._restart(strike, worker, held, struck))
            case Fault.ZOMBIE:
                self._stop(strike, struck)

    def _stop(self, strike: Strike, struck: float) -> None:
        """Put a worker to sleep; if it has a name, another one takes its place under that name."""
        crew = self._stage.crew
        worker = crew.workers[strike.worker]
        held = worker.partitions
        worker.stop()
        if crew.name(strike.worker):
            crew.replace(strike.worker)
        else:
            crew.take(strike.worker)
        self._stage.watch.wait_for_recovery(struck, held)
        self._after(strike.seconds, lambda: self._wake(strike, worker))

    def _wake(self, strike: Strike, worker: Worker) -> None:
        worker.wake()
        if not self._stage.crew.name(strike.worker):
            self._stage.crew.workers[strike.worker] = worker

    def _restart(self, strike: Strike, worker: Worker, held: set[int], struck: float) -> None:
        """Start a worker afresh as soon as the one that was told to stop has."""
        if worker.process.poll() is None or not self._broker.running:
            self._after(0.1, lambda: self._restart(strike, worker, held, struck))
            return
        self._stage.crew.expect(worker, 0, "a worker that was told to stop")
        self._stage.watch.wait_for_recovery(struck, held)
        self._after(strike.seconds, lambda: self._stage.crew.start(strike.worker))

    def _revive_broker(self, struck: float) -> None:
        self._broker.start()
        self._stage.watch.wait_for_recovery(struck)

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), action))
