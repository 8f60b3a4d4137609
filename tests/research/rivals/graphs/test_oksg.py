from __future__ import annotations

import numpy as np
import pytest

from research.rivals.graphs import OKL, OKSG
from tests.research.rivals.graphs.small import KERNEL, NODES, stream

EVENTS = stream(2, 200)
ALWAYS = 1e300


def test_with_probability_one_it_equals_okl() -> None:
    selective, plain = OKSG(KERNEL, h=ALWAYS), OKL(KERNEL)
    for x, y in zip(*EVENTS, strict=True):
        assert selective.queries_label(x)
        assert selective.learn_one(x, y) == plain.learn_one(x, y)
    assert selective.queries == len(EVENTS[0])
    assert selective.inverse.tobytes() == plain.inverse.tobytes()


def test_it_asks_with_the_probability_of_algorithm_2() -> None:
    """Many learners, of one seed each, that have learned the same: how many of them ask is binomial."""
    ridge, h, seeds = 0.3, 0.05, 400
    learners = [OKSG(KERNEL, ridge=ridge, h=h, seed=seed) for seed in range(seeds)]
    for x, y in zip(*(column[:12] for column in EVENTS), strict=True):
        for learner in learners:
            learner.learn_one(x, y)
    nodes = learners[0].nodes
    inverse = np.linalg.inv(KERNEL[np.ix_(nodes, nodes)] + ridge * np.eye(len(nodes)))
    sure = 0
    for x in range(NODES):
        k = KERNEL[nodes, x]
        tau = (1.0 - k @ inverse @ k) / ridge
        theta = abs(learners[0].predict_one(x)) - tau / 2
        p = h / (h + max(0.0, theta))
        asked = sum(learner.queries_label(x) for learner in learners)
        assert abs(asked - seeds * p) <= 4.5 * np.sqrt(seeds * p * (1 - p))
        sure += p == 1.0
    assert 0 < sure < NODES


def test_it_equals_the_algorithm_worked_out_densely() -> None:
    ridge, h = 0.5, 0.02
    learner = OKSG(KERNEL, ridge=ridge, h=h, seed=3)
    nodes: list[int] = []
    labels: list[float] = []
    queries = 0
    for x, y in zip(*EVENTS, strict=True):
        inverse = np.linalg.inv(KERNEL[np.ix_(nodes, nodes)] + ridge * np.eye(len(nodes)))
        k = KERNEL[nodes, x]
        score, tau = float(np.array(labels) @ inverse @ k), float(1.0 - k @ inverse @ k) / ridge
        asks = learner._uniforms[x] < h / (h + max(0.0, abs(score) - tau / 2))
        assert learner.predict_one(x) == pytest.approx(score, abs=1e-10)
        assert learner.queries_label(x) == asks
        if asks:
            queries += 1
            learner.learn_one(x, y)
            if y * score <= 0:
                nodes.append(x)
                labels.append(y)
    assert learner.nodes.tolist() == nodes
    assert learner.queries == queries
    assert 0 < queries < len(EVENTS[0])


def test_asking_changes_nothing_and_repeats() -> None:
    learner = OKSG(KERNEL, ridge=0.5)
    learner.learn_many(*EVENTS)
    before = {name: np.asarray(value).tobytes() for name, value in learner.state().items()}
    answers = [learner.queries_label(x) for x in range(NODES)]
    for again in (learner, learner.copy()):
        assert answers == [again.queries_label(x) for x in range(NODES)]
    assert before == {name: np.asarray(value).tobytes() for name, value in learner.state().items()}
    assert len(set(answers)) == 2


def test_the_seed_decides_the_random_numbers() -> None:
    same, other = OKSG(KERNEL, seed=1), OKSG(KERNEL, seed=2)
    assert (same._uniforms == OKSG(KERNEL, seed=1)._uniforms).all()
    assert not (same._uniforms == other._uniforms).any()


def test_h_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match="h must be > 0"):
        OKSG(KERNEL, h=0.0)
