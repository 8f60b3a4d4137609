from __future__ import annotations

import numpy as np
import pytest

from research.rivals.graphs import AKSG
from tests.research.rivals.graphs.small import KERNEL, stream

EVENTS = stream(4, 80)


def test_with_probability_one_it_is_ridge_regression_on_all_labels() -> None:
    learner = AKSG(KERNEL, ridge=1.5, h=1e300)
    for i, (x, y) in enumerate(zip(*EVENTS, strict=True)):
        nodes, labels = EVENTS[0][:i], np.array(EVENTS[1][:i])
        score = KERNEL[x, nodes] @ np.linalg.solve(KERNEL[np.ix_(nodes, nodes)] + 1.5 * np.eye(i), labels)
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-9)
        assert learner.queries_label(x)
        learner.learn_one(x, y)
    assert learner.queries == len(learner.nodes) == len(EVENTS[0])


def test_it_equals_algorithm_3_worked_out_densely() -> None:
    ridge, h = 0.5, 0.02
    learner = AKSG(KERNEL, ridge=ridge, h=h, seed=5)
    nodes: list[int] = []
    labels: list[float] = []
    branches: set[tuple[bool, bool, bool]] = set()
    queries = 0
    for x, y in zip(*EVENTS, strict=True):
        inverse = np.linalg.inv(KERNEL[np.ix_(nodes, nodes)] + ridge * np.eye(len(nodes)))
        k = KERNEL[nodes, x]
        score, tau = float(np.array(labels) @ inverse @ k), float(1.0 - k @ inverse @ k) / ridge
        p = h / (h + max(0.0, abs(score) - tau / 2))
        asks, mistaken = bool(learner._uniforms[x] < p), y * score <= 0
        assert learner.queries_label(x) == asks
        if asks:
            queries += 1
            learner.learn_one(x, y)
            if mistaken or p == 1.0:
                nodes.append(x)
                labels.append(y)
        branches.add((p == 1.0, asks, mistaken))
        assert learner.nodes.tolist() == nodes
    assert learner.queries == queries
    # All combinations of certain or random query, queried or not, mistaken or not.
    assert len(branches) == 6
