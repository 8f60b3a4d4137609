from __future__ import annotations

import numpy as np
import pytest

from research.variants.unsure import UnsureOKL
from tests.research.rivals.graphs.small import KERNEL, stream


def test_only_mistakes_within_half_of_tau_are_learned() -> None:
    ridge = 0.5
    learner = UnsureOKL(KERNEL, ridge=ridge)
    nodes: list[int] = []
    labels: list[float] = []
    left_out = 0
    for x, y in zip(*stream(2, 200), strict=True):
        inverse = np.linalg.inv(KERNEL[np.ix_(nodes, nodes)] + ridge * np.eye(len(nodes)))
        k = KERNEL[nodes, x]
        score = float(k @ inverse @ np.array(labels))
        tau = (KERNEL[x, x] - k @ inverse @ k) / ridge
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-9)
        learner.learn_one(x, y)
        if y * score <= 0.0 and abs(score) <= tau / 2.0:
            nodes.append(int(x))
            labels.append(float(y))
        else:
            left_out += y * score <= 0.0
    assert learner.nodes.tolist() == nodes
    assert min(len(nodes), left_out) > 3
