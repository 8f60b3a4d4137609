"""How a run went."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.config.settings import Corrections
from tests.chaos.checker import Found
from tests.chaos.schedule import Fault
from tests.chaos.watch import Recovery


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
    tables: bool = False
    """Whether there are live tables."""
    corrections: Corrections = "off"
    """Whether labels are corrected, and what that teaches."""
    together: bool = False
    """Whether slates, corrections, live tables, weights and aligned shares are tried together."""
    avro: bool = False
    """Whether messages are in Avro, with their schemas in a registry."""


@dataclass(frozen=True)
class Report:
    """Its figures and its verdict."""

    options: Options
    seconds: float
    faults: Counter[Fault]
    rebalances: int
    recoveries: dict[Fault, list[Recovery]]
    """By fault."""
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

    def recovery_seconds(self, fault: Fault, *, alone: bool = False) -> list[float]:
        """Return how long each recovery took, or each from this fault alone."""
        return [
            recovery.seconds for recovery in self.recoveries.get(fault, ()) if recovery.alone or not alone
        ]

    def figures(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        times = [recovery.seconds for of_fault in self.recoveries.values() for recovery in of_fault]
        return {
            **asdict(self.options),
            "seconds": round(self.seconds, 1),
            "faults": {fault.name.lower(): self.faults[fault] for fault in Fault},
            "rebalances": self.rebalances,
            "recoveries": len(times),
            "recovery_median_s": _median(times),
            "recovery_worst_s": _worst(times),
            "recovery_by_fault": {
                fault.name.lower(): {
                    "median_s": _median(seconds := self.recovery_seconds(fault)),
                    "worst_s": _worst(seconds),
                    "alone": len(alone := self.recovery_seconds(fault, alone=True)),
                    "median_alone_s": _median(alone),
                    "worst_alone_s": _worst(alone),
                }
                for fault in self.recoveries
            },
            "exits": {str(code): number for code, number in sorted(self.exits.items())},
            "sessions_thrown_away": dict(self.discarded_sessions),
            "predictions": self.found.predictions,
            "outcomes": self.found.outcomes,
            "dead_letters": self.found.dead_letters,
            "problems": self.problems,
            "verdict": "good" if self.good else "bad",
        }


def _median(seconds: list[float]) -> float | None:
    return round(statistics.median(seconds), 2) if seconds else None


def _worst(seconds: list[float]) -> float | None:
    return round(max(seconds), 2) if seconds else None
