"""Read examples in LIBSVM's text format, one per line: `LABEL INDEX:VALUE INDEX:VALUE ... # comment`.

Indices begin at 1 and ascend. Features that are not named are 0. The format is described at
https://www.csie.ntu.edu.tw/~cjlin/libsvm/.

scikit-learn's `load_svmlight_file` is not used: it accepts an index of 0, NaN, `1_0` and `qid:`, names no
line, and reads a line of any length. Polars would take five times the size of the file before it checks one.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pipeline.errors import DataError
from pipeline.input_files import bounded_lines, refuse_large_table
from pipeline.tools.evaluate.dataset import Dataset, check_shape, checked_dataset
from pipeline.truncate import shown

NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
INDEX = re.compile(r"0*([0-9]{1,18})")
"""Larger indices do not fit into 64 bits."""


class SparseRows:
    """The examples so far: labels, and indices (from 1) and values of their features, one after the other.

    Parameters
    ----------
    file
        File that they are read from, for errors.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.lines = array("q")
        """The line of each example."""
        self.labels = array("d")
        self._ends = array("q", [0])
        self._indices = array("q")
        self._values = array("d")
        self._columns = 0

    def append(self, content: list[str], line: int) -> None:
        """Parse and append an example, the words of a line."""
        location = f"{self._file}, line {line}"
        label, *features = content
        if not NUMBER.fullmatch(label):
            raise DataError(f"{location}: the label {shown(label)} is not a number")
        before = 0
        for feature in features:
            text, colon, value = feature.partition(":")
            index = INDEX.fullmatch(text)
            if not (colon and index and NUMBER.fullmatch(value)):
                raise DataError(f"{location}: {shown(feature)} is not INDEX:VALUE")
            number = int(index[1])
            if number <= before:
                raise DataError(f"{location}: index {number} after {before}; indices begin at 1 and ascend")
            self._indices.append(number)
            self._values.append(float(value))
            before = number
        self._columns = max(self._columns, before)
        self.lines.append(line)
        self.labels.append(float(label))
        self._ends.append(len(self._indices))
        refuse_large_table(location, len(self.lines), max(self._columns, 1))

    def dense(self) -> NDArray[Any]:
        """Return all features as a table, shape (n, d)."""
        check_shape(self._file, len(self.lines), self._columns)
        places = np.frombuffer(self._indices, np.int64) - 1, np.frombuffer(self._ends, np.int64)
        shape = len(self.lines), self._columns
        return csr_array((np.frombuffer(self._values), *places), shape=shape).toarray()


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
    rows = SparseRows(file)
    try:
        with file.open(encoding="utf-8") as text:
            for number, written in enumerate(bounded_lines(file, text), start=1):
                content = written.partition("#")[0].split()
                if content:
                    rows.append(content, number)
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: cannot be read as LIBSVM's text format: {error}") from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from error
    labels = np.array(rows.labels)
    return checked_dataset(rows.dense(), labels, lambda row: f"{file}, line {rows.lines[row]}")
