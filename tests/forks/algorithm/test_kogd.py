from __future__ import annotations

import numpy as np
import pytest

from forks.algorithm.kernels import gaussian_matrix, precision
from forks.algorithm.kogd import Expansion, expansion_value


def test_descent_is_the_recursion_on_function_values() -> None:
    rng = np.random.default_rng(0)
    gamma, step, decay = precision(1.0), 0.2, 0.01
    probes = rng.normal(size=(5, 2))
    values = np.zeros(5)
    f = Expansion.empty(2)
    for i in range(12):
        x, slope, store = rng.normal(size=2), rng.normal(), i % 3 > 0
        f = f.descend(x, slope, store=store, step=step, decay=decay)
        values *= 1 - step * decay
        if store:
            values -= step * slope * gaussian_matrix(probes, x[None], gamma)[:, 0]
    assert f.points.shape == (8, 2)
    for probe, value in zip(probes, values, strict=True):
        assert expansion_value(probe, f, gamma) == pytest.approx(value, abs=1e-14)


def test_nothing_stored_is_zero() -> None:
    assert expansion_value(np.zeros(3), Expansion.empty(3), 1.0) == 0.0
