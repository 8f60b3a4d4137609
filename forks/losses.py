"""Losses of a score s and a label y: value, slope dl/ds and curvature d2l/ds2.

=============  =======================  ====================
name           value                    labels
=============  =======================  ====================
logistic       log(1 + exp(-y s))       -1, +1
hinge          max(0, 1 - y s)          -1, +1
squared_hinge  max(0, 1 - y s)^2        -1, +1
squared        (s - y)^2                any finite number
=============  =======================  ====================

Compiled functions identify a loss by its number in `LOSSES`, because they cannot compare strings cheaply.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from forks.arrays import FloatArray
from forks.compiled.exponential import exponential
from forks.compiled.logarithm import log1p
from forks.jit import njit

LossName: TypeAlias = Literal["logistic", "hinge", "squared_hinge", "squared"]

LOGISTIC, HINGE, SQUARED_HINGE, SQUARED = range(4)
LOSSES = MappingProxyType(
    {"logistic": LOGISTIC, "hinge": HINGE, "squared_hinge": SQUARED_HINGE, "squared": SQUARED}
)


@njit(cache=True, error_model="numpy")
def probability(score: float) -> float:
    """Return P(y = +1) = 1 / (1 + exp(-score)) of a logistic score, without overflow.

    Examples
    --------
    >>> probability(0.0), probability(-1000.0)
    (0.5, 0.0)
    """
    odds = exponential(-abs(score))
    return (1.0 if score >= 0.0 else odds) / (1.0 + odds)


@njit(cache=True, allocates=True)
def probabilities(scores: FloatArray) -> FloatArray:
    """Return `probability` of each score, (n,)."""
    out = np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        out[i] = probability(scores[i])
    return out


# Not called but inlined, so that the compiler makes vector instructions of a loop over it.
@njit(cache=True, error_model="numpy", forceinline=True)
def loss_value(loss: int, score: float, y: float) -> float:
    """Return the loss of ``score`` for the label ``y``; ``loss`` is a number of `LOSSES`."""
    if loss == LOGISTIC:
        margin = y * score
        return log1p(exponential(-abs(margin))) + max(-margin, 0.0)
    if loss == HINGE:
        return max(0.0, 1.0 - y * score)
    if loss == SQUARED_HINGE:
        short = max(0.0, 1.0 - y * score)
        return short * short
    return (score - y) * (score - y)


@njit(cache=True)
def loss_slope(loss: int, score: float, y: float) -> float:
    """Return the derivative of the loss with respect to the score (a subgradient at the hinge's kink)."""
    if loss == LOGISTIC:
        return -y * probability(-y * score)
    if loss == HINGE:
        return -y if y * score < 1.0 else 0.0
    if loss == SQUARED_HINGE:
        return -2.0 * y * max(0.0, 1.0 - y * score)
    return 2.0 * (score - y)


@njit(cache=True)
def loss_curvature(loss: int, score: float, y: float) -> float:
    """Return the second derivative of the loss with respect to the score; p (1 - p) for logistic."""
    if loss == LOGISTIC:
        odds = exponential(-abs(score))
        return odds / ((1.0 + odds) * (1.0 + odds))
    if loss == HINGE:
        return 0.0
    if loss == SQUARED_HINGE:
        return 2.0 if y * score < 1.0 else 0.0
    return 2.0
