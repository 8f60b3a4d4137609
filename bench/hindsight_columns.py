"""Columns that come from the labels of any other events, earlier and later ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from bench.rows import Rows
from forks.arrays import FloatArray, IntArray

MEAN_WEIGHT: Final = 5.0
"""Labels for which the mean of all counts in a mean."""
RANK: Final = 4
PENALTY: Final = 10.0
"""Ridge penalty of factors, in labels."""
SWEEPS: Final = 15
"""Turns of solving for users and for videos."""

_OF_USER: Final = 5
"""Columns of a user before the factors; a video has as many, and behind its factors that of its tags."""
WITHOUT_FACTORS: Final = [
    *range(_OF_USER),
    *range(_OF_USER + RANK, 2 * _OF_USER + RANK),
    2 * _OF_USER + 2 * RANK,
    2 * _OF_USER + 2 * RANK + 1,
]


class Hindsight:
    """Columns of events, from the labels of others.

    Parameters
    ----------
    rows
        The events.
    """

    def __init__(self, rows: Rows) -> None:
        self._users, self._videos = rows.numbers()
        self._positive = rows.positive.astype(np.float64)
        self._signals = rows.signals
        ids, first = np.unique(rows.videos, return_index=True)
        packed = rows.tags.packed
        self._tags = np.zeros((len(first), max(rows.tags.count, 1)))
        for number, video in enumerate(ids.tolist()):
            at = rows.tags.find(video)
            self._tags[number, packed[at + 1 : at + 1 + packed[at]]] = 1.0

    def without_factors(self, known: IntArray, of: IntArray) -> FloatArray:
        """Return `columns` but for the factors and what they come to."""
        return self.columns(known, of)[:, WITHOUT_FACTORS]

    def columns(self, known: IntArray, of: IntArray) -> FloatArray:
        """Return what the labels of some events say of others, shape (len(of), columns).

        Columns are, of user and of video, the number of labels, their mean, that of the signals, the mean
        square of what effects leave of them, the effect and the factors; the mean label of the video's tags;
        and the signals that effects, factors and both come to.

        Parameters
        ----------
        known, of : ndarray, int64
            Numbers of the events whose labels are known, and of those to describe.
        """
        u, v = self._users[known], self._videos[known]
        y, x = self._positive[known], self._signals[known]
        users, videos = len(np.unique(self._users)), len(self._tags)
        mean_y, mean_x = float(y.mean()), float(x.mean())
        by_video = np.bincount(v, minlength=videos), np.bincount(v, y, videos)
        tagged, labelled = self._tags.T @ by_video[0], self._tags.T @ by_video[1]
        rates = (labelled + MEAN_WEIGHT * mean_y) / (tagged + MEAN_WEIGHT)
        own_tags = np.maximum(self._tags.sum(axis=1), 1.0)
        rate = np.where(self._tags.any(axis=1), self._tags @ rates / own_tags, mean_y)
        b, q = _effects(u, v, x - mean_x, users, videos)
        rest = x - mean_x - b[u] - q[v]
        M, F = _factors(u, v, rest, users, videos)
        values = np.column_stack([y, x, rest**2])
        of_users = np.column_stack([_means(u, values, users), b, M])
        of_videos = np.column_stack([_means(v, values, videos), q, F, rate])
        user, video = self._users[of], self._videos[of]
        adjusted, latent = b[user] + q[video], np.sum(M[user] * F[video], axis=1)
        sums = np.column_stack([adjusted, latent, adjusted + latent])
        return np.column_stack([of_users[user], of_videos[video], sums])


def _means(entity: IntArray, values: FloatArray, count: int) -> FloatArray:
    """Return numbers of labels, and means of their values that lean on those of all, shape (count, 1 + k)."""
    labels = np.bincount(entity, minlength=count)
    means = [
        (np.bincount(entity, column, count) + MEAN_WEIGHT * column.mean()) / (labels + MEAN_WEIGHT)
        for column in values.T
    ]
    return np.column_stack([labels, *means])


def _effects(
    u: IntArray, v: IntArray, x: FloatArray, users: int, videos: int
) -> tuple[FloatArray, FloatArray]:
    """Return effects of users and videos on signals by least squares with a ridge penalty."""
    b: FloatArray = np.zeros(users)
    q: FloatArray = np.zeros(videos)
    for _ in range(SWEEPS):
        b = np.bincount(u, x - q[v], users) / (np.bincount(u, minlength=users) + MEAN_WEIGHT)
        q = np.bincount(v, x - b[u], videos) / (np.bincount(v, minlength=videos) + MEAN_WEIGHT)
    return b, q


def _factors(
    u: IntArray, v: IntArray, x: FloatArray, users: int, videos: int
) -> tuple[FloatArray, FloatArray]:
    """Return factors of users and of videos whose products come to signals, by alternating least squares.

    References
    ----------
    Koren, Bell and Volinsky, Matrix Factorization Techniques for Recommender Systems, Computer 42, 2009.
    """
    F: FloatArray = 0.1 * np.random.default_rng(0).standard_normal((videos, RANK))
    M: FloatArray = np.zeros((users, RANK))
    for _ in range(SWEEPS):
        M = _ridge(u, F[v], x, users)
        F = _ridge(v, M[u], x, videos)
    return M, F


def _ridge(entity: IntArray, A: FloatArray, x: FloatArray, count: int) -> FloatArray:
    """Return each entity's coefficients of the columns of A in x, shape (count, columns)."""
    d = A.shape[1]
    gram = np.empty((count, d, d))
    target = np.empty((count, d))
    penalty = PENALTY * float(np.mean(A**2)) + 1e-9
    for i in range(d):
        target[:, i] = np.bincount(entity, A[:, i] * x, count)
        for j in range(i + 1):
            gram[:, i, j] = gram[:, j, i] = np.bincount(entity, A[:, i] * A[:, j], count)
    found = np.linalg.solve(gram + penalty * np.eye(d), target[:, :, None])[:, :, 0]
    return np.asarray(found, dtype=np.float64)
