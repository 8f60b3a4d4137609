"""The merge of both inputs by time, compiled: which of the messages at hand come next, and in which order.

Numba's cache on disk knows a function by its own file only: nothing here depends on another one.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
# mypy: disable-error-code="untyped-decorator"
# (numba.njit has no types)
from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]

BEFORE_ALL = -1
"""Before any timestamp."""


@njit(cache=True)
def merge(
    shown: Integers,
    told: Integers,
    more_shown: bool,
    more_told: bool,
    window: int,
    quiet: int,
    most: int,
    labels_before: Integers,
    interactions_before: Integers,
) -> tuple[int, int, int]:
    """Merge by timestamp, labels first on ties, each input in its own order, until a message has to wait.

    Parameters
    ----------
    shown, told
        Times of interactions, shape (n,), and labels, shape (m,), in milliseconds.
    more_shown, more_told
        Whether more of them may come, which the other input then waits for.
    window
        How long an interaction's prediction waits for its label, in milliseconds.
    quiet
        The last time at which nothing is overdue, but for the predictions of these interactions.
    most
        Messages to merge.
    labels_before
        Shape (n,), written: labels merged before each interaction.
    interactions_before
        Shape (m,), written: interactions merged before each label.

    Returns
    -------
    tuple
        Interactions and labels merged, and the latest time among them, `BEFORE_ALL` if there are none.
    """
    n = m = 0
    time = BEFORE_ALL
    while n + m < most:
        if n < shown.shape[0] and m < told.shape[0]:
            label = told[m] <= shown[n]
        elif n < shown.shape[0] and not more_told:
            label = False
        elif m < told.shape[0] and not more_shown:
            label = True
        else:
            break
        head = told[m] if label else shown[n]
        if max(time, head) > quiet:
            break
        time = max(time, head)
        if label:
            interactions_before[m] = n
            m += 1
        else:
            labels_before[n] = m
            quiet = min(quiet, head + window)
            n += 1
    return n, m, time


def warm_up() -> None:
    """Compile, or fetch what was compiled before."""
    nothing = np.empty(0, dtype=np.int64)
    merge(nothing, nothing, True, True, 0, 0, 0, nothing, nothing)
