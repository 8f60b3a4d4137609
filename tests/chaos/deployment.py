"""One pipeline at work: its workers, what feeds it, and who watches it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from tests.chaos.feeder import Feeder
from tests.chaos.watch import Watch
from tests.chaos.worker_pool import WorkerPool
from tests.chaos.world import World
from tests.integration.harness import Pipeline

STALL_TIMEOUT = 180.0
"""Seconds without progress after which it is given up."""
OFFSET_INTERVAL = 1.0
"""Seconds between two questions for the group's offsets."""


class Deployment:
    """All of it ends with the `with` block, whatever happens.

    Parameters
    ----------
    pipeline
        Where.
    world
        What it is fed.
    workers
        How many.
    seconds
        How long feeding is to take; with 0, all is there before the workers start.
    bootstrap_of
        Where a worker of a number reaches the brokers.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        world: World,
        workers: int,
        seconds: float,
        bootstrap_of: Callable[[int], str],
    ) -> None:
        self.worker_pool = WorkerPool(pipeline, bootstrap_of)
        self.watch = Watch(pipeline)
        self._pipeline = pipeline
        self._events = world.events
        self._workers = workers
        self._feeder = Feeder(pipeline, world, seconds)
        self._live = seconds > 0.0
        self._thread = ThreadPoolExecutor(1)
        self._feeding: Future[None] | None = None
        self._ends = {final: world.positions(final=final) for final in (False, True)}
        self._final_sent = False
        self._asked = self._moved = time.monotonic()
        self._positions: dict[tuple[bool, int], int] = {}

    def __enter__(self) -> Self:
        if not self._live:
            self._feeder.send_events()
            self._close_windows()
        for number in range(self._workers):
            self.worker_pool.start(number)
        if self._live:
            self._feeding = self._thread.submit(self._feeder.send_events)
        return self

    def __exit__(self, *_: object) -> None:
        self._feeder.stop.set()
        self.worker_pool.end()
        self._thread.shutdown()
        self.watch.close()

    @property
    def progress(self) -> float:
        """The share of the events that is predicted."""
        return self.watch.predictions / self._events

    @property
    def exhausted(self) -> bool:
        """Whether all events have been sent and predicted."""
        return self.progress >= 1.0 and (self._feeding is None or self._feeding.done())

    def poll(self) -> None:
        """Let a little time pass, in which workers that ended are started again.

        Raises
        ------
        TimeoutError
            Nothing has moved for too long.
        """
        self.watch.poll(0.05)
        self.worker_pool.restart_ended()
        now = time.monotonic()
        if now - self._asked >= OFFSET_INTERVAL:
            self._asked = now
            positions = self.watch.committed()
            if positions is not None and positions != self._positions:
                self._positions, self._moved = positions, now
        if now - self._moved > STALL_TIMEOUT:
            raise TimeoutError(
                f"nothing was processed for {STALL_TIMEOUT:.0f} s; the offsets are {self._positions}, "
                f"and the group is {self.watch.group()}"
            )

    def finished(self) -> bool:
        """Whether all is processed; sends what closes the windows when all before it is."""
        if self._feeding is not None:
            if not self._feeding.done():
                return False
            self._feeding.result()
        if self._positions != self._ends[self._final_sent]:
            return False
        if self._final_sent:
            return True
        self._close_windows()
        return False

    def _close_windows(self) -> None:
        self._feeder.send_final()
        self._final_sent = True
