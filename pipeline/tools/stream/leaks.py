"""Whether a column alone tells the label."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from forks.arrays import FloatArray
from forks.validation import auc

LARGEST: Final = 1e100
"""Numbers beyond count as this, where they are compared with the label."""
SMALLEST: Final = 1e-100
"""Deviation up to which numbers are all the same."""
ENOUGH: Final = 10
"""Labels of either class, at least, where classes are told apart."""
AUC: Final = 0.99
"""Area under the ROC curve from which on a number tells the classes apart."""
ACCURACY: Final = 0.99
"""Share of labels from which on the values of a category tell them."""
MAJORITY: Final = 0.95
"""Share of labels of one class from which on such accuracy says nothing."""


def tells(values: pl.Series, y: FloatArray, least: float) -> str | None:
    """Return how well a column tells the label, as text; None if it does not.

    A number does if it is correlated with the label, or separates the classes. A category does if the other
    rows with its value name the class. So values that are all different tell nothing.

    Parameters
    ----------
    values
        The column, shape (n,).
    y
        The labels, shape (n,): numbers, or 0 and 1 for two classes.
    least
        Correlation from which on a number tells the label.

    Examples
    --------
    >>> y = np.array([0.0, 1.0] * 20)
    >>> tells(pl.Series([3, 7] * 20), y, 0.95)
    'correlation 1.000'
    >>> tells(pl.Series(["a", "b"] * 20), y, 0.95)
    'accuracy 1.000'
    >>> tells(pl.Series(range(40)), y, 0.95), tells(pl.Series([str(n) for n in range(40)]), y, 0.95)
    (None, None)
    """
    dtype, standard = values.dtype, standardised(y)
    if standard is None:
        return None
    if (dtype.is_numeric() or dtype == pl.Boolean) and (numbers := numbers_of(values)) is not None:
        correlated = correlation(numbers, standard)
        if correlated >= least:
            return f"correlation {correlated:.3f}"
        if _has_classes(y):
            area = auc(numbers, y > 0.0) or 0.0
            if max(area, 1.0 - area) >= AUC:
                return f"AUC {max(area, 1.0 - area):.3f}"
    if (
        (dtype.is_integer() or dtype == pl.String)
        and _has_classes(y)
        and y.mean() < MAJORITY > 1.0 - y.mean()
    ):
        accuracy = _accuracy(values, y)
        if accuracy >= ACCURACY:
            return f"accuracy {accuracy:.3f}"
    return None


def correlation(numbers: FloatArray, y: FloatArray) -> float:
    """Return the absolute correlation of numbers with a label that is `standardised`."""
    x = standardised(numbers)
    return 0.0 if x is None else abs(float(np.mean(x * y)))


def standardised(numbers: FloatArray) -> FloatArray | None:
    """Return numbers with a mean of 0 and a deviation of 1; None if they are all the same."""
    if not numbers.std() > SMALLEST:
        return None
    scaled: FloatArray = (numbers - numbers.mean()) / numbers.std()
    return scaled


def numbers_of(values: pl.Series) -> FloatArray | None:
    """Return a column as numbers, 0 where there is none; None if some are not finite."""
    numbers: FloatArray = values.cast(pl.Float64).fill_null(0.0).to_numpy()
    # Their squares have to be numbers, too.
    return np.clip(numbers, -LARGEST, LARGEST) if np.isfinite(numbers).all() else None


def _has_classes(y: FloatArray) -> bool:
    """Return whether there are two classes, and enough labels of either."""
    positive = int(np.count_nonzero(y == 1.0))
    return positive + int(np.count_nonzero(y == 0.0)) == len(y) and ENOUGH <= positive <= len(y) - ENOUGH


def _accuracy(values: pl.Series, y: FloatArray) -> float:
    """Return the share of labels that are the more frequent one of the other rows with the same value.

    Where these name neither class, it is that of all rows.
    """
    one = pl.col("y")
    found = pl.DataFrame({"value": values, "y": y}).select(
        margin=2.0 * (one.sum().over("value") - one) - (pl.len().over("value") - 1)
    )
    margin = found["margin"].to_numpy()
    predicted = np.where(margin == 0.0, 2.0 * y.sum() > len(y), margin > 0.0)
    return float(np.mean(predicted == (y > 0.0)))
