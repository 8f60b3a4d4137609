"""Incremental randomized sketches of the kernel matrix of the stored points (FORKS, appendix C)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forks.algorithm.kernels import gaussian_matrix
from forks.algorithm.sjlt import Sjlt, SjltRows
from forks.arrays import FloatArray, IntArray
from forks.jit import njit
from forks.randomness import Purpose, draws


class Modification(NamedTuple):
    """A change of Phi_pp by A B', for `forks.algorithm.tisvd.tisvd`; A and B are (s_p, 2)."""

    A: FloatArray
    B: FloatArray


class KernelSketch:
    """The sketches Phi_pm = S_p' K S_m and Phi_pp = S_p' K S_p (Eq. 4), exact after insertions and evictions.

    S_p is a sparse Johnson-Lindenstrauss transform with a row for each stored point. S_m samples the columns
    of K that belong to the landmarks, which are always a uniform sample of the stored points.

    Parameters
    ----------
    points : ndarray, shape (n, dimension), float64
        Stored points, one per row.
    serials : ndarray, shape (n,), int64
        Serial numbers of the stored points; none is used twice.
    landmarks : ndarray, shape (s_m,), int64
        Indices of the landmarks in ``points``.
    phi_pm : ndarray, shape (s_p, s_m), float64
        Sketch S_p' K S_m.
    phi_pp : ndarray, shape (s_p, s_p), float64
        Sketch S_p' K S_p.
    sjlt
        Transform that the rows of S_p come from.
    gamma
        Factor of the squared distance in the Gaussian kernel, see `forks.algorithm.kernels.precision`.
    """

    def __init__(
        self,
        points: FloatArray,
        serials: IntArray,
        landmarks: IntArray,
        phi_pm: FloatArray,
        phi_pp: FloatArray,
        *,
        sjlt: Sjlt,
        gamma: float,
    ) -> None:
        self.points = points
        self.serials = serials
        self.landmarks = landmarks
        self.phi_pm = phi_pm
        self.phi_pp = phi_pp
        self._sjlt = sjlt
        self._gamma = gamma
        self._rows = sjlt.rows(serials)

    @classmethod
    def of(cls, points: FloatArray, landmarks: int, *, sjlt: Sjlt, gamma: float) -> KernelSketch:
        """Return the sketch of the kernel matrix of ``points`` (n, dimension), with this many landmarks."""
        n = len(points)
        serials = np.arange(n, dtype=np.int64)
        order = np.argsort(draws(sjlt.seed, Purpose.FIRST_LANDMARKS, 0, n), kind="stable")
        sample = np.ascontiguousarray(order[:landmarks], dtype=np.int64)
        kernel = gaussian_matrix(points, points, gamma)
        S = sjlt.rows(serials).dense()
        phi_pm = np.ascontiguousarray(S.T @ kernel[:, sample])
        phi_pp = np.ascontiguousarray(S.T @ kernel @ S)
        return cls(points, serials, sample, phi_pm, phi_pp, sjlt=sjlt, gamma=gamma)

    @property
    def landmark_points(self) -> FloatArray:
        """Landmarks, one per row, (s_m, dimension)."""
        return self.points[self.landmarks]

    def insert(self, x: FloatArray) -> Modification:
        """Store ``x``, (dimension,), and return the change of Phi_pp (Eq. 11, 12).

        The new point replaces a random landmark with the probability that keeps the landmarks a uniform
        sample.
        """
        serial = int(self.serials[-1]) + 1
        row = self._sjlt.rows(np.array([serial]))
        modification = self._update(row, self._column(x), 1.0)
        self.points = np.vstack([self.points, x])
        self.serials = np.append(self.serials, serial)
        self._rows = self._rows.append(row)
        draw = draws(self._sjlt.seed, Purpose.LANDMARK_ENTRY, serial, 1)[0]
        slot = int(draw % np.uint64(len(self.points)))
        if slot < len(self.landmarks):
            self._sample(slot, len(self.points) - 1)
        return modification

    def evict(self, index: int) -> Modification:
        """Remove the stored point at ``index`` and return the change of Phi_pp.

        If the point was a landmark, another stored point, drawn at random, replaces it.

        Raises
        ------
        ValueError
            Every stored point is a landmark, so that none could replace the evicted one.
        """
        if len(self.points) <= len(self.landmarks):
            raise ValueError("evict: all stored points are landmarks; store more points than landmarks")
        serial = int(self.serials[index])
        row = self._rows.select(np.array([index]))
        modification = self._update(row, self._column(self.points[index]), -1.0)
        kept = np.arange(len(self.points)) != index
        self.points, self.serials = self.points[kept], self.serials[kept]
        self._rows = self._rows.select(kept)
        slots = np.flatnonzero(self.landmarks == index)
        self.landmarks = self.landmarks - (self.landmarks > index)
        if len(slots):
            self._replace_landmark(int(slots[0]), serial)
        return modification

    def _update(self, row: SjltRows, column: FloatArray, sign: float) -> Modification:
        """Add or remove a point, with k(x, x) = 1, and return the change of Phi_pp.

        With the point's row s of S_p and q = S_p' k, for k its kernel with the stored points, Phi_pp changes
        by s q' + q s' + s s' when the point is added (Eq. 12). When it is removed, q includes s, and the
        change is -s q' - q s' + s s'. Both are +-(s h' + h s') with h = q +- s / 2, and only rows and columns
        in which s has entries change.

        Parameters
        ----------
        row
            Row of S_p of the point.
        column : ndarray, shape (n,), float64
            Kernel of the point with the stored points, including itself if it is removed.
        sign
            1 to add the point, -1 to remove it.
        """
        h = self._rows.project(column)
        indices, values = row.indices[0], sign * row.values[0]
        _modify(self.phi_pm, self.phi_pp, indices, values, column[self.landmarks], h)
        s = row.dense()[0]
        return Modification(sign * np.column_stack([s, h]), np.column_stack([h, s]))

    def _replace_landmark(self, slot: int, evicted_serial: int) -> None:
        free = np.ones(len(self.points), dtype=np.bool_)
        free[np.delete(self.landmarks, slot)] = False
        candidates = np.flatnonzero(free)
        draw = draws(self._sjlt.seed, Purpose.LANDMARK_SUCCESSOR, evicted_serial, 1)[0]
        self._sample(slot, int(candidates[int(draw % np.uint64(len(candidates)))]))

    def _sample(self, slot: int, index: int) -> None:
        """Make the stored point at ``index`` the landmark of column ``slot``."""
        self.landmarks[slot] = index
        self.phi_pm[:, slot] = self._rows.project(self._column(self.points[index]))

    def _column(self, x: FloatArray) -> FloatArray:
        """Return k(x, .) at the stored points, (n,)."""
        column: FloatArray = gaussian_matrix(x[None, :], self.points, self._gamma)[0]
        return column


@njit(cache=True)
def _modify(  # noqa: PLR0917 -- compiled code is called by position
    phi_pm: FloatArray,
    phi_pp: FloatArray,
    indices: IntArray,
    values: FloatArray,
    column: FloatArray,
    h: FloatArray,
) -> None:
    """Change both sketches in place, and q to h, for a row of S_p with these entries.

    ``column`` is the kernel of the point with the landmarks.
    """
    for b in range(indices.shape[0]):
        h[indices[b]] += values[b] / 2.0
    for b in range(indices.shape[0]):
        index, value = indices[b], values[b]
        phi_pm[index] += value * column
        phi_pp[index] += value * h
        phi_pp[:, index] += value * h
