"""The sparse Johnson-Lindenstrauss transform (FORKS, appendix B), one row for each stored point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forks.arrays import BoolArray, FloatArray, IntArray
from forks.jit import njit
from forks.randomness import Purpose, draw_rows


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
        raw = raw.reshape(len(serials), self.blocks, 2)
        width = self.size // self.blocks
        indices = (raw[:, :, 0] % np.uint64(width)).astype(np.int64) + width * np.arange(self.blocks)
        signs = np.where(raw[:, :, 1] >> np.uint64(63) == 0, 1.0, -1.0) / np.sqrt(self.blocks)
        return SjltRows(self.size, indices, signs)


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
        _add(self.indices, self.values, vector, out)
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

    def select(self, which: IntArray | BoolArray) -> SjltRows:
        """Return the rows with these indices, or those where ``which`` is true."""
        return SjltRows(self.size, self.indices[which], self.values[which])


@njit(cache=True)
def _add(indices: IntArray, values: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    for i in range(indices.shape[0]):
        for b in range(indices.shape[1]):
            out[indices[i, b]] += values[i, b] * vector[i]
