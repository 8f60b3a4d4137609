"""Mixtures of scores by fixed share: each score's weight follows the likelihood of the labels under it.

References
----------
Herbster and Warmuth, Tracking the best expert, Machine Learning 32, 1998.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Final

from forks.arrays import FloatArray, IntArray
from forks.compiled.exponential import exponential
from forks.compiled.logarithm import logarithm
from forks.jit import njit
from forks.losses import LOGISTIC, probability

SWITCHING: Final = 1e-3
"""Share of all weight that each label spreads evenly."""
SMALLEST_PROBABILITY: Final = 1e-6
"""A mixture's probability is from here to 1 minus this."""
FLOOR: Final = 1e-12
"""Smallest likelihood of a label, so that no score is refuted for good by one label."""
ERRORS_KEPT: Final = 0.999
"""Share of the squared errors of a mixture that each label leaves."""


@njit(cache=True)
def log_odds(p: float) -> float:
    """Return the log-odds of a probability, which is taken from `SMALLEST_PROBABILITY` to 1 minus this.

    Examples
    --------
    >>> log_odds(0.5), round(log_odds(0.0), 3)
    (0.0, -13.816)
    """
    p = min(max(p, SMALLEST_PROBABILITY), 1.0 - SMALLEST_PROBABILITY)
    return logarithm(p / (1.0 - p))


@njit(cache=True)
def mixed_score(loss: int, scores: FloatArray, columns: IntArray, shares: FloatArray) -> float:
    """Return the mean of scores: that of their probabilities for the logistic loss, as log-odds.

    Parameters
    ----------
    loss
        Number of the loss.
    scores : ndarray, shape (n,), float64
        Scores.
    columns : ndarray, shape (e,), int64
        Which of them are mixed.
    shares : ndarray, shape (e,), float64
        Their weights, with sum 1.
    """
    total = 0.0
    for k in range(columns.shape[0]):
        score = scores[columns[k]]
        total += shares[k] * (probability(score) if loss == LOGISTIC else score)
    return log_odds(total) if loss == LOGISTIC else total


@njit(cache=True)
def reweigh(
    loss: int,
    label: float,
    importance: float,
    scores: FloatArray,
    columns: IntArray,
    shares: FloatArray,
    errors: FloatArray,
) -> None:
    """Learn a label, given the scores of its prediction.

    Parameters
    ----------
    loss
        Number of the loss.
    label, importance
        Label and its weight.
    scores, columns
        As those of `mixed_score`.
    shares : ndarray, shape (e,), float64
        Weights of the scores; changed.
    errors : ndarray, shape (2,), float64
        With squared loss, the sum of squared errors of the mixture and their number, both of which fade;
        changed.
    """
    experts = columns.shape[0]
    variance = 1.0
    if loss != LOGISTIC:
        error = label - mixed_score(loss, scores, columns, shares)
        errors[0] = ERRORS_KEPT * errors[0] + importance * error * error
        errors[1] = ERRORS_KEPT * errors[1] + importance
        variance = errors[0] / errors[1]
    best = 0.0
    for k in range(experts):
        likelihood = _log_likelihood(loss, label, scores[columns[k]], variance)
        best = likelihood if k == 0 else max(best, likelihood)
    total = 0.0
    for k in range(experts):
        likelihood = _log_likelihood(loss, label, scores[columns[k]], variance)
        shares[k] *= max(exponential(importance * (likelihood - best)), FLOOR)
        total += shares[k]
    for k in range(experts):
        shares[k] = (1.0 - SWITCHING) * shares[k] / total + SWITCHING / experts


@njit(cache=True)
def _log_likelihood(loss: int, label: float, score: float, variance: float) -> float:
    """Return the logarithm of a label's likelihood, up to a constant."""
    if loss == LOGISTIC:
        return logarithm(max(probability(label * score), FLOOR))
    error = label - score
    return -error * error / (2.0 * variance) if variance > 0.0 else 0.0
