from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

import research.rivals
from forks import Forks, ForksSettings, rivals
from forks.arrays import FloatArray, IntArray
from forks.rivals import (
    AROW,
    BOGD,
    BPAS,
    FOGD,
    NOGD,
    OGD,
    RBP,
    SCW,
    Forgetron,
    FourierNewton,
    Perceptron,
    Projectron,
    ProjectronPlus,
    SkeGD,
    Standardised,
)
from forks.rivals.base.learner import Rival, VectorRival
from research.rivals import (
    AKSG,
    GPA,
    KOGD,
    KONS,
    OKL,
    OKSG,
    PROSNKONS,
    MatrixFactorisation,
    RunningMeans,
    SketchedKONS,
)
from research.rivals.graphs.learner import NodeRival
from research.rivals.pairs import PairRival
from tests.forks import contract
from tests.forks.contract import EVERY, RESTORABLE, RestorableSubject, Subject
from tests.research.rivals.graphs.small import KERNEL, NODES

RNG = np.random.default_rng(13)
X = RNG.normal([0.0, 5.0, -1.0], [1.0, 3.0, 0.1], size=(200, 3))
Y = np.where(X[:, 0] * (X[:, 1] - 5) + X[:, 2] + 1 > 0, 1.0, -1.0)
NOT_VECTORS = [[0.5, 1.0, np.nan], [0.5, np.inf, 1.0], [1e200, 0.5, 1.0]]
NOT_PAIRS = [[1.0, 2.0], [2**63, 1], [2**64, 1], [[1], 2]]
NOT_NODES = [-1, NODES, 1.0, 2**64]
NOT_LABELS = [0.0, 2.0, float("nan"), "yes", None]

# Small enough for 200 events to see stage 1, its end, and many changes of the map.
SETTINGS = {
    "practical": ForksSettings.practical(3, budget=20, cycle=10, refresh=3),
    "practical, squared hinge": ForksSettings.practical(3, budget=20, cycle=8, loss="squared_hinge"),
    "practical, regression": ForksSettings.practical(3, budget=20, cycle=10, loss="squared"),
    "paper": ForksSettings.paper(3, budget=20, cycle=10, width=3.0),
    "paper, logistic, clipped": ForksSettings.paper(
        3, budget=20, cycle=10, width=3.0, loss="logistic", clip=4.0, blocks=2
    ),
}
ROWS = list(zip(X, Y, strict=True))
PAIRS = RNG.integers(-4, 4, (200, 2))
PAIR_ROWS = [((int(user), int(item)), y) for (user, item), y in zip(PAIRS, Y, strict=True)]
NODE_EVENTS = RNG.integers(0, NODES, 200)
NODE_ROWS = [(int(node), y) for node, y in zip(NODE_EVENTS, Y, strict=True)]

NODE_RIVALS: dict[str, Callable[[], NodeRival]] = {
    "AKSG": lambda: AKSG(KERNEL),
    "GPA": lambda: GPA(KERNEL),
    "OKL": lambda: OKL(KERNEL),
    "OKSG": lambda: OKSG(KERNEL),
}
PAIR_RIVALS: dict[str, Callable[[], PairRival]] = {
    "MatrixFactorisation": MatrixFactorisation,
    "RunningMeans": RunningMeans,
}
VECTOR_RIVALS: dict[str, Callable[[], VectorRival]] = {
    "AROW": lambda: AROW(3),
    "BOGD": lambda: BOGD(3, budget=10, width=3.0),
    "BPAS": lambda: BPAS(3, budget=10, width=3.0),
    "FOGD": lambda: FOGD(3, frequencies=10, width=3.0),
    "Forgetron": lambda: Forgetron(3, budget=10, width=3.0),
    "FourierNewton": lambda: FourierNewton(3, features=10, width=2.0),
    "KOGD": lambda: KOGD(3, width=3.0),
    "KONS": lambda: KONS(3, width=3.0),
    "NOGD": lambda: NOGD(3, budget=10, rank=4, width=3.0),
    "OGD": lambda: OGD(3),
    "PROSNKONS": lambda: PROSNKONS(3, width=3.0, budget=12),
    "Perceptron": lambda: Perceptron(3, width=3.0),
    "Projectron": lambda: Projectron(3, budget=10, width=3.0),
    "ProjectronPlus": lambda: ProjectronPlus(3, budget=10, width=3.0),
    "RBP": lambda: RBP(3, budget=10, width=3.0),
    "SCW": lambda: SCW(3),
    "SkeGD": lambda: SkeGD(3, budget=20, cycle=10, width=3.0),
    "SketchedKONS": lambda: SketchedKONS(3, width=3.0, gamma=0.3),
    "Standardised": lambda: Standardised(SkeGD(3, budget=20, cycle=10)),
}
"""Of three columns, and small enough for 200 events to see all that they do."""
MARGINS = {
    "AKSG": 0.0,
    "Forgetron": 0.0,
    "GPA": 0.0,
    "OKL": 0.0,
    "OKSG": 0.0,
    "Perceptron": 0.0,
    "Projectron": 0.0,
    "RBP": 0.0,
    "SCW": 0.0,
}
"""From which on a rival is content; 1 where it is not named."""
RIVALS: dict[str, Subject] = {
    **{name: Subject(make, NODE_ROWS, MARGINS[name]) for name, make in NODE_RIVALS.items()},
    **{name: Subject(make, PAIR_ROWS) for name, make in PAIR_RIVALS.items()},
    **{name: Subject(make, ROWS, MARGINS.get(name, 1.0)) for name, make in VECTOR_RIVALS.items()},
}


