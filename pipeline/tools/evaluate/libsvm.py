"""Examples in LIBSVM's text format: a line for each, `LABEL INDEX:VALUE INDEX:VALUE ... # comment`.

Indices begin at 1 and ascend; features that are not named are 0. See
https://www.csie.ntu.edu.tw/~cjlin/libsvm/.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.errors import DataError
from pipeline.tools.evaluate.examples import Examples, check_shape, examples

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
INDEX = re.compile(r"[0-9]+")


class Line(NamedTuple):
    """A line's label and its features' indices, from 1, and values."""

    label: float
    indices: list[int]
    values: list[float]


def read_libsvm(file: Path) -> Examples:
    """Read the examples of a file; empty lines and lines of comment only are none.

    Raises
    ------
    DataError
        Naming the line.
    """
    lines: list[Line] = []
    numbers: list[int] = []
    try:
        with file.open(encoding="utf-8") as text:
            for number, written in enumerate(text, start=1):
                content = written.partition("#")[0].split()
                if content:
                    lines.append(_parse(content, f"{file}, line {number}"))
                    numbers.append(number)
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not a text file, so not in LIBSVM's format: {error}") from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from error
    columns = max((line.indices[-1] for line in lines if line.indices), default=0)
    check_shape(file, len(lines), columns)
    X = np.zeros((len(lines), columns))
    for row, line in enumerate(lines):
        X[row, np.array(line.indices, dtype=np.int64) - 1] = line.values
    labels = np.array([line.label for line in lines])
    return examples(X, labels, lambda row: f"{file}, line {numbers[row]}")


def _parse(content: list[str], location: str) -> Line:
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
    return Line(float(label), indices, values)
