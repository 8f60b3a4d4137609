from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.arrays import FloatArray, IntArray
from research.rivals.graphs import OKL
from tests.research.rivals.graphs.small import KERNEL, NODES, stream

nodes_and_labels = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.sampled_from([-1.0, 1.0])), min_size=1, max_size=60
)


@given(nodes_and_labels, st.floats(0.1, 10.0))
def test_it_equals_exact_second_order_learning_in_feature_space(
    events: list[tuple[int, float]], ridge: float
) -> None:
    features = np.linalg.cholesky(KERNEL)
    learner = OKL(KERNEL, ridge=ridge)
    A, moment = ridge * np.eye(NODES), np.zeros(NODES)
    for x, y in events:
        score = features[x] @ np.linalg.solve(A, moment)
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-9)
        if abs(score) < 1e-9:  # either side of zero, by rounding: both learn, or both do not
            score = learner.predict_one(x)
        learner.learn_one(x, y)
        if y * score <= 0:
            A += np.outer(features[x], features[x])
            moment += y * features[x]


def test_it_equals_algorithm_1_with_the_inverse_made_anew_each_time() -> None:
    learner = OKL(KERNEL, ridge=1.5)
    nodes: list[int] = []
    labels: list[float] = []
    for x, y in zip(*stream(1, 200), strict=True):
        M = 1.5 * np.eye(len(nodes)) + KERNEL[np.ix_(nodes, nodes)]
        score = np.array(labels) @ np.linalg.inv(M) @ KERNEL[nodes, x] if nodes else 0.0
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-10)
        assert learner.queries_label(x)
        learner.learn_one(x, y)
        if y * score <= 0:
            nodes.append(x)
            labels.append(y)
    assert learner.nodes.tolist() == nodes
    assert 10 < len(nodes) < 150


@pytest.mark.parametrize(
    ("entry", "value"),
    [("nodes", np.array([0, NODES])), ("coefficients", np.zeros(3)), ("inverse", np.zeros((2, 3)))],
)
def test_a_state_that_does_not_fit_is_refused(entry: str, value: IntArray | FloatArray) -> None:
    learner = OKL(KERNEL)
    learner.learn_many([0, 0], [1, -1])
    with pytest.raises(ValueError, match=entry):
        learner.with_state(learner.state() | {entry: value})


def test_a_ridge_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match="ridge must be > 0"):
        OKL(KERNEL, ridge=0.0)


@pytest.mark.parametrize("kernel", [[[1.0, 0.0]], [1.0], [[float("nan")]]])
def test_what_is_not_a_square_matrix_of_numbers_is_refused(kernel: object) -> None:
    with pytest.raises(ValueError, match="kernel must"):
        OKL(kernel)  # type: ignore[arg-type]


@pytest.mark.parametrize("x", [-1, NODES, 0.0, "0", None, [0]])
def test_what_is_not_a_node_is_refused(x: object) -> None:
    for method in (OKL(KERNEL).predict_one, OKL(KERNEL).queries_label):
        with pytest.raises(ValueError, match="x must be"):
            method(x)
