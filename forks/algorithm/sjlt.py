"""The sparse Johnson-Lindenstrauss transform (FORKS, appendix B), one row for each stored point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forks.arrays import FloatArray, IntArray
from forks.jit import njit
from forks.randomness import Purpose, draw_rows

Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True, slots=True)
class Sjlt:
    """The transform S = [S_1, ..., S_d]: in each block a row has one entry, +-1/sqrt(d), in a random column.

    A row depends only on the seed and the serial number of its point, so it can be drawn again and need not
    be saved.

    Attributes
    ----------
    size
        Number of columns s_p, a multiple of ``blocks``.
    blocks
        Number of blocks d, which is the number of entries in a row.
    seed
        Seed of the rows.
    """

    size: int
    blocks: int
    seed: int

    def rows(self, serials: IntArray) -> SjltRows:
        """Return the rows of the points with these serial numbers, (n,)."""
        raw = draw_rows(self.seed, Purpose.SJLT_ROW, serials, 2 * self.blocks)
        return SjltRows(self.size, *_entries(raw, self.size // self.blocks))


@dataclass(frozen=True, slots=True)
class SjltRows:
    """Rows of the transform in sparse form.

    Attributes
    ----------
    size
        Number of columns s_p.
    indices : ndarray, shape (n, d), int64
        Columns of the entries.
    values : ndarray, shape (n, d), float64
        Values of the entries.
    """

    size: int
    indices: IntArray
    values: FloatArray

    def project(self, vector: FloatArray) -> FloatArray:
        """Return S' v, (s_p,), for a vector v, (n,)."""
        out = np.zeros(self.size)
        add_rows(self.indices, self.values, vector, out)
        return out

    def dense(self) -> FloatArray:
        """Return the rows as an (n, s_p) matrix."""
        matrix = np.zeros((len(self.indices), self.size))
        matrix[np.arange(len(matrix))[:, None], self.indices] = self.values
        return matrix

    def append(self, row: SjltRows) -> SjltRows:
        """Return the rows with those of ``row`` below them."""
        indices = np.concatenate([self.indices, row.indices])
        return SjltRows(self.size, indices, np.concatenate([self.values, row.values]))

    def row(self, index: int) -> SjltRows:
        """Return one row."""
        return SjltRows(self.size, self.indices[index : index + 1], self.values[index : index + 1])

    def without(self, index: int) -> SjltRows:
        """Return the rows but for one."""
        return SjltRows(self.size, without(self.indices, index), without(self.values, index))


def without(rows: NDArray[Number], index: int) -> NDArray[Number]:
    """Return an array, (n, ...), without its row ``index``.

    Examples
    --------
    >>> without(np.array([5, 6, 7]), 1).tolist()
    [5, 7]
    """
    return np.concatenate([rows[:index], rows[index + 1 :]])


@njit(cache=True, allocates=True)
def _entries(raw: NDArray[np.uint64], width: int) -> tuple[IntArray, FloatArray]:
    """Return columns and values of the entries of rows, (n, d) each, from random integers (n, 2 d)."""
    blocks = raw.shape[1] // 2
    indices, values = np.empty((raw.shape[0], blocks), dtype=np.int64), np.empty((raw.shape[0], blocks))
    for i in range(raw.shape[0]):
        for b in range(blocks):
            indices[i, b] = np.int64(raw[i, 2 * b] % np.uint64(width)) + width * b
            sign = 1.0 if raw[i, 2 * b + 1] >> np.uint64(63) == 0 else -1.0
            values[i, b] = sign / math.sqrt(blocks)
    return indices, values


@njit(cache=True)
def add_rows(indices: IntArray, values: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Add S' v, (s_p,), to ``out`` for a vector v, (n,), and rows with these entries, (n, d)."""
    for i in range(indices.shape[0]):
        for b in range(indices.shape[1]):
            out[indices[i, b]] += values[i, b] * vector[i]
