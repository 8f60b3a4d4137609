"""How a run went."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.chaos.checker import Found
from tests.chaos.schedule import Fault


@dataclass(frozen=True)
class Options:
    """What a run is like."""

    seed: int
    minutes: float
    events: int
    partitions: int
    workers: int
    cluster: bool = False
    """Whether it runs on three brokers."""
    replay: bool = False
    """Whether all inputs are there before the workers start."""
    challengers: bool = False
    """Whether two learners run in the shadow."""
    policy: bool = False
    """Whether only some labels are asked for."""


@dataclass(frozen=True)
class Report:
    """Its figures and its verdict."""

    options: Options
    seconds: float
    faults: Counter[Fault]
    rebalances: int
    recoveries: dict[Fault, list[float]]
    """Seconds from a strike, or from the end of a network fault, to new committed predictions.

    In all partitions that were hit; by fault.
    """
    exits: Counter[int]
    """Workers that ended without being told to, by exit code."""
    discarded_sessions: Counter[str]
    """Sessions that ended with an error, by its name."""
    found: Found
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """The verdict."""
        return not self.problems

    def figures(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        times = [seconds for of_fault in self.recoveries.values() for seconds in of_fault]
        return {
            **asdict(self.options),
            "seconds": round(self.seconds, 1),
            "faults": {fault.name.lower(): self.faults[fault] for fault in Fault},
            "rebalances": self.rebalances,
            "recoveries": len(times),
            "recovery_median_s": round(statistics.median(times), 2) if times else None,
            "recovery_worst_s": round(max(times), 2) if times else None,
            "recovery_by_fault": {
                fault.name.lower(): {
                    "median_s": round(statistics.median(seconds), 2),
                    "worst_s": round(max(seconds), 2),
                }
                for fault, seconds in self.recoveries.items()
            },
            "exits": {str(code): number for code, number in sorted(self.exits.items())},
            "sessions_thrown_away": dict(self.discarded_sessions),
            "predictions": self.found.predictions,
            "outcomes": self.found.outcomes,
            "dead_letters": self.found.dead_letters,
            "problems": self.problems,
            "verdict": "good" if self.good else "bad",
        }
