from __future__ import annotations

import numpy as np
import pytest

from forks.algorithm.sjlt import Sjlt
from forks.arrays import FloatArray
from forks.rivals import SkeGD
from tests.forks.rivals.naive import gram, kernels, stream

BUDGET, CYCLE, STEP, DECAY = 12, 7, 0.3, 0.05
SKETCH, LANDMARKS, RANK, BLOCKS, SEED = 8, 5, 3, 2, 4


class Naive:
    """Sketches by their definition, decomposed whole; what is drawn at random is looked up in the learner."""

    def __init__(self) -> None:
        self.points: list[FloatArray] = []
        self.coefficients = np.empty(0)
        self.changes = 0
        self.stage_two = False
        self.since_change = 0
        self.w: FloatArray = np.empty(0)

    def score(self, x: FloatArray) -> float:
        if self.stage_two:
            return float(self.w @ self.features(x))
        return float(self.coefficients @ kernels(self.points, x)) if self.points else 0.0

    def features(self, x: FloatArray) -> FloatArray:
        phi: FloatArray = self.Z.T @ kernels(self.landmarks, x)
        return phi

    def learn(self, x: FloatArray, y: float, learner: SkeGD) -> None:
        score = self.score(x)
        slope = -y if y * score < 1 else 0.0
        if self.stage_two:
            self.since_change += 1
            if self.since_change == CYCLE:
                self.points = [*self.points[1:], x]
                self.changes += 1
                self._make_map(x, score, learner)
            self.w = (1 - STEP * DECAY) * self.w - STEP * slope * self.features(x)
            return
        self.coefficients = (1 - STEP * DECAY) * self.coefficients
        if slope:
            self.points.append(x)
            self.coefficients = np.append(self.coefficients, -STEP * slope)
        if len(self.points) == BUDGET:
            self._make_map(x, self.score(x), learner)
            self.stage_two = True

    def _make_map(self, x: FloatArray, score: float, learner: SkeGD) -> None:
        chosen = np.asarray(learner.state()["kernel_landmarks"])
        K = gram(self.points)
        serials = np.arange(self.changes, self.changes + BUDGET)
        S = Sjlt(SKETCH, BLOCKS, SEED).rows(serials).dense()
        values, vectors = np.linalg.eigh(S.T @ K @ S)
        largest = np.argsort(-np.abs(values))[:RANK]
        self.Z = np.linalg.pinv(S.T @ K[:, chosen]) @ (vectors[:, largest] * np.sqrt(np.abs(values[largest])))
        self.landmarks = [self.points[i] for i in chosen]
        phi = self.features(x)
        self.w = score / max(float(phi @ phi), 0.01) * phi
        self.since_change = 0


def skegd() -> SkeGD:
    return SkeGD(
        3,
        budget=BUDGET,
        sketch_size=SKETCH,
        landmarks=LANDMARKS,
        rank=RANK,
        cycle=CYCLE,
        blocks=BLOCKS,
        width=1.5,
        step=STEP,
        decay=DECAY,
        seed=SEED,
    )


def test_it_descends_in_the_features_of_the_whole_decomposition() -> None:
    learner, naive = skegd(), Naive()
    for x, y in stream(150):
        assert learner.predict_one(x) == pytest.approx(naive.score(x), abs=1e-7)
        learner.learn_one(x, y)
        naive.learn(x, y, learner)
    assert naive.changes > 10


def test_the_value_at_an_event_is_kept_when_the_map_changes_with_it() -> None:
    learner = SkeGD(3, budget=BUDGET, cycle=5, width=1.5, step=1e-12, decay=0.0)
    for x, y in stream(BUDGET):
        learner.learn_one(x, y)
    assert learner.stored == BUDGET
    learner.weights[:] = 1.0
    for x, y in stream(5, seed=1):
        before = learner.predict_one(x)
        learner.learn_one(x, y)
        assert learner.predict_one(x) == pytest.approx(before, abs=1e-9)
    assert learner.since_change == 0


def test_an_event_far_from_all_landmarks_makes_no_large_weights_when_the_map_changes() -> None:
    learner = SkeGD(3, budget=BUDGET, cycle=1, width=1.5, step=1e-12, decay=0.0)
    for x, y in stream(BUDGET):
        learner.learn_one(x, y)
    learner.weights[:] = 1.0
    x = np.array([5.0, 5.0, 5.0])
    score = learner.predict_one(x)
    assert 0.0 < abs(score) < 1e-3
    learner.learn_one(x, 1.0)
    assert np.abs(learner.weights).max() < 0.1


def test_a_state_of_stage_two_without_its_kernel_is_refused() -> None:
    learner = skegd()
    for x, y in stream(30):
        learner.learn_one(x, y)
    state = learner.state()
    del state["kernel_phi_pp"]
    with pytest.raises(ValueError, match="phi_pp"):
        skegd().with_state(state)


def test_a_learner_of_stage_two_can_go_back_to_a_state_of_stage_one() -> None:
    learner, early = skegd(), skegd()
    (x, y), *rest = stream(30)
    early.learn_one(x, y)
    for event in rest:
        learner.learn_one(*event)
    assert learner.with_state(early.state()).predict_one(x) == early.predict_one(x)
