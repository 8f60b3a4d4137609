"""Incremental randomized sketches of the kernel matrix of the stored points (FORKS, appendix C)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forks.algorithm.kernels import gaussian_column, gaussian_matrix
from forks.algorithm.sjlt import Sjlt, SjltRows, add_rows, without
from forks.arrays import FloatArray, IntArray
from forks.jit import njit
from forks.linalg.products import product
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
        phi_pm = product(S.T, kernel[:, sample])
        phi_pp = product(product(S.T, kernel), S)
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
        modification = self._update(x, row, 1.0)
        self.points = np.concatenate([self.points, x[None]])
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
        modification = self._update(self.points[index], self._rows.row(index), -1.0)
        self.points, self.serials = without(self.points, index), without(self.serials, index)
        self._rows = self._rows.without(index)
        slots = np.flatnonzero(self.landmarks == index)
        self.landmarks = self.landmarks - (self.landmarks > index)
        if len(slots):
            self._replace_landmark(int(slots[0]), serial)
        return modification

    def _update(self, x: FloatArray, row: SjltRows, sign: float) -> Modification:
        """Add (``sign`` = 1) or remove (-1) the point ``x`` with this row of S_p; see `_modify`."""
        modification = _modify(
            self.phi_pm,
            self.phi_pp,
            self.points,
            self._rows.indices,
            self._rows.values,
            self.landmarks,
            self._gamma,
            x,
            row.indices[0],
            row.values[0],
            sign,
        )
        return Modification(*modification)

    def _replace_landmark(self, slot: int, evicted_serial: int) -> None:
        candidates = _free_points(self.landmarks, slot, len(self.points))
        draw = draws(self._sjlt.seed, Purpose.LANDMARK_SUCCESSOR, evicted_serial, 1)[0]
        self._sample(slot, int(candidates[int(draw % np.uint64(len(candidates)))]))

    def _sample(self, slot: int, index: int) -> None:
        """Make the stored point at ``index`` the landmark of column ``slot``."""
        self.landmarks[slot] = index
        column = gaussian_column(self.points[index], self.points, self._gamma)
        self.phi_pm[:, slot] = self._rows.project(column)


@njit(cache=True, allocates=True)
def _modify(  # noqa: PLR0917 -- compiled code is called by position
    phi_pm: FloatArray,
    phi_pp: FloatArray,
    points: FloatArray,
    row_indices: IntArray,
    row_values: FloatArray,
    landmarks: IntArray,
    gamma: float,
    x: FloatArray,
    indices: IntArray,
    values: FloatArray,
    sign: float,
) -> tuple[FloatArray, FloatArray]:
    """Add a point to both sketches, or remove it, in place; return the factors of the change of Phi_pp.

    With the point's row s of S_p and q = S_p' k, for k its kernel with the stored points and k(x, x) = 1,
    Phi_pp changes by s q' + q s' + s s' when the point is added (Eq. 12). When it is removed, q includes s,
    and the change is -s q' - q s' + s s'. Both are +-(s h' + h s') with h = q +- s / 2, and only rows and
    columns in which s has entries change.

    Parameters
    ----------
    phi_pm, phi_pp
        The sketches, see `KernelSketch`; changed.
    points : ndarray, shape (n, dimension), float64
        Stored points, including the point itself if it is removed.
    row_indices : ndarray, shape (n, d), int64
        Columns of the entries of their rows of S_p.
    row_values : ndarray, shape (n, d), float64
        Values of these entries.
    landmarks : ndarray, shape (s_m,), int64
        Indices of the landmarks.
    gamma
        Factor of the squared distance in the kernel.
    x : ndarray, shape (dimension,), float64
        The point.
    indices : ndarray, shape (d,), int64
        Columns of the entries of its row of S_p.
    values : ndarray, shape (d,), float64
        Values of these entries.
    sign
        1 to add the point, -1 to remove it.

    Returns
    -------
    tuple of ndarray, shape (s_p, 2), float64
        A and B of `Modification`.
    """
    kernel = gaussian_column(x, points, gamma)
    column = kernel[landmarks]
    h = np.zeros(phi_pp.shape[0])
    add_rows(row_indices, row_values, kernel, h)
    for b in range(indices.shape[0]):
        h[indices[b]] += sign * values[b] / 2.0
    for b in range(indices.shape[0]):
        index, value = indices[b], sign * values[b]
        for j in range(column.shape[0]):
            phi_pm[index, j] += value * column[j]
        for j in range(h.shape[0]):
            phi_pp[index, j] += value * h[j]
        for j in range(h.shape[0]):
            phi_pp[j, index] += value * h[j]
    s = np.zeros(phi_pp.shape[0])
    for b in range(indices.shape[0]):
        s[indices[b]] = values[b]
    A, B = np.empty((s.shape[0], 2)), np.empty((s.shape[0], 2))
    for i in range(s.shape[0]):
        A[i, 0], A[i, 1] = sign * s[i], sign * h[i]
        B[i, 0], B[i, 1] = h[i], s[i]
    return A, B


@njit(cache=True, allocates=True)
def _free_points(landmarks: IntArray, slot: int, count: int) -> IntArray:
    """Return which of ``count`` stored points are no landmarks, in order; that of ``slot`` does not count."""
    free = np.ones(count, dtype=np.bool_)
    for other in range(landmarks.shape[0]):
        if other != slot:
            free[landmarks[other]] = False
    return np.flatnonzero(free)
