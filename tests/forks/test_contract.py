from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from forks import Forks, ForksSettings, rivals
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
from forks.rivals.base.learner import VectorRival
from tests.forks import contract
from tests.forks.contract import EVERY, RESTORABLE, RestorableSubject, Subject
from tests.forks.subjects import NOT_LABELS, NOT_VECTORS, RNG, ROWS, X, Y, check_sparse, restorable_rival

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
VECTOR_RIVALS: dict[str, Callable[[], VectorRival]] = {
    "AROW": lambda: AROW(3),
    "BOGD": lambda: BOGD(3, budget=10, width=3.0),
    "BPAS": lambda: BPAS(3, budget=10, width=3.0),
    "FOGD": lambda: FOGD(3, frequencies=10, width=3.0),
    "Forgetron": lambda: Forgetron(3, budget=10, width=3.0),
    "FourierNewton": lambda: FourierNewton(3, features=10, width=2.0),
    "NOGD": lambda: NOGD(3, budget=10, rank=4, width=3.0),
    "OGD": lambda: OGD(3),
    "Perceptron": lambda: Perceptron(3, width=3.0),
    "Projectron": lambda: Projectron(3, budget=10, width=3.0),
    "ProjectronPlus": lambda: ProjectronPlus(3, budget=10, width=3.0),
    "RBP": lambda: RBP(3, budget=10, width=3.0),
    "SCW": lambda: SCW(3),
    "SkeGD": lambda: SkeGD(3, budget=20, cycle=10, width=3.0),
    "Standardised": lambda: Standardised(SkeGD(3, budget=20, cycle=10)),
}
"""Rivals for three columns, small enough for 200 events to reach all that they do."""
MARGINS = {
    "Forgetron": 0.0,
    "Perceptron": 0.0,
    "Projectron": 0.0,
    "RBP": 0.0,
    "SCW": 0.0,
}
"""Margin from which on a rival need not learn; 1 for others."""
RIVALS: dict[str, Subject] = {
    name: Subject(make, ROWS, MARGINS.get(name, 1.0)) for name, make in VECTOR_RIVALS.items()
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


SUBJECTS = {name: subject_of(settings) for name, settings in SETTINGS.items()} | RIVALS
RESTORABLE_SUBJECTS = {
    **{name: restorable_subject_of(settings) for name, settings in SETTINGS.items()},
    **{name: restorable_rival(make, X, NOT_VECTORS) for name, make in VECTOR_RIVALS.items()},
}


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.__name__)
def test_every_learner(name: str, check: Callable[[Subject], None]) -> None:
    check(SUBJECTS[name])


@pytest.mark.parametrize("name", VECTOR_RIVALS)
def test_sparse_vectors_have_the_bits_of_dense_ones(name: str) -> None:
    check_sparse(VECTOR_RIVALS[name])


@pytest.mark.parametrize("name", RESTORABLE_SUBJECTS)
@pytest.mark.parametrize("check", RESTORABLE, ids=lambda check: check.__name__)
def test_every_restorable_learner(name: str, check: Callable[[RestorableSubject], None]) -> None:
    check(RESTORABLE_SUBJECTS[name])


def test_all_rivals_are_checked() -> None:
    assert set(RIVALS) == set(rivals.__all__)


class Restless(Perceptron):
    """Learns when it predicts."""

    def predict_one(self, x: Any) -> float:
        score = super().predict_one(x)
        self.learn_one(x, 1.0)
        return score


class Drawing(Perceptron):
    """Draws from a generator that is not its own."""

    def predict_one(self, x: Any) -> float:
        return super().predict_one(x) + float(RNG.normal())


class Keeping(FourierNewton):
    """Keeps the caller's array, so that its scores change with it."""

    kept: ArrayLike = (0.0, 0.0, 0.0)

    def predict_one(self, x: ArrayLike) -> float:
        return super().predict_one(x) + float(np.sum(self.kept))

    def learn_one(self, x: ArrayLike, y: float, weight: float = 1.0) -> float:
        self.kept = x
        return super().learn_one(x, y, weight)


@pytest.mark.parametrize(
    ("subject", "check"),
    [
        (Subject(lambda: Restless(3), ROWS), contract.predictions_change_nothing),
        (Subject(lambda: Drawing(3), ROWS), contract.same_events_make_the_same_scores),
        (Subject(lambda: Keeping(3), ROWS), contract.the_events_own_arrays_are_not_kept),
    ],
)
def test_the_checks_catch_learners_that_break_them(
    subject: Subject, check: Callable[[Subject], None]
) -> None:
    with pytest.raises(AssertionError):
        check(subject)
