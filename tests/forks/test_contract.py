from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
import pytest
from numpy.typing import ArrayLike

from forks import Forks, ForksSettings, rivals
from forks.rivals import FourierNewton, MatrixFactorisation, Perceptron, RunningMeans
from forks.rivals.learner import VectorRival
from tests.forks import contract
from tests.forks.contract import EVERY, RESTORABLE, RestorableSubject, Subject

RNG = np.random.default_rng(13)
X = RNG.normal([0.0, 5.0, -1.0], [1.0, 3.0, 0.1], size=(200, 3))
Y = np.where(X[:, 0] * (X[:, 1] - 5) + X[:, 2] + 1 > 0, 1.0, -1.0)
NOT_LABELS = [0.0, 2.0, float("nan"), "yes", None]

# Small enough for 200 events to see stage 1, its end, and many changes of the map.
SETTINGS = {
    "practical": ForksSettings.practical(3, budget=20, cycle=10, refresh=3),
    "practical, squared hinge": ForksSettings.practical(3, budget=20, cycle=10, loss="squared_hinge"),
    "practical, regression": ForksSettings.practical(3, budget=20, cycle=10, loss="squared"),
    "paper": ForksSettings.paper(3, budget=20, cycle=10, width=3.0),
    "paper, logistic, clipped": ForksSettings.paper(
        3, budget=20, cycle=10, width=3.0, loss="logistic", clip=4.0, blocks=2
    ),
}
ROWS = list(zip(X, Y, strict=True))
PAIRS = [((int(user), int(item)), y) for (user, item), y in zip(RNG.integers(0, 8, (200, 2)), Y, strict=True)]

VECTOR_RIVALS: dict[str, Callable[[], VectorRival]] = {
    "Perceptron": lambda: Perceptron(3, width=3.0),
}
"""Of three columns, and small enough for 200 events to see all that they do."""
MARGINS = {"Perceptron": 0.0}
"""From which on a rival is content; 1 where it is not named."""
RIVALS: dict[str, Subject] = {
    "FourierNewton": Subject(lambda: FourierNewton(3, features=10, width=2.0), ROWS),
    "MatrixFactorisation": Subject(MatrixFactorisation, PAIRS),
    "RunningMeans": Subject(RunningMeans, PAIRS),
    **{name: Subject(make, ROWS, MARGINS.get(name, 1.0)) for name, make in VECTOR_RIVALS.items()},
}


def subject_of(settings: ForksSettings) -> Subject:
    return Subject(lambda: Forks(settings), ROWS)


def restorable_subject_of(settings: ForksSettings) -> RestorableSubject:
    not_labels = [float("inf"), "yes", None] if settings.loss == "squared" else NOT_LABELS
    return RestorableSubject(
        lambda: Forks(settings), lambda state: Forks.from_state(settings, state), X, Y, not_labels
    )


SUBJECTS = {name: subject_of(settings) for name, settings in SETTINGS.items()} | RIVALS
RESTORABLE_SUBJECTS = {name: restorable_subject_of(settings) for name, settings in SETTINGS.items()} | {
    name: RestorableSubject(make, lambda state, make=make: make().restored(state), X, Y, NOT_LABELS)  # type: ignore[misc]  # mypy cannot tell a lambda's default
    for name, make in VECTOR_RIVALS.items()
}


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.__name__)
def test_every_learner(name: str, check: Callable[[Subject], None]) -> None:
    check(SUBJECTS[name])


@pytest.mark.parametrize("name", RESTORABLE_SUBJECTS)
@pytest.mark.parametrize("check", RESTORABLE, ids=lambda check: check.__name__)
def test_every_restorable_learner(name: str, check: Callable[[RestorableSubject], None]) -> None:
    check(RESTORABLE_SUBJECTS[name])


def test_no_rival_is_forgotten() -> None:
    assert set(RIVALS) == set(rivals.__all__)


class Restless(RunningMeans):
    """Learns when it is asked."""

    def predict_one(self, x: tuple[Hashable, Hashable]) -> float:
        score = super().predict_one(x)
        self.learn_one(x, 1.0)
        return score


class Drawing(MatrixFactorisation):
    """Draws from a generator that is not its own."""

    def predict_one(self, x: tuple[Hashable, Hashable]) -> float:
        return super().predict_one(x) + float(RNG.normal())


class Keeping(FourierNewton):
    """Keeps the caller's array, and changes its mind with it."""

    kept: ArrayLike = (0.0, 0.0, 0.0)

    def predict_one(self, x: ArrayLike) -> float:
        return super().predict_one(x) + float(np.sum(self.kept))

    def learn_one(self, x: ArrayLike, y: float) -> None:
        super().learn_one(x, y)
        self.kept = x


@pytest.mark.parametrize(
    ("subject", "check"),
    [
        (Subject(Restless, PAIRS), contract.predictions_change_nothing),
        (Subject(Drawing, PAIRS), contract.same_events_make_the_same_scores),
        (Subject(lambda: Keeping(3), ROWS), contract.the_events_own_arrays_are_not_kept),
    ],
)
def test_the_checks_catch_learners_that_break_them(
    subject: Subject, check: Callable[[Subject], None]
) -> None:
    with pytest.raises(AssertionError):
        check(subject)
