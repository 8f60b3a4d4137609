"""What `forks.Forks` accepts as vectors and labels, checked before anything changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from forks.arrays import FloatArray
from forks.losses import LossName


def check_vector(name: str, x: ArrayLike, dimension: int) -> FloatArray:
    """Return ``x`` as a (dimension,) float64 array, or raise a ValueError that names it."""
    return _finite(name, x, (dimension,))


def check_matrix(name: str, X: ArrayLike, dimension: int) -> FloatArray:
    """Return ``X`` as an (n, dimension) float64 array, or raise a ValueError that names it."""
    return _finite(name, X, (None, dimension))


def check_labels(name: str, y: ArrayLike, count: int, loss: LossName) -> FloatArray:
    """Return ``y`` as a (count,) float64 array of labels that ``loss`` takes, or raise a ValueError."""
    labels = _finite(name, y, (count,))
    if loss != "squared" and not (np.abs(labels) == 1.0).all():
        wrong = labels[np.abs(labels) != 1.0][0]
        raise ValueError(f"{name} must be -1 or +1 with the loss {loss!r}, not {wrong:g}")
    return labels


def check_label(name: str, y: float, loss: LossName) -> FloatArray:
    """Return ``y`` as a (1,) float64 array, or raise a ValueError that names it."""
    if np.ndim(y) != 0:
        raise ValueError(f"{name} must be one number, not an array of shape {np.shape(y)}")
    return check_labels(name, [y], 1, loss)


def _finite(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    if array.ndim != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, array.shape, strict=True)
    ):
        asked = ", ".join("n" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} must have shape ({asked}), not {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, but holds NaN or infinity")
    return array
