"""Philox4x64-10, a generator whose numbers are a function of key and counter (Salmon et al., 2011)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit

MULTIPLIERS = (np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157))
"""Odd constants by which two words of the counter are multiplied in each round."""

WEYL = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B))
"""What is added to the two words of the key after each round."""

ROUNDS = 10
WORDS = 4
"""Number of 64-bit integers that one counter gives."""


@njit(cache=True, allocates=True)
def philox(first: np.uint64, second: np.uint64, uses: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """Return ``count`` integers for each of ``uses``, (n, count).

    The key is (``first``, ``second``). The counter of row i is (1, 0, 0, ``uses[i]``) for the first four
    integers, (2, 0, 0, ``uses[i]``) for the next, and so on, which is the raw output of NumPy's ``Philox``
    with the counter (0, 0, 0, ``uses[i]``).

    Examples
    --------
    >>> from numpy.random import Philox
    >>> raw = philox(np.uint64(7), np.uint64(2), np.array([5], dtype=np.uint64), 6)
    >>> bool((raw[0] == Philox(key=[7, 2], counter=[0, 0, 0, 5]).random_raw(6)).all())
    True
    """
    rows = np.empty((len(uses), count), dtype=np.uint64)
    for i in range(len(uses)):
        for begin in range(0, count, WORDS):
            words = (np.uint64(begin // WORDS + 1), np.uint64(0), np.uint64(0), uses[i])
            key = (first, second)
            for _ in range(ROUNDS):
                high_0, low_0 = _product(MULTIPLIERS[0], words[0])
                high_1, low_1 = _product(MULTIPLIERS[1], words[2])
                words = (high_1 ^ words[1] ^ key[0], low_1, high_0 ^ words[3] ^ key[1], low_0)
                key = (key[0] + WEYL[0], key[1] + WEYL[1])
            for word in range(min(WORDS, count - begin)):
                rows[i, begin + word] = words[word]
    return rows


@njit(cache=True)
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the high and the low 64 bits of a b."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    low, cross = a_low * b_low, a_high * b_low
    middle = a_low * b_high + (low >> half) + (cross & mask)
    return a_high * b_high + (cross >> half) + (middle >> half), a * b
