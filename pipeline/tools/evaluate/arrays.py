"""Read examples from a NumPy .npz file: dense, or sparse by rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pipeline.errors import DataError
from pipeline.tools.evaluate.dataset import Dataset, check_shape, checked_dataset

SPARSE: Final = ("data", "indices", "indptr", "shape")
"""Names of the arrays of a matrix in compressed sparse row format, as in `scipy.sparse`."""


def read_arrays(file: Path) -> Dataset:
    """Read the arrays `X` and `y`, or the arrays of a sparse `X` and `y`.

    Parameters
    ----------
    file
        File with `X` of shape (n, d) and `y` of shape (n,).

    Returns
    -------
    Dataset
        Checked rows and labels.

    Raises
    ------
    DataError
        If an array is missing or does not fit; the error names it.
    """
    arrays = _load(file)
    if "X" in arrays:
        X = arrays["X"]
    elif set(SPARSE) <= arrays.keys():
        X = _dense(file, arrays)
    else:
        found = ", ".join(arrays) or "no array"
        raise DataError(
            f"{file}: expected are the arrays X and y, or {', '.join(SPARSE)} and y; found: {found}"
        )
    if "y" not in arrays:
        raise DataError(f"{file}: there are no labels: the array y is missing")
    labels = arrays["y"]
    for name, array, dimensions in (("X", X, 2), ("y", labels, 1)):
        if array.ndim != dimensions or array.dtype.kind not in "biuf":
            raise DataError(
                f"{file}: {name} has to be an array of {dimensions} dimension(s) and of real numbers, "
                f"not of shape {array.shape} and type {array.dtype}"
            )
    if len(X) != len(labels):
        raise DataError(f"{file}: X has {len(X):,} rows, but y has {len(labels):,} labels")
    check_shape(file, *X.shape)
    return checked_dataset(X, labels, lambda row: f"{file}, row {row} from 0")


def _load(file: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, BadZipFile, TypeError) as error:  # TypeError: a bare array, as in a .npy
        raise DataError(f"{file}: cannot be read as an .npz of plain arrays: {error}") from error


def _dense(file: Path, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    data, indices, indptr, shape = (arrays[name] for name in SPARSE)
    try:
        rows, columns = (int(size) for size in shape)
        check_shape(file, rows, columns)
        sparse = csr_array((data, indices, indptr), shape=(rows, columns))
        sparse.check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{file}: {', '.join(SPARSE)} do not form a matrix in compressed sparse row format: {error}"
        ) from error
    return sparse.toarray()
