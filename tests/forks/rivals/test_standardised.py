"""The wrapped rival gets vectors standardised by the moments of the vectors learned so far."""

from __future__ import annotations

import numpy as np

from forks.rivals import Perceptron, Standardised
from tests.forks.subjects import X, Y


def test_the_rival_inside_sees_what_numpy_s_moments_of_the_past_make_of_each_vector() -> None:
    learner, plain = Standardised(Perceptron(3)), Perceptron(3)
    for number, (x, y) in enumerate(zip(X, Y, strict=True)):
        past = X[:number] if number else np.zeros((1, 3))
        deviation = past.std(axis=0)
        varies = deviation > 0.0
        standard = np.where(varies, (x - past.mean(axis=0)) / np.where(varies, deviation, 1.0), 0.0)
        standard = np.clip(standard, -10.0, 10.0)
        assert np.isclose(learner.predict_one(x), plain.predict_one(standard), rtol=1e-8, atol=1e-8)
        learner.learn_one(x, y)
        plain.learn_one(standard, y)
    assert len(plain.coefficients) > 3


def test_columns_of_other_scales_make_no_difference_but_rounding() -> None:
    one, other = Standardised(Perceptron(3)), Standardised(Perceptron(3))
    scores = one.predict_and_learn_many(X, Y)
    np.testing.assert_allclose(
        other.predict_and_learn_many(X * [1e3, 1e-3, 7.0] + [5.0, 0.0, -1e3], Y), scores, rtol=1e-6, atol=1e-6
    )
