"""The stream on which learners of three columns are checked, and what they must reject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from forks.arrays import FloatArray, IntArray
from forks.rivals.base.learner import Rival, VectorRival
from tests.forks.contract import RestorableSubject, assert_same

RNG = np.random.default_rng(13)
X = RNG.normal([0.0, 5.0, -1.0], [1.0, 3.0, 0.1], size=(200, 3))
Y = np.where(X[:, 0] * (X[:, 1] - 5) + X[:, 2] + 1 > 0, 1.0, -1.0)
ROWS = list(zip(X, Y, strict=True))
NOT_VECTORS = [[0.5, 1.0, np.nan], [0.5, np.inf, 1.0], [1e200, 0.5, 1.0]]
NOT_LABELS = [0.0, 2.0, float("nan"), "yes", None]


def restorable_rival(
    make: Callable[[], Rival[Any]], events: FloatArray | IntArray, not_events: list[Any]
) -> RestorableSubject:
    """Return the subject for the checks of state and batches."""
    return RestorableSubject(make, lambda state: make().with_state(state), events, Y, not_events, NOT_LABELS)


def check_sparse(make: Callable[[], VectorRival]) -> None:
    """Check that sparse vectors give the bits of dense ones."""
    holed = np.where(np.abs(X) < 1.0, 0.0, X)
    sparse = csr_array(holed)
    dense_learner, sparse_learner = make(), make()
    scores = dense_learner.predict_and_learn_many(holed, Y)
    assert sparse_learner.predict_and_learn_many(sparse, Y).tolist() == scores.tolist()
    assert sparse_learner.predict_one(sparse[[0]]) == dense_learner.predict_one(holed[0])
    sparse_learner.learn_one(sparse[[0]], 1.0)
    dense_learner.learn_one(holed[0], 1.0)
    assert_same(sparse_learner, dense_learner)
