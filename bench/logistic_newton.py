"""Online Newton step for the logistic loss, linear: what FORKS is compared with on the same features.

Hazan, Agarwal and Kale, Logarithmic regret algorithms for online convex optimization, Machine Learning 69,
2007, Figure 2, without the projection: w <- w - A^-1 g / gamma, where A = epsilon I + sum of g g^T.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from forks.algorithm.moments import standardize, update_moments
from forks.arrays import FloatArray

GAMMAS: Final = (0.1, 0.25, 0.5, 1.0)
"""Values of gamma to choose from."""
EPSILONS: Final = (1.0, 10.0, 100.0)
"""Values of epsilon to choose from."""


def standardised(X: FloatArray) -> FloatArray:
    """Return rows standardised by the moments of those before them, with 1 in front; (n, 1 + columns)."""
    n, columns = X.shape
    mean, squares, out = np.zeros(columns), np.zeros(columns), np.ones((n, 1 + columns))
    for number, x in enumerate(X):
        standardize(x, number, mean, squares, out[number, 1:])
        update_moments(x, number + 1, mean, squares)
    return out


def scores_of(rows: FloatArray, y: FloatArray, gamma: float, epsilon: float) -> FloatArray:
    """Return the score of each row, (n,), made before its label is learned.

    Parameters
    ----------
    rows
        Features, shape (n, columns).
    y
        Labels, 1 or -1, shape (n,).
    gamma, epsilon
        As in the paper.
    """
    weights, inverse = np.zeros(rows.shape[1]), np.eye(rows.shape[1]) / epsilon
    scores = np.empty(len(rows))
    for number, (x, label) in enumerate(zip(rows, y.tolist(), strict=True)):
        score = float(x @ weights)
        scores[number] = score
        gradient = (-label / (1.0 + np.exp(np.clip(label * score, -500.0, 500.0)))) * x
        direction = inverse @ gradient
        inverse -= np.outer(direction, direction) / (1.0 + float(gradient @ direction))
        weights -= inverse @ gradient / gamma
    return scores
