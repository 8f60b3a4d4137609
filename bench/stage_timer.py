"""Seconds by stage: calls of a thread that begin within others are taken out of these."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Seconds(NamedTuple):
    """On the clock, and of the processor in this thread."""

    clock: float = 0.0
    processor: float = 0.0


class StageTimer:
    """Adds up what a thread spends in each stage, and in none of them ("rest").

    Parameters
    ----------
    clocks
        Gives seconds on the clock and of the processor.
    """

    def __init__(
        self, clocks: Callable[[], tuple[float, float]] = lambda: (time.perf_counter(), time.thread_time())
    ) -> None:
        self._clocks = clocks
        self._stages = ["rest"]
        self.restart()

    def totals(self) -> dict[str, Seconds]:
        """Return the seconds of each stage until now."""
        self.update()
        return dict(self._seconds)

    def restart(self) -> None:
        """Begin anew, in the stage that is under way."""
        self._seconds: defaultdict[str, Seconds] = defaultdict(Seconds)
        self._last = self._clocks()

    def update(self) -> None:
        """Add what has passed since the last note to the stage that is under way."""
        (clock, processor), (before, spent) = now, _ = self._clocks(), self._last
        totals = self._seconds[self._stages[-1]]
        self._seconds[self._stages[-1]] = Seconds(
            totals.clock + clock - before, totals.processor + processor - spent
        )
        self._last = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Be in a stage."""
        self.update()
        self._stages.append(name)
        try:
            yield
        finally:
            self.update()
            self._stages.pop()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function as one that is in a stage."""

        def call(*arguments: Any, **named: Any) -> Any:
            with self.stage(name):
                return function(*arguments, **named)

        return call
