"""Means of what the effects leave of a user's newest signals: a mood that effects are too slow for."""

# mypy: disable-error-code="untyped-decorator"
# (numba.njit has no types)
from __future__ import annotations

import numpy as np
from numba import njit

from forks.arrays import FloatArray, IntArray


@njit(cache=True, error_model="numpy")
def by_labels(order: IntArray, users: IntArray, rest: FloatArray, half_life: float) -> FloatArray:
    """Return means in which a label counts half after so many further labels of its user, shape (n, 1).

    Parameters
    ----------
    order : ndarray, shape (2 n,), int64
        Steps: i for event i, n + i for its label.
    users : ndarray, shape (n,), int64
        Numbers of the events' users, from 0.
    rest : ndarray, shape (n,), float64
        What the effects, as they were at each event, leave of its signal.
    half_life
        Labels.

    Returns
    -------
    ndarray, shape (n, 1), float64
        0 without any label.
    """
    n, keep = len(users), 0.5 ** (1.0 / half_life)
    means = np.zeros(users.max() + 1)
    found = np.zeros((n, 1))
    for step in order:
        event = step % n
        user = users[event]
        if step < n:
            found[event, 0] = means[user]
        else:
            means[user] = keep * means[user] + (1.0 - keep) * rest[event]
    return found


@njit(cache=True, error_model="numpy")
def by_time(
    order: IntArray, users: IntArray, times: IntArray, rest: FloatArray, half_life: float
) -> FloatArray:
    """Return means in which a label counts half after so much time, and 0 counts as one label, shape (n, 1).

    From a label of the user to the next, after a time t, h / (h + t) is kept. A power of 2 would do as well,
    but its last bits differ between machines.

    Parameters
    ----------
    order : ndarray, shape (2 n,), int64
        Steps: i for event i, n + i for its label.
    users : ndarray, shape (n,), int64
        Numbers of the events' users, from 0.
    times : ndarray, shape (n,), int64
        Times of the events in milliseconds; that of a label is that of its event.
    rest : ndarray, shape (n,), float64
        What the effects, as they were at each event, leave of its signal.
    half_life
        Milliseconds.

    Returns
    -------
    ndarray, shape (n, 1), float64
        0 without any label.
    """
    n = len(users)
    totals, weights = np.zeros(users.max() + 1), np.zeros(users.max() + 1)
    newest = np.zeros(users.max() + 1, dtype=np.int64)
    found = np.zeros((n, 1))
    for step in order:
        event = step % n
        user, time = users[event], times[event]
        gone = max(time - newest[user], 0)  # labels may come in another order than their events
        keep = half_life / (half_life + gone)
        if step < n:
            found[event, 0] = keep * totals[user] / (keep * weights[user] + 1.0)
        else:
            totals[user] = keep * totals[user] + rest[event]
            weights[user] = keep * weights[user] + 1.0
            newest[user] = max(time, newest[user])
    return found
