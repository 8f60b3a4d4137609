"""Differences between the scores of models on the same events, with errors by bootstrap over users."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from forks.arrays import BoolArray, FloatArray, IntArray

DRAWS: Final = 200
"""Bootstrap draws of the users."""
METRICS: Final = ("mistakes", "auc", "log_loss")
DIGITS: Final = {"mistakes": 2, "auc": 4, "log_loss": 4}


class Metrics(NamedTuple):
    """Metrics under each of some weightings of the users.

    Attributes
    ----------
    values
        Percent of mistakes, AUC and log loss, shape (1 + draws, 3); in the first row all users weigh 1.
    """

    values: FloatArray


def user_weights(users: IntArray, draws: int = DRAWS, seed: int = 0) -> FloatArray:
    """Return how often each event counts: once, and then as often as its user is drawn with replacement.

    Parameters
    ----------
    users : ndarray, shape (n,), int64
        The user of each event.
    draws
        Bootstrap draws.
    seed
        Seed of the draws.

    Returns
    -------
    ndarray, shape (1 + draws, n), float64

    References
    ----------
    Field and Welsh, Bootstrapping clustered data, Journal of the Royal Statistical Society B 69, 2007.
    """
    _, user = np.unique(users, return_inverse=True)
    count = int(user.max()) + 1
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=draws)
    everyone = np.ones((1, count), dtype=np.int64)
    return np.vstack([everyone, drawn])[:, user].astype(np.float64)


def metrics(scores: FloatArray, positive: BoolArray, weights: FloatArray) -> Metrics:
    """Return the metrics of scores, shape (n,), under each row of weights, shape (1 + draws, n)."""
    total = weights.sum(axis=1)
    wrong = (scores > 0.0) != positive
    loss = np.logaddexp(0.0, np.where(positive, -scores, scores))
    area = weighted_auc(scores, positive, weights)
    return Metrics(np.column_stack([100.0 * (weights @ wrong) / total, area, (weights @ loss) / total]))


def weighted_auc(scores: FloatArray, positive: BoolArray, weights: FloatArray) -> FloatArray:
    """Return the area under the ROC curve under each row of weights, with ties counted half.

    It is NaN where one of the classes has no weight.

    Examples
    --------
    >>> scores, positive = np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True])
    >>> weighted_auc(scores, positive, np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 3.0, 0.0]])).tolist()
    [0.875, 0.75]
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sorted_weights = weights[:, order]
    of_positives = np.add.reduceat(sorted_weights * positive[order], starts, axis=1)
    of_negatives = np.add.reduceat(sorted_weights * ~positive[order], starts, axis=1)
    below = np.cumsum(of_negatives, axis=1) - 0.5 * of_negatives
    pairs = of_positives.sum(axis=1) * of_negatives.sum(axis=1)
    with np.errstate(invalid="ignore"):
        area: FloatArray = (of_positives * below).sum(axis=1) / pairs
    return area


def mean_metrics(runs: Sequence[Metrics]) -> Metrics:
    """Return the means over runs on the same users, such as random orders."""
    return Metrics(np.mean([run.values for run in runs], axis=0))


def table(found: Mapping[str, Sequence[Metrics]], base: str) -> dict[str, Any]:
    """Return means over parts, and differences to one of the models with standard errors.

    Parameters
    ----------
    found
        Metrics by model: one for each part of the data, of users that are in no other part.
    base
        The model to compare with.

    Returns
    -------
    dict
        By model and metric, `mean`, and `difference` and `standard_error` for all but the base.
    """
    return {
        name: {
            metric: _cell(
                np.array([part.values[:, i] for part in parts]),
                np.array([part.values[:, i] for part in found[base]]),
                DIGITS[metric],
                of_base=name == base,
            )
            for i, metric in enumerate(METRICS)
        }
        for name, parts in found.items()
    }


def _cell(values: FloatArray, base: FloatArray, digits: int, *, of_base: bool) -> dict[str, float]:
    """Return the figures of one metric from those by part and draw, shape (parts, 1 + draws)."""
    own = {"mean": round(float(values[:, 0].mean()), digits)}
    if of_base:
        error = values[:, 1:].std(axis=1)
        return own | {"standard_error": round(_of_mean(error), digits)}
    difference = values - base
    return own | {
        "difference": round(float(difference[:, 0].mean()), digits + 1),
        "standard_error": round(_of_mean(difference[:, 1:].std(axis=1)), digits + 1),
    }


def _of_mean(errors: FloatArray) -> float:
    """Return the standard error of the mean of independent figures, given theirs."""
    return math.sqrt(float(np.sum(errors**2))) / len(errors)
