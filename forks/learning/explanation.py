"""The exact split of a score into the terms that it is the sum of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from forks.algorithm.tracking import UNCHANGED, Tracker
from forks.arrays import FloatArray
from forks.compiled.products import dot, vecmat
from forks.settings import ForksSettings


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The terms of a score, which sum to it but for rounding errors (below 1e-12 for scores below 100).

    Attributes
    ----------
    score
        The score, with the bits of `forks.Forks.predict_one`.
    bias
        The intercept, 0 without a linear part.
    columns : ndarray, shape (dimension,), float64
        What the linear part adds for each column: its weight times the column, standardised if the settings
        say so. Corrections of tracking are among the weights.
    offset
        The column ``offset_column`` as it is added, 0 without one.
    kernel
        What the kernel part adds.
    clipping
        What the bound ``clip`` takes away, or adds; 0 where no bound is reached.

    Examples
    --------
    >>> from forks import Forks
    >>> learner = Forks(ForksSettings.practical(2))
    >>> losses = learner.learn_many([[0.0, 1.0], [2.0, 0.5], [1.5, 0.5]], [-1, 1, 1])
    >>> explanation = learner.explain_one([1.5, 0.5])
    >>> bool(abs(explanation.terms.sum() - explanation.score) < 1e-12)
    True
    """

    score: float
    bias: float
    columns: FloatArray
    offset: float
    kernel: float
    clipping: float

    @property
    def terms(self) -> FloatArray:
        """Return all terms: bias, columns, offset, kernel, clipping; shape (dimension + 4,)."""
        return np.array([self.bias, *self.columns, self.offset, self.kernel, self.clipping])


def split(
    settings: ForksSettings,
    score: float,
    *,
    z: FloatArray,
    weights: FloatArray,
    offset: float,
    expansion: float,
    tracker: Tracker,
) -> Explanation:
    """Split a score.

    Parameters
    ----------
    settings
        Settings of the learner.
    score
        The score.
    z : ndarray, shape (features,), float64
        Features of the event, linear part first.
    weights : ndarray, shape (features,), float64
        Newton's weights.
    offset
        The offset, within the bound.
    expansion
        The value of stage 1's function, 0 in stage 2.
    tracker
        The state of tracking.
    """
    linear = settings.linear_features
    own = weights[:linear] * z[:linear]
    kernel = float(dot(weights[linear:], z[linear:])) + expansion
    unbounded = math.fsum([*own, offset, kernel])
    terms, bounded = own, abs(unbounded) <= settings.clip
    if settings.tracking:
        corrections = tracker.corrections * z[:linear]
        if tracker.phase[0] == UNCHANGED:
            corrections[2] = 0.0
        mixed = np.empty(linear)
        vecmat(tracker.shares[1:], corrections, mixed)
        terms = own + mixed
        bounded = bounded and bool((np.abs(unbounded + corrections.sum(axis=1)) <= settings.clip).all())
    columns = np.zeros(settings.dimension)
    if linear:
        columns[slice(*settings.linear_columns)] = terms[1:]
    whole = math.fsum([*terms, offset, kernel])
    return Explanation(
        score=score,
        bias=float(terms[0]) if linear else 0.0,
        columns=columns,
        offset=offset,
        kernel=kernel,
        clipping=0.0 if bounded else score - whole,
    )
