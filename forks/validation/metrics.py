"""Metrics of scores against labels, and of predicted numbers, each exact and over all given events.

``scores`` are real numbers, (n,), float64; ``positive`` tells which labels are +1, (n,), bool. Probabilities
are P(+1) = 1 / (1 + exp(-score)). A metric that is not defined is None.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from forks.arrays import FloatArray

Flags = NDArray[np.bool_]

BINS = 10


def auc(scores: FloatArray, positive: Flags) -> float | None:
    """Return the area under the ROC curve, with ties counted half; None unless both classes occur.

    References
    ----------
    Hanley and McNeil, The meaning and use of the area under a receiver operating characteristic (ROC)
    curve, Radiology 143, 1982.

    Examples
    --------
    >>> auc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    0.875
    """
    positives = int(np.count_nonzero(positive))
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return None
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # scipy.stats has this, and takes long to import
    return float((ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def log_loss(scores: FloatArray, positive: Flags) -> float | None:
    """Return the mean of -log P(label), in nats, without overflow; None without events.

    Examples
    --------
    >>> log_loss(np.zeros(2), np.array([True, False]))
    0.6931471805599453
    """
    if len(scores) == 0:
        return None
    return float(np.mean(np.logaddexp(0.0, np.where(positive, -scores, scores))))


def brier_score(scores: FloatArray, positive: Flags) -> float | None:
    """Return the mean of (P(+1) - [label is +1])^2; None without events.

    References
    ----------
    Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78, 1950
    (which sums over both classes, and so has twice this).

    Examples
    --------
    >>> brier_score(np.zeros(2), np.array([True, False]))
    0.25
    """
    if len(scores) == 0:
        return None
    return float(np.mean((expit(scores) - positive) ** 2))


def calibration_error(scores: FloatArray, positive: Flags) -> float | None:
    """Return the expected calibration error over ten bins of equal width; None without events.

    In each bin, the mean of P(+1) is compared with the share of labels +1; the absolute differences
    are weighted by the bins' shares of all events. A probability on a border counts to the upper bin.

    References
    ----------
    Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning,
    AAAI 2015, section "Calibration measures".

    Examples
    --------
    >>> calibration_error(np.zeros(4), np.array([True, False, False, False]))
    0.25
    """
    if len(scores) == 0:
        return None
    probabilities = expit(scores)
    bins = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    surplus = np.bincount(bins, weights=probabilities - positive, minlength=BINS)
    return float(np.abs(surplus).sum() / len(scores))


def majority(positive: Flags) -> bool:
    """Return whether +1 is the more frequent label; False on a tie.

    Always predicting the more frequent label makes the fewest mistakes of all constant predictions.

    Examples
    --------
    >>> majority(np.array([True, True, False]))
    True
    """
    return 2 * int(np.count_nonzero(positive)) > len(positive)


def mean_absolute_error(predicted: FloatArray, labels: FloatArray) -> float:
    """Return the mean of |prediction - label| over at least one event, in the unit of the labels.

    Examples
    --------
    >>> mean_absolute_error(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    1.0
    """
    return float(np.mean(np.abs(predicted - labels)))


def root_mean_squared_error(predicted: FloatArray, labels: FloatArray) -> float:
    """Return the root of the mean of (prediction - label)^2 over at least one event.

    Examples
    --------
    >>> root_mean_squared_error(np.array([1.0, 2.0]), np.array([4.0, 6.0]))
    3.5355339059327378
    """
    return float(np.sqrt(np.mean((predicted - labels) ** 2)))


def r2(predicted: FloatArray, labels: FloatArray) -> float | None:
    """Return the share of the labels' variance that predictions explain; None if the labels are all the same.

    Examples
    --------
    >>> r2(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    0.7857142857142857
    """
    spread = float(np.sum((labels - labels.mean()) ** 2)) if len(labels) else 0.0
    if spread == 0.0:
        return None
    return 1.0 - float(np.sum((predicted - labels) ** 2)) / spread


def coverage(
    predicted: FloatArray,
    labels: FloatArray,
    quantiles: tuple[float, float],
    history: int = 1_000,
    block: int = 100,
) -> float | None:
    """Return the share of labels that lie between quantiles of earlier errors, around their prediction.

    For each block of events, the errors of the events right before it give two quantiles. A label is covered
    if its error lies between them. If errors stay as they were, as many labels are covered as lie between the
    quantiles.

    Parameters
    ----------
    predicted, labels
        Predictions and labels in the order in which labels came, shapes (n,).
    quantiles
        The lower and the upper quantile, from 0 to 1.
    history
        Events before a block whose errors are used, at most; there have to be as many as a block has.
    block
        Events for which the same quantiles are used.

    Returns
    -------
    float or None
        None with no more events than one block.

    References
    ----------
    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, Distribution-Free Predictive Inference for Regression,
    JASA 113, 2018 (split conformal intervals, here with the newest errors in place of a calibration set).

    Examples
    --------
    >>> errors = np.tile(np.arange(10.0), 100)
    >>> coverage(errors, np.zeros(1000), (0.1, 0.9))
    0.8
    """
    errors = labels - predicted
    inside = 0
    for begin in range(block, len(errors), block):
        low, high = np.quantile(errors[max(0, begin - history) : begin], quantiles)
        new = errors[begin : begin + block]
        inside += int(np.sum((low <= new) & (new <= high)))
    return inside / (len(errors) - block) if len(errors) > block else None
