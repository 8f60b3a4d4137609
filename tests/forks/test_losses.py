from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forks.losses import LOSSES, loss_curvature, loss_slope, loss_value, probability

SCORES = st.floats(-20, 20)
LABELS = st.sampled_from([-1.0, 1.0])
NAMES = st.sampled_from(sorted(LOSSES))


def away_from_the_kink(name: str, score: float, y: float) -> bool:
    return "hinge" not in name or abs(1 - y * score) > 1e-3


@given(NAMES, SCORES, LABELS)
def test_slope_is_the_derivative_of_the_value(name: str, score: float, y: float) -> None:
    assume(away_from_the_kink(name, score, y))
    loss, h = LOSSES[name], 1e-5
    difference = (loss_value(loss, score + h, y) - loss_value(loss, score - h, y)) / (2 * h)
    assert loss_slope(loss, score, y) == pytest.approx(difference, abs=1e-6, rel=1e-6)


@given(NAMES, SCORES, LABELS)
def test_curvature_is_the_derivative_of_the_slope(name: str, score: float, y: float) -> None:
    assume(away_from_the_kink(name, score, y))
    loss, h = LOSSES[name], 1e-5
    difference = (loss_slope(loss, score + h, y) - loss_slope(loss, score - h, y)) / (2 * h)
    assert loss_curvature(loss, score, y) == pytest.approx(difference, abs=1e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "score", "y", "value"),
    [
        ("logistic", 0.0, 1.0, math.log(2)),
        ("hinge", 0.25, 1.0, 0.75),
        ("hinge", -2.0, -1.0, 0.0),
        ("squared_hinge", 0.5, -1.0, 2.25),
        ("squared", 0.5, 2.0, 2.25),
    ],
)
def test_values(name: str, score: float, y: float, value: float) -> None:
    assert loss_value(LOSSES[name], score, y) == pytest.approx(value)


def test_logistic_loss_of_huge_scores_neither_overflows_nor_vanishes() -> None:
    logistic = LOSSES["logistic"]
    assert loss_value(logistic, -1000.0, 1.0) == 1000.0
    assert loss_value(logistic, 1000.0, 1.0) == 0.0
    assert loss_slope(logistic, -1000.0, 1.0) == -1.0
    assert loss_curvature(logistic, 1000.0, 1.0) == 0.0


@given(SCORES)
def test_probabilities_of_a_score_and_its_negative_add_up_to_one(score: float) -> None:
    assert probability(score) + probability(-score) == pytest.approx(1.0, abs=1e-15)
