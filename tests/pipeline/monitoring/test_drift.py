from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeline.monitoring.drift import BETS, TOLERANCE, DriftDetector
from tests.support.examples import examples

RATES = {"tolerable": 0.3 + TOLERANCE, "better": 0.28}
"""Rates of mistakes beside 0.3 of the running means: at the edge of what is tolerated, and below them."""
ALPHA = 0.002
"""A false alarm in 500 events, so that a test need not wait for many."""


def plain(differences: list[float], threshold: float) -> tuple[list[float], int]:
    """The evidence of each bet and the number of alarms, straight from the definition."""
    evidence, alarms = [0.0] * len(BETS), 0
    for d in differences:
        evidence = [(m + 1.0) * (1.0 + b * (d - TOLERANCE)) for m, b in zip(evidence, BETS, strict=True)]
        if sum(evidence) / len(BETS) >= threshold:
            evidence, alarms = [0.0] * len(BETS), alarms + 1
    return evidence, alarms


@examples(100)
@given(
    arrays(np.float64, st.integers(0, 300), elements=st.floats(-1.0, 1.0)),
    st.integers(0, 300),
)
def test_batches_say_what_the_definition_says(differences: Any, cut: int) -> None:
    detector = DriftDetector(alpha=0.05)
    detector.add(differences[:cut])
    detector.add(differences[cut:])
    evidence, alarms = plain(differences.tolist(), 20.0)
    assert detector.alarms == alarms
    assert detector.evidence == pytest.approx(sum(evidence) / len(BETS))


def first_alarm(differences: Any) -> int:
    """How many events came before the first alarm; all, if there was none."""
    detector = DriftDetector(ALPHA)
    for n, d in enumerate(differences):
        detector.add(np.array([d]))
        if detector.alarms:
            return n
    return len(differences)


def mistakes(chance: np.random.Generator, count: int, ours: float, theirs: float) -> Any:
    """Mistakes of the model less those of the running means, at random and of these rates."""
    return (chance.random(count) < ours) * 1.0 - (chance.random(count) < theirs)


def dependent(chance: np.random.Generator, count: int) -> Any:
    """A model and a baseline that are equally wrong on the whole, in long stretches by turns of luck."""
    scale = np.repeat(chance.random(count // 50), 50)
    return np.where(chance.random(count) < 0.5, 1.0, -1.0) * scale


@pytest.mark.parametrize("kind", ["tolerable", "better", "dependent"])
def test_without_drift_false_alarms_are_as_rare_as_stated(kind: str) -> None:
    """The worst case is a model that is worse by the tolerance: everything better alarms later."""
    chance = np.random.default_rng(11)
    alarms, events, run = 0, 400_000, 2_000
    for _ in range(events // run):
        detector = DriftDetector(ALPHA)
        if kind == "dependent":
            detector.add(dependent(chance, run) + TOLERANCE)
        else:
            detector.add(mistakes(chance, run, RATES[kind], 0.3))
        alarms += detector.alarms
    assert alarms <= events * ALPHA
    if kind == "tolerable":
        assert alarms > 0, "a detector that is never wrong sees nothing"


def test_drift_is_detected_soon_and_small_drift_at_all() -> None:
    chance = np.random.default_rng(12)
    for ours, within in ((0.60, 200), (0.36, 2_500), (0.33, 15_000)):
        delays = [first_alarm(mistakes(chance, 20_000, ours, 0.3)) for _ in range(5)]
        assert np.median(delays) < within, ours


def test_a_long_time_of_better_predictions_does_not_delay_the_alarm() -> None:
    chance = np.random.default_rng(13)
    detector = DriftDetector()
    detector.add(mistakes(chance, 100_000, 0.25, 0.3))
    assert detector.alarms == 0
    detector.add(mistakes(chance, 3_000, 0.40, 0.3))
    assert detector.alarms >= 1
    assert detector.threshold == 1_000_000.0
