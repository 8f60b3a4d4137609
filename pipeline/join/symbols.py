"""Number the events of merged messages by the digests of their ids, compiled."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.join.digests import Digests

Integers: TypeAlias = NDArray[np.int64]


class Symbols(NamedTuple):
    """The events of messages, each with a number: its symbol."""

    interactions: Integers
    """The symbol of each interaction's event, shape (n,)."""
    labels: Integers
    """That of each label's event, shape (m,)."""
    digests: Digests
    """The digest of each symbol's event, shape (symbols, 2)."""


def number_events(interactions: Digests, labels: Digests) -> Symbols:
    """Return a number for each event, in the order in which they come first, interactions before labels.

    Parameters
    ----------
    interactions
        Digests of the interactions' events, shape (n, 2).
    labels
        Digests of the labels' events, shape (m, 2).

    Examples
    --------
    >>> from pipeline.join.digests import Digester
    >>> digests = Digester(bytes(16)).digests(["a", "b", "c"])
    >>> found = number_events(digests[[0, 1, 0]], digests[[2, 1]])
    >>> found.interactions.tolist(), found.labels.tolist(), len(found.digests)
    ([0, 1, 0], [2, 1], 3)
    """
    digests = np.concatenate([interactions, labels])
    symbols, firsts = np.empty((2, len(digests)), dtype=np.int64)
    size = 1 << max(2 * len(digests) - 1, 1).bit_length()
    count = int(_number(digests, np.full(size, -1, dtype=np.int32), symbols, firsts))
    n = len(interactions)
    return Symbols(symbols[:n], symbols[n:], digests[firsts[:count]])


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    digests = np.zeros((1, 2), dtype=np.uint64)
    number_events(digests, digests)


@njit(cache=True, nogil=True)
def _number(digests: Digests, slots: NDArray[np.int32], symbols: Integers, firsts: Integers) -> int:
    """Write the symbol of each event, and the first event of each symbol; return the number of symbols.

    The table has open addressing: a slot has a symbol, or -1.
    """
    count = 0
    mask = np.uint64(len(slots) - 1)
    for row in range(len(digests)):
        at = digests[row, 0] & mask
        while slots[at] >= 0:
            first = firsts[slots[at]]
            if digests[first, 0] == digests[row, 0] and digests[first, 1] == digests[row, 1]:
                break
            at = (at + np.uint64(1)) & mask
        else:
            slots[at] = count
            firsts[count] = row
            count += 1
        symbols[row] = slots[at]
    return count
