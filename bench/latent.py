"""A low-rank part of the signal beside the adjusted effects, by an extended Kalman filter."""

# ruff: noqa: PLR0917 -- compiled code is called by position
# mypy: disable-error-code="untyped-decorator"
# (numba.njit has no types)
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from forks.arrays import FloatArray, IntArray


class Prior(NamedTuple):
    """Where factors start.

    Attributes
    ----------
    dimensions
        Latent dimensions.
    spread
        Standard deviation of the factors that items start with.
    of_user, of_item
        Prior variance of each factor of a user, which start at 0, and of an item.
    """

    dimensions: int = 2
    spread: float = 0.5
    of_user: float = 0.05
    of_item: float = 0.05


def expected(
    users: IntArray, items: IntArray, kinds: IntArray, rest: FloatArray, noise: FloatArray, prior: Prior
) -> FloatArray:
    """Return what the factors of user and item say of a signal, before it is learned, and how sure.

    With factors m of the user and f of the item, what the effects leave of a signal is m'f and noise. Each
    label updates the mean and covariance of m given f, and then those of f given m, as an extended Kalman
    filter does whose state has no covariance between users and items.

    Parameters
    ----------
    users, items : ndarray, shape (n,), int64
        Numbers of the events' users and items.
    kinds : ndarray, shape (n,), int64
        A number of what the item is like: items of one kind start with the same factors.
    rest : ndarray, shape (n,), float64
        What the effects leave of the events' signals.
    noise : ndarray, shape (n,), float64
        Variance of it.
    prior
        Where factors start.

    Returns
    -------
    ndarray, shape (n, 2), float64
        The expected signal, and its variance.

    References
    ----------
    Särkkä, Bayesian Filtering and Smoothing, Cambridge University Press 2013, section 5.2.
    """
    of_kinds = np.random.default_rng(0).standard_normal((int(kinds.max()) + 1, prior.dimensions))
    start = np.empty((int(items.max()) + 1, prior.dimensions))
    start[items] = prior.spread * of_kinds[kinds]
    found: FloatArray = _run(users, items, rest, noise, start, prior.of_user, prior.of_item)
    return found


@njit(cache=True, error_model="numpy")
def _run(users, items, rest, noise, start, of_user, of_item):  # type: ignore[no-untyped-def]
    n, d = len(users), start.shape[1]
    count = users.max() + 1
    M, F = np.zeros((count, d)), start.copy()
    P, Q = np.zeros((count, d, d)), np.zeros((len(start), d, d))
    for j in range(d):
        P[:, j, j] = of_user
        Q[:, j, j] = of_item
    gain = np.empty(d)
    out = np.empty((n, 2))
    for event in range(n):
        u, v = users[event], items[event]
        mean, of_m, of_f, both = 0.0, 0.0, 0.0, 0.0
        for i in range(d):
            mean += M[u, i] * F[v, i]
            for j in range(d):
                of_m += F[v, i] * P[u, i, j] * F[v, j]
                of_f += M[u, i] * Q[v, i, j] * M[u, j]
                both += P[u, i, j] * Q[v, i, j]
        out[event] = mean, of_m + of_f + both
        total = noise[event] + of_f + both + of_m
        _update(M[u], P[u], F[v], rest[event] - mean, total, gain)
        mean, of_m, of_f, both = 0.0, 0.0, 0.0, 0.0
        for i in range(d):
            mean += M[u, i] * F[v, i]
            for j in range(d):
                of_m += F[v, i] * P[u, i, j] * F[v, j]
                of_f += M[u, i] * Q[v, i, j] * M[u, j]
                both += P[u, i, j] * Q[v, i, j]
        _update(F[v], Q[v], M[u], rest[event] - mean, noise[event] + of_m + both + of_f, gain)
    return out


@njit(cache=True, error_model="numpy", inline="always")
def _update(x, covariance, h, innovation, variance, gain):  # type: ignore[no-untyped-def]
    """Update a state and its covariance by an observation h'x of which the variance is expected."""
    d = len(x)
    for i in range(d):
        gain[i] = 0.0
        for j in range(d):
            gain[i] += covariance[i, j] * h[j]
    for i in range(d):
        x[i] += gain[i] * innovation / variance
        for j in range(d):
            covariance[i, j] -= gain[i] * gain[j] / variance
