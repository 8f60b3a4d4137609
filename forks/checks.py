"""Checks of vectors, labels and steps, made before a learner changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from forks.arrays import FloatArray, IntArray
from forks.jit import njit
from forks.losses import LossName

# Largest accepted absolute value: sums of squares over any stream stay far from overflow, which would give
# NaN.
LARGEST = 1e100

# The same for an unstandardised linear part: beside an intercept of 1, larger values make the inverse Hessian
# inexact.
LARGEST_UNSTANDARDIZED = 1e6

# Largest accepted weight of a label, which is learned in as many steps: see `forks.algorithm.weighted`.
LARGEST_WEIGHT = 1000.0


def check_vector(name: str, x: ArrayLike, dimension: int, largest: float = LARGEST) -> FloatArray:
    """Return ``x`` as a (1, dimension) float64 array, or raise a ValueError that names it."""
    array = _numbers(name, x)
    if array.shape != (dimension,):
        raise ValueError(f"{name} must have shape ({dimension},), not {array.shape}")
    return _bounded(name, array[None], largest)


def check_matrix(name: str, X: ArrayLike, dimension: int | None, largest: float = LARGEST) -> FloatArray:
    """Return ``X`` as an (n, dimension) float64 array, or raise a ValueError that names it.

    Without a ``dimension``, any number of columns is accepted.
    """
    array = _numbers(name, X)
    if array.ndim != 2 or dimension not in {None, array.shape[1]}:
        columns = "columns" if dimension is None else dimension
        raise ValueError(f"{name} must have shape (n, {columns}), not {array.shape}")
    return _bounded(name, array, largest)


def check_label(name: str, y: float, loss: LossName) -> float:
    """Return ``y`` as a float that is a label for ``loss``, or raise a ValueError that names it."""
    try:
        label = float(y)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a number: {error}") from error
    if loss == "squared":
        if not abs(label) <= LARGEST:
            raise ValueError(f"{name} must be finite and within +-{LARGEST:g}, not {label}")
    elif label not in {-1.0, 1.0}:
        raise ValueError(f"{name} must be -1 or +1 with the loss {loss!r}, not {label:g}")
    return label


def check_labels(
    name: str, y: ArrayLike, count: int, loss: LossName, required: IntArray | None = None
) -> FloatArray:
    """Return ``y`` as a (count,) float64 array of labels for ``loss``, or raise a ValueError.

    Only the entries with the indices ``required`` have to be labels; without it, all entries.
    """
    array = _numbers(name, y)
    if array.shape != (count,):
        raise ValueError(f"{name} must have shape ({count},), one label for each row, not {array.shape}")
    labels = array if required is None else array[required]
    accepted = np.abs(labels) <= LARGEST if loss == "squared" else np.abs(labels) == 1.0
    if not accepted.all():
        first = int(np.argmin(accepted))
        number = first if required is None else int(required[first])
        check_label(f"{name}[{number}]", array[number], loss)
    return array


def check_weights(name: str, weights: ArrayLike, count: int) -> FloatArray:
    """Return ``weights`` as a (count,) float64 array of labels' weights, or raise a ValueError."""
    array = _numbers(name, weights)
    if array.shape != (count,):
        raise ValueError(f"{name} must have shape ({count},), one weight for each row, not {array.shape}")
    accepted = (array >= 0.0) & (array <= LARGEST_WEIGHT)
    if not accepted.all():
        first = int(np.argmin(accepted))
        raise ValueError(f"{name}[{first}] must be from 0 to {LARGEST_WEIGHT:g}, not {array[first]:g}")
    return array


def check_weight(name: str, weight: float) -> float:
    """Return ``weight`` as a float that is a label's weight, or raise a ValueError that names it."""
    try:
        number = float(weight)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a number: {error}") from error
    if not 0.0 <= number <= LARGEST_WEIGHT:
        raise ValueError(f"{name} must be from 0 to {LARGEST_WEIGHT:g}, not {number:g}")
    return number


def check_order(name: str, order: ArrayLike, events: int, kinds: int = 2) -> IntArray:
    """Return ``order`` as an int64 array of steps for the events, or raise a ValueError that names it.

    There are so many kinds of steps: i, n + i and perhaps 2 n + i for event i of n.
    """
    array = np.asarray(order)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers of shape (steps,), not {array.dtype} of {array.shape}")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < kinds * events:
        raise ValueError(f"{name} must be steps from 0 to {kinds * events - 1}, for {events} events")
    return np.ascontiguousarray(array, dtype=np.int64)


def check_indices(name: str, numbers: ArrayLike, count: int, limits: Sequence[int]) -> IntArray:
    """Return ``numbers`` as a (count, len(limits)) int64 array, or raise a ValueError that names it.

    Entries of a column must be from 0 up to, but not including, its limit.
    """
    array = np.asarray(numbers)
    if array.shape != (count, len(limits)) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be integers of shape ({count}, {len(limits)}), not {array.dtype} of {array.shape}"
        )
    for column, limit in enumerate(limits):
        if count and not 0 <= int(array[:, column].min()) <= int(array[:, column].max()) < limit:
            raise ValueError(f"{name}[:, {column}] must be from 0 to {limit - 1}, the rows of its table")
    return np.ascontiguousarray(array, dtype=np.int64)


def _numbers(name: str, values: ArrayLike) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error


def _bounded(name: str, array: FloatArray, largest: float) -> FloatArray:
    if not _all_within(array, largest):
        raise ValueError(f"{name} must be finite and within +-{largest:g}")
    return array


@njit(cache=True)
def _all_within(array: FloatArray, largest: float) -> bool:
    """Return whether all absolute values are within ``largest``, faster than NumPy for one row."""
    for i in range(array.shape[0]):
        within = 0  # counted to the end of the row, so that the compiler can use vector instructions
        for j in range(array.shape[1]):
            within += abs(array[i, j]) <= largest  # NaN is not <= anything
        if within < array.shape[1]:
            return False
    return True
