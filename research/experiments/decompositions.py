"""FORKS, Figure 3: the cost of a decomposition after each of many low-rank changes (appendix B)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from forks.algorithm.sketch import Modification
from forks.algorithm.tisvd import Factors, tisvd, truncated_svd
from forks.arrays import FloatArray
from research.harness.experiment import Data, Experiment
from research.harness.panels import Panel, lines_of
from research.harness.rows import Row
from research.harness.trials import KeyColumns, Result, Trial

SIZE = 100
RANK = 30
OVERSAMPLING = 10
UPDATES = (500, 1_000, 5_000, 10_000, 50_000)
"""The paper gives the range, 500 to 50,000, but not the values between."""


def randomised_svd(matrix: FloatArray, rank: int, rng: np.random.Generator) -> Factors:
    """Return a rank-``rank`` decomposition of a symmetric ``matrix`` from its action on random vectors.

    Halko, Martinsson and Tropp, SIAM Review 53, 2011: an orthonormal basis Q of M Omega (their algorithm
    4.1) with rank + `OVERSAMPLING` columns, and the decomposition of Q' M Q (section 5.3). No power
    iteration. O(n^2 rank).

    Parameters
    ----------
    matrix : ndarray, shape (n, n), float64
        Symmetric matrix.
    rank
        Rank of the result.
    rng
        Generator of Omega.

    Examples
    --------
    >>> low = np.outer([3.0, 4.0, 0.0], [3.0, 4.0, 0.0])
    >>> randomised_svd(low, 1, np.random.default_rng(0)).values.round(6).tolist()
    [25.0]
    """
    omega = rng.standard_normal((len(matrix), min(rank + OVERSAMPLING, len(matrix))))
    basis, _ = np.linalg.qr(matrix @ omega)
    small = truncated_svd(basis.T @ matrix @ basis, rank)
    return Factors(basis @ small.vectors, small.values)


def changes(matrix: FloatArray, updates: int, rng: np.random.Generator) -> Iterator[Modification]:
    """Add A B' to a symmetric ``matrix`` in place, ``updates`` times, and yield each A and B, (n, 3) each.

    The paper draws all entries from the normal distribution. Here A B' has the symmetric form of a change of
    the sketch: u v' + v u' + w w'.
    """
    for _ in range(updates):
        u, v, w = rng.standard_normal((3, len(matrix)))
        change = Modification(np.column_stack([u, v, w]), np.column_stack([v, u, w]))
        matrix += change.A @ change.B.T
        yield change


Step = Callable[[Factors, FloatArray, FloatArray, FloatArray, np.random.Generator], Factors]

METHODS: Mapping[str, Step] = MappingProxyType(
    {
        "TISVD": lambda factors, _, A, B, __: tisvd(factors, A, B),
        "randomised SVD": lambda factors, M, _, __, rng: randomised_svd(M, factors.rank, rng),
        "full SVD": lambda factors, M, *_: truncated_svd(M, factors.rank),
    }
)
"""Methods by name: functions of the old factors, the matrix, A and B of its last change, and a generator."""


@dataclass(frozen=True)
class DecompositionTrial:
    """One method on a matrix that changes repeatedly, a `research.harness.trials.Trial`.

    Attributes
    ----------
    learner
        Name of the method in `METHODS`.
    updates
        Number of changes of the matrix.
    run
        Number of the run; seeds everything random.
    size
        Number of rows of the matrix.
    """

    learner: str
    updates: int
    run: int
    size: int = SIZE

    @property
    def stream(self) -> str:
        return f"{self.size} x {self.size}"

    @property
    def budget(self) -> int | None:
        return None

    @property
    def key_columns(self) -> KeyColumns:
        return (("updates", self.updates),)

    def key(self) -> Mapping[str, Any]:
        return {"method": self.learner, "updates": self.updates, "size": self.size, "run": self.run}

    def result(self) -> Result:
        """Return ``seconds`` of the decompositions alone, and ``excess``.

        ``excess`` compares errors of the last decomposition in the Frobenius norm: its own divided by that of
        the best decomposition of the same rank, less 1, in percent.
        """
        rng, own = (np.random.default_rng([self.run, part]) for part in range(2))
        start = rng.standard_normal((self.size, self.size))
        matrix = (start + start.T) / 2.0
        step = METHODS[self.learner]
        factors = truncated_svd(matrix, min(RANK, self.size))
        seconds = 0.0
        for A, B in changes(matrix, self.updates, rng):
            before = time.process_time()
            factors = step(factors, matrix, A, B, own)
            seconds += time.process_time() - before
        best = _distance(truncated_svd(matrix, factors.rank), matrix)
        return {"seconds": seconds, "excess": 100.0 * (_distance(factors, matrix) / best - 1.0)}


def _distance(factors: Factors, matrix: FloatArray) -> float:
    return float(np.linalg.norm(factors.vectors * factors.values @ factors.vectors.T - matrix))


def _trials(stream: str, data: Data, runs: int) -> Sequence[Trial]:  # noqa: ARG001 - a matrix is made up
    return [
        DecompositionTrial(method, updates, run)
        for run in range(runs)
        for updates in UPDATES
        for method in METHODS
    ]


def _panels(rows: Sequence[Row]) -> list[Panel]:
    def updates(row: Row) -> float:
        return float(dict(row.key_columns)["updates"])

    lines = lines_of(rows, updates, "seconds")
    title = f"Decompositions of a {SIZE} x {SIZE} matrix at rank {RANK}"
    return [Panel(title, "changes of the matrix", "seconds", lines, log="xy")]


FIGURE3 = Experiment(
    "TISVD, randomised and full SVD (FORKS, Figure 3)", (f"{SIZE} x {SIZE}",), _trials, panels=_panels
)
