"""The checks of `tests.forks.contract` for the learners of research."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from forks.rivals.base.learner import VectorRival
from research import rivals
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
from tests.forks.contract import EVERY, RESTORABLE, RestorableSubject, Subject
from tests.forks.subjects import NOT_VECTORS, ROWS, X, Y, check_sparse, restorable_rival
from tests.research.rivals.graphs.small import KERNEL, NODES

RNG = np.random.default_rng(14)
PAIRS = RNG.integers(-4, 4, (200, 2))
PAIR_ROWS = [((int(user), int(item)), y) for (user, item), y in zip(PAIRS, Y, strict=True)]
NOT_PAIRS = [[1.0, 2.0], [2**63, 1], [2**64, 1], [[1], 2]]
NODE_EVENTS = RNG.integers(0, NODES, 200)
NODE_ROWS = [(int(node), y) for node, y in zip(NODE_EVENTS, Y, strict=True)]
NOT_NODES = [-1, NODES, 1.0, 2**64]

NODE_RIVALS: dict[str, Callable[[], NodeRival]] = {
    "AKSG": lambda: AKSG(KERNEL),
    "GPA": lambda: GPA(KERNEL),
    "OKL": lambda: OKL(KERNEL),
    "OKSG": lambda: OKSG(KERNEL),
}
"""They learn from mistakes only."""
PAIR_RIVALS: dict[str, Callable[[], PairRival]] = {
    "MatrixFactorisation": MatrixFactorisation,
    "RunningMeans": RunningMeans,
}
VECTOR_RIVALS: dict[str, Callable[[], VectorRival]] = {
    "KOGD": lambda: KOGD(3, width=3.0),
    "KONS": lambda: KONS(3, width=3.0),
    "PROSNKONS": lambda: PROSNKONS(3, width=3.0, budget=12),
    "SketchedKONS": lambda: SketchedKONS(3, width=3.0, gamma=0.3),
}
"""Rivals for three columns, small enough for 200 events to reach all that they do."""
SUBJECTS: dict[str, Subject] = {
    **{name: Subject(make, NODE_ROWS, margin=0.0) for name, make in NODE_RIVALS.items()},
    **{name: Subject(make, PAIR_ROWS) for name, make in PAIR_RIVALS.items()},
    **{name: Subject(make, ROWS) for name, make in VECTOR_RIVALS.items()},
}
RESTORABLE_SUBJECTS: dict[str, RestorableSubject] = {
    **{name: restorable_rival(make, NODE_EVENTS, NOT_NODES) for name, make in NODE_RIVALS.items()},
    **{name: restorable_rival(make, PAIRS, NOT_PAIRS) for name, make in PAIR_RIVALS.items()},
    **{name: restorable_rival(make, X, NOT_VECTORS) for name, make in VECTOR_RIVALS.items()},
}


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.__name__)
def test_every_learner(name: str, check: Callable[[Subject], None]) -> None:
    check(SUBJECTS[name])


@pytest.mark.parametrize("name", RESTORABLE_SUBJECTS)
@pytest.mark.parametrize("check", RESTORABLE, ids=lambda check: check.__name__)
def test_every_restorable_learner(name: str, check: Callable[[RestorableSubject], None]) -> None:
    check(RESTORABLE_SUBJECTS[name])


def test_all_rivals_are_checked() -> None:
    assert set(SUBJECTS) == set(rivals.__all__)


@pytest.mark.parametrize("name", VECTOR_RIVALS)
def test_sparse_vectors_have_the_bits_of_dense_ones(name: str) -> None:
    check_sparse(VECTOR_RIVALS[name])
