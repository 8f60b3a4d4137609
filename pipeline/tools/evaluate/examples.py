"""Vectors and labels, whatever file they come from: checked, and dense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forks.arrays import FloatArray
from forks.checks import LARGEST
from pipeline.errors import DataError

LARGEST_TABLE: Final = 2 * 10**9
"""Bytes of a dense table; more is a mistake in an index sooner than data for a dense learner."""


class Examples(NamedTuple):
    """Rows in the file's order: `X` has shape (n, d), `y` has shape (n,) and is -1 or +1."""

    X: FloatArray
    y: FloatArray


def examples(X: NDArray[Any], labels: NDArray[Any], location: Callable[[int], str]) -> Examples:
    """Check numbers and labels; 0 is taken for -1 where no label is -1.

    Parameters
    ----------
    X
        Shape (n, d).
    labels
        Shape (n,).
    place
        Says where a row comes from: the file, and the line where it has lines.

    Raises
    ------
    DataError
        Naming the first row that cannot be used.
    """
    vectors, values = X.astype(np.float64), labels.astype(np.float64)
    bad = ~(np.abs(vectors) <= LARGEST).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        column = int(np.argmax(~(np.abs(vectors[row]) <= LARGEST)))
        raise DataError(
            f"{location(row)}: feature {column + 1} is {vectors[row, column]:g}; "
            f"numbers have to be finite and within +-{LARGEST:g}"
        )
    negative = -1.0 if (values == -1.0).any() else 0.0
    unknown = (values != 1.0) & (values != negative)
    if unknown.any():
        row = int(np.argmax(unknown))
        raise DataError(
            f"{location(row)}: the label is {values[row]:g}; "
            "labels have to be -1 and 1, or 0 and 1, in the whole file"
        )
    return Examples(vectors, np.where(values == 1.0, 1.0, -1.0))


def check_shape(file: Path, rows: int, columns: int) -> None:
    """Raise `DataError` where there is nothing to learn from, or more than fits as a dense table."""
    if rows == 0 or columns == 0:
        raise DataError(f"{file}: there is no example: {rows} rows of {columns} features")
    size = rows * columns * 8
    if size > LARGEST_TABLE:
        raise DataError(
            f"{file}: {rows:,} rows of {columns:,} features take {size / 1e9:,.1f} GB as a dense table; "
            f"the most is {LARGEST_TABLE / 1e9:g} GB"
        )
