"""Each figure against its definition, as a slow loop."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from forks.validation import auc, brier_score, calibration_error, log_loss, majority

Scored: TypeAlias = list[tuple[float, bool]]

scored = st.lists(st.tuples(st.integers(-12, 12).map(lambda n: n / 4), st.booleans()), max_size=30)


def split(pairs: Scored) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return (
        np.array([score for score, _ in pairs], dtype=np.float64),
        np.array([label for _, label in pairs], dtype=np.bool_),
    )


def chance(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-score))


def mean(values: list[float]) -> object:
    """What a figure has to be: their mean, or None if there are none."""
    return pytest.approx(sum(values) / len(values), abs=1e-12) if values else None


@given(scored)
def test_auc_is_the_share_of_pairs_in_the_right_order(pairs: Scored) -> None:
    scores, positive = split(pairs)
    right = [float((p > n) + 0.5 * (p == n)) for p in scores[positive] for n in scores[~positive]]
    assert auc(scores, positive) == mean(right)


@given(scored)
def test_log_loss_is_the_mean_negative_logarithm_of_the_labels_probability(pairs: Scored) -> None:
    expected = mean([-math.log(chance(score if label else -score)) for score, label in pairs])
    assert log_loss(*split(pairs)) == expected


@given(scored)
def test_the_brier_score_is_the_mean_squared_error_of_the_probability(pairs: Scored) -> None:
    assert brier_score(*split(pairs)) == mean([(chance(score) - label) ** 2 for score, label in pairs])


@given(scored)
def test_the_calibration_error_is_the_weighted_gap_of_confidence_and_frequency(pairs: Scored) -> None:
    error = 0.0
    for low in range(10):
        inside = [(chance(score), label) for score, label in pairs if int(chance(score) * 10) == low]
        if inside:
            confidence = sum(probability for probability, _ in inside) / len(inside)
            frequency = sum(label for _, label in inside) / len(inside)
            error += len(inside) / len(pairs) * abs(confidence - frequency)
    assert calibration_error(*split(pairs)) == (pytest.approx(error, abs=1e-12) if pairs else None)


@given(scored)
def test_the_majority_is_what_more_than_half_of_the_labels_say(pairs: Scored) -> None:
    labels = [label for _, label in pairs]
    assert majority(split(pairs)[1]) == (labels.count(True) > labels.count(False))


def test_a_certain_mistake_costs_as_much_as_its_score_and_nothing_overflows() -> None:
    scores, positive = np.array([800.0, -800.0]), np.array([False, False])
    assert log_loss(scores, positive) == 400.0
    assert brier_score(scores, positive) == 0.5
    assert calibration_error(scores, positive) == 0.5
