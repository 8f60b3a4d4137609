"""The columns of outcomes that figures are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

OUTCOME: Final = np.dtype(
    [
        ("sequence", np.int64),
        ("prediction_sequence", np.int64),
        ("model_version", np.int64),
        ("timestamp", np.int64),
        ("label_timestamp", np.int64),
        ("score", np.float64),
        ("prediction", np.float64),  # of a regression target, else 1 for a positive label
        ("user_mean", np.float64),  # of the labels of the first entity, NaN without
        ("video_mean", np.float64),  # of those of the second
        ("value", np.float64),  # of the label, as it is learned; 0 without one
        ("learned", np.bool_),
        ("positive", np.bool_),  # whether the label is positive, learned or not
        ("labelled", np.bool_),
        ("has_probability", np.bool_),
        ("position", np.int64),  # in a slate, from 0
    ]
)
"""Columns that are kept of an outcome."""

Outcomes: TypeAlias = NDArray[np.void]
"""Outcomes of a partition as an array of type `OUTCOME`, shape (n,), in sequence."""
Floats: TypeAlias = NDArray[np.float64]


def in_order_of_time(outcomes: Sequence[Outcomes]) -> NDArray[np.int64]:
    """Return which of the outcomes of all partitions have labels, in the order of time."""
    together = np.concatenate([np.empty(0, OUTCOME), *outcomes])
    labelled = np.flatnonzero(together["labelled"])
    return labelled[np.argsort(together["timestamp"][labelled], kind="stable")]


def summed_means(outcomes: Outcomes, mean: Floats) -> Floats:
    """Return the running mean of one entity, or the sum of two less that of all; NaN without entities.

    Parameters
    ----------
    outcomes
        Outcomes of one partition, shape (n,).
    mean
        The mean of all labels that were known when each prediction was made, shape (n,).
    """
    user, video = outcomes["user_mean"], outcomes["video_mean"]
    return np.where(np.isnan(video), user, user + video - mean)


def known_sums(outcomes: Outcomes, values: Floats) -> tuple[Floats, Floats]:
    """Return what was known when each prediction of a partition was made.

    Parameters
    ----------
    outcomes
        Outcomes of one partition, shape (n,).
    values
        A number of each, shape (n,).

    Returns
    -------
    tuple
        The number of outcomes that were learned before, and the sum of their numbers, shapes (n,).
    """
    learned = np.concatenate([[0.0], np.cumsum(outcomes["learned"])])
    sums = np.concatenate([[0.0], np.cumsum(np.where(outcomes["learned"], values, 0.0))])
    known = np.searchsorted(outcomes["sequence"], outcomes["model_version"])
    return learned[known], sums[known]
