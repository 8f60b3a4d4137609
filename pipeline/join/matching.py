"""Match the labels of a batch with its interactions by the digests of their events, compiled."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.join.digests import Digests

Integers: TypeAlias = NDArray[np.int64]

NONE = -1
"""The number of the first repeated one, where all differ."""


def match_events(events: Digests, labelled: Digests) -> Integers | int:
    """Return the row of each label's interaction, and the number of interactions where there is none.

    Parameters
    ----------
    events
        Digests of the interactions' events, shape (n, 2).
    labelled
        Digests of the labels' events, shape (m, 2).

    Returns
    -------
    ndarray or int
        Shape (m,); if two interactions, or else two labels, have the same event, the number of the second of
        them, where labels are counted behind all interactions.

    Examples
    --------
    >>> from pipeline.join.digests import Digester
    >>> digests = Digester(bytes(16)).digests(["a", "b", "c"])
    >>> match_events(digests[:2], digests[1:]).tolist()
    [1, 2]
    >>> match_events(digests[[0, 0]], digests[1:]), match_events(digests[:2], digests[[2, 2]])
    (1, 3)
    """
    rows = np.empty(len(labelled), dtype=np.int64)
    size = 1 << max(2 * (len(events) + len(labelled)) - 1, 1).bit_length()
    slots, taken = np.full(size, NONE, dtype=np.int32), np.zeros(size, dtype=np.bool_)
    repeated = int(_match(events, labelled, rows, slots, taken))
    return rows if repeated == NONE else repeated


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    digests = np.zeros((1, 2), dtype=np.uint64)
    match_events(digests, digests)


@njit(cache=True, nogil=True)
def _match(
    events: Digests, labelled: Digests, rows: Integers, slots: NDArray[np.int32], taken: NDArray[np.bool_]
) -> int:
    """Write the rows; return the number of the first repeated one, `NONE` if all differ.

    Interactions and labels stand in one table with open addressing, ``slots``. A label without an interaction
    is in it behind them; one with an interaction is marked at its slot, in ``taken``.
    """
    n, m = len(events), len(labelled)
    mask = np.uint64(len(slots) - 1)
    for row in range(n):
        at = events[row, 0] & mask
        while slots[at] >= 0:
            known = slots[at]
            if events[known, 0] == events[row, 0] and events[known, 1] == events[row, 1]:
                return row
            at = (at + np.uint64(1)) & mask
        slots[at] = row
    for number in range(m):
        first, second = labelled[number, 0], labelled[number, 1]
        at = first & mask
        rows[number] = n
        while slots[at] >= 0:
            known = slots[at]
            if known < n:
                same = events[known, 0] == first and events[known, 1] == second
            else:
                same = labelled[known - n, 0] == first and labelled[known - n, 1] == second
            if same:
                if taken[at]:
                    return n + number
                rows[number] = known
                break
            at = (at + np.uint64(1)) & mask
        else:
            slots[at] = n + number
        taken[at] = True
    return NONE
