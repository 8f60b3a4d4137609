from __future__ import annotations

import numpy as np
import pytest

from research.rivals.graphs import GPA, laplacian_kernel
from tests.research.rivals.graphs.small import KERNEL, NODES, ring_of_two_halves, stream


def test_it_is_the_sum_of_the_kernel_rows_of_its_mistakes() -> None:
    learner = GPA(KERNEL)
    mistakes: list[tuple[int, float]] = []
    for x, y in zip(*stream(0, 200), strict=True):
        score = sum(label * KERNEL[node, x] for node, label in mistakes)
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-12)
        assert learner.queries_label(x)
        learner.learn_one(x, y)
        if y * score <= 0:
            mistakes.append((x, y))
    assert 10 < len(mistakes) < 150


@pytest.mark.parametrize("seed", range(5))
def test_mistakes_on_a_labelling_are_at_most_its_cut_times_the_widest_node(seed: int) -> None:
    kernel = laplacian_kernel(ring_of_two_halves())
    learner = GPA(kernel)
    nodes = np.random.default_rng(seed).permutation(np.tile(np.arange(NODES), 5))
    mistakes = 0
    for x in nodes:
        y = 1.0 if x < NODES // 2 else -1.0
        mistakes += y * learner.predict_one(x) <= 0
        learner.learn_one(x, y)
    assert 0 < mistakes <= 4 * 2 * kernel.diagonal().max()


def test_a_state_of_another_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="values"):
        GPA(KERNEL).with_state(GPA(KERNEL[:3, :3]).state())