def subject_of(settings: ForksSettings) -> Subject:
    return Subject(lambda: Forks(settings), ROWS)


def restorable_subject_of(settings: ForksSettings) -> RestorableSubject:
    not_labels = [float("inf"), "yes", None] if settings.loss == "squared" else NOT_LABELS
    return RestorableSubject(
        lambda: Forks(settings),
        lambda state: Forks.from_state(settings, state),
        X,
        Y,
        NOT_VECTORS,
        not_labels,
    )


def restorable_rival(
    make: Callable[[], Rival[Any]], events: FloatArray | IntArray, not_events: list[Any]
) -> RestorableSubject:
    return RestorableSubject(make, lambda state: make().with_state(state), events, Y, not_events, NOT_LABELS)


SUBJECTS = {name: subject_of(settings) for name, settings in SETTINGS.items()} | RIVALS
RESTORABLE_SUBJECTS = {
    **{name: restorable_subject_of(settings) for name, settings in SETTINGS.items()},
    **{name: restorable_rival(make, NODE_EVENTS, NOT_NODES) for name, make in NODE_RIVALS.items()},
    **{name: restorable_rival(make, PAIRS, NOT_PAIRS) for name, make in PAIR_RIVALS.items()},
    **{name: restorable_rival(make, X, NOT_VECTORS) for name, make in VECTOR_RIVALS.items()},
}


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.__name__)
def test_every_learner(name: str, check: Callable[[Subject], None]) -> None:
    check(SUBJECTS[name])


@pytest.mark.parametrize("name", VECTOR_RIVALS)
def test_sparse_vectors_have_the_bits_of_dense_ones(name: str) -> None:
    holed = np.where(np.abs(X) < 1.0, 0.0, X)
    sparse = csr_array(holed)
    dense_learner, sparse_learner = VECTOR_RIVALS[name](), VECTOR_RIVALS[name]()
    scores = dense_learner.predict_and_learn_many(holed, Y)
    assert sparse_learner.predict_and_learn_many(sparse, Y).tolist() == scores.tolist()
    assert sparse_learner.predict_one(sparse[[0]]) == dense_learner.predict_one(holed[0])
    sparse_learner.learn_one(sparse[[0]], 1.0)
    dense_learner.learn_one(holed[0], 1.0)
    contract.assert_same(sparse_learner, dense_learner)


@pytest.mark.parametrize("name", RESTORABLE_SUBJECTS)
@pytest.mark.parametrize("check", RESTORABLE, ids=lambda check: check.__name__)
def test_every_restorable_learner(name: str, check: Callable[[RestorableSubject], None]) -> None:
    check(RESTORABLE_SUBJECTS[name])


def test_no_rival_is_forgotten() -> None:
    assert set(RIVALS) == {*rivals.__all__, *research.rivals.__all__}


class Restless(RunningMeans):
    """Learns when it is asked."""

    def predict_one(self, x: Any) -> float:
        score = super().predict_one(x)
        self.learn_one(x, 1.0)
        return score


class Drawing(MatrixFactorisation):
    """Draws from a generator that is not its own."""

    def predict_one(self, x: Any) -> float:
        return super().predict_one(x) + float(RNG.normal())


class Keeping(FourierNewton):
    """Keeps the caller's array, and changes its mind with it."""

    kept: ArrayLike = (0.0, 0.0, 0.0)

    def predict_one(self, x: ArrayLike) -> float:
        return super().predict_one(x) + float(np.sum(self.kept))

    def learn_one(self, x: ArrayLike, y: float) -> float:
        self.kept = x
        return super().learn_one(x, y)


@pytest.mark.parametrize(
    ("subject", "check"),
    [
        (Subject(Restless, PAIR_ROWS), contract.predictions_change_nothing),
        (Subject(Drawing, PAIR_ROWS), contract.same_events_make_the_same_scores),
        (Subject(lambda: Keeping(3), ROWS), contract.the_events_own_arrays_are_not_kept),
    ],
)
def test_the_checks_catch_learners_that_break_them(
    subject: Subject, check: Callable[[Subject], None]
) -> None:
    with pytest.raises(AssertionError):
        check(subject)
