"""Read examples in LIBSVM's text format, one per line: `LABEL INDEX:VALUE INDEX:VALUE ... # comment`.

Indices begin at 1 and ascend. Features that are not named are 0. The format is described at
https://www.csie.ntu.edu.tw/~cjlin/libsvm/.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.errors import DataError
from pipeline.tools.evaluate.dataset import Dataset, check_shape, checked_dataset

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
INDEX = re.compile(r"[0-9]+")


class SparseRow(NamedTuple):
    """The label of an example, and the indices (from 1) and values of its features."""

    label: float
    indices: list[int]
    values: list[float]


def read_libsvm(file: Path) -> Dataset:
    """Read the examples of a file; empty lines and comments are skipped.

    Parameters
    ----------
    file
        Text file.

    Returns
    -------
    Dataset
        Checked rows and labels.

    Raises
    ------
    DataError
        If the file or a line cannot be used; the error names it.
    """
    rows: list[SparseRow] = []
    numbers: list[int] = []
    try:
        with file.open(encoding="utf-8") as text:
            for number, written in enumerate(text, start=1):
                content = written.partition("#")[0].split()
                if content:
                    rows.append(_parse(content, f"{file}, line {number}"))
                    numbers.append(number)
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: cannot be read as LIBSVM's text format: {error}") from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from error
    columns = max((row.indices[-1] for row in rows if row.indices), default=0)
    check_shape(file, len(rows), columns)
    X = np.zeros((len(rows), columns))
    for number, row in enumerate(rows):
        X[number, np.array(row.indices, dtype=np.int64) - 1] = row.values
    labels = np.array([row.label for row in rows])
    return checked_dataset(X, labels, lambda row: f"{file}, line {numbers[row]}")


def _parse(content: list[str], location: str) -> SparseRow:
    label, *features = content
    if not NUMBER.fullmatch(label):
        raise DataError(f"{location}: the label {label!r} is not a number")
    indices: list[int] = []
    values: list[float] = []
    for feature in features:
        index, colon, value = feature.partition(":")
        if not (colon and INDEX.fullmatch(index) and NUMBER.fullmatch(value)):
            raise DataError(f"{location}: {feature!r} is not INDEX:VALUE")
        indices.append(int(index))
        values.append(float(value))
        before = indices[-2] if len(indices) > 1 else 0
        if indices[-1] <= before:
            raise DataError(f"{location}: index {index} after {before}; indices begin at 1 and ascend")
    return SparseRow(float(label), indices, values)
