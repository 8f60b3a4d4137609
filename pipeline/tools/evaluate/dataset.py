"""Check the vectors and labels of a file, whatever its format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forks.arrays import FloatArray
from forks.checks import LARGEST
from pipeline.errors import DataError
from pipeline.input_files import refuse_large_table

ROWS_AT_ONCE: Final = 10_000
"""Rows that are checked at once, so that checks take little memory."""


class Dataset(NamedTuple):
    """Rows in the file's order: `X` has shape (n, d), `y` has shape (n,) and is -1 or +1."""

    X: FloatArray
    y: FloatArray


def checked_dataset(X: NDArray[Any], labels: NDArray[Any], location: Callable[[int], str]) -> Dataset:
    """Check numbers and labels; where no label is -1, 0 stands for -1.

    Parameters
    ----------
    X
        Features, shape (n, d).
    labels
        Labels, shape (n,).
    location
        Function that names the file and the line of a row.

    Returns
    -------
    Dataset
        Features and labels as float64.

    Raises
    ------
    DataError
        If a row cannot be used; the error names the first one.
    """
    vectors, values = X.astype(np.float64, copy=False), labels.astype(np.float64)
    for begin in range(0, len(vectors), ROWS_AT_ONCE):
        bad = ~(np.abs(vectors[begin : begin + ROWS_AT_ONCE]) <= LARGEST)
        if not bad.any():
            continue
        row = begin + int(np.argmax(bad.any(axis=1)))
        column = int(np.argmax(bad[row - begin]))
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
    return Dataset(vectors, np.where(values == 1.0, 1.0, -1.0))


def check_shape(file: Path, rows: int, columns: int) -> None:
    """Raise `DataError` if a table is empty, or too large as a dense table."""
    if rows <= 0 or columns <= 0:
        raise DataError(f"{file}: there is no example: {rows} rows of {columns} features")
    refuse_large_table(str(file), rows, columns)
