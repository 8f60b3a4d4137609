"""Random numbers as a function of seed, purpose and number, so that there is no generator state to save."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Numbers are drawn in blocks, because creating a Philox generator costs as much as thousands of its numbers.
BLOCK = 1024


class Purpose(IntEnum):
    """Purpose of random draws; draws for different purposes are independent."""

    SJLT_ROW = 1
    FIRST_LANDMARKS = 2
    LANDMARK_ENTRY = 3
    LANDMARK_SUCCESSOR = 4
    LABEL_QUERY = 5
    EVICTION = 6
    DICTIONARY = 7
    HESSIAN = 8


def draws(seed: int, purpose: Purpose, number: int, count: int) -> NDArray[np.uint64]:
    """Return ``count`` uniform 64-bit integers for the ``number``-th use with ``purpose``.

    They are the raw output of Philox with seed and purpose as its key and a counter that starts at
    ``number``. NumPy's compatibility policy fixes this output for all versions, but not the distributions
    made from it.

    Examples
    --------
    >>> bool((draws(1, Purpose.SJLT_ROW, 5, 3) == draws(1, Purpose.SJLT_ROW, 5, 3)).all())
    True
    """
    key = np.array([seed, purpose], dtype=np.uint64)
    counter = np.array([0, 0, 0, number], dtype=np.uint64)
    raw: NDArray[np.uint64] = np.random.Philox(key=key, counter=counter).random_raw(count)
    return raw


def fractions(seed: int, purpose: Purpose, number: int, count: int) -> NDArray[np.float64]:
    """Return ``count`` uniform numbers in [0, 1), the first 53 bits of each of the `draws`.

    Examples
    --------
    >>> bool(abs(fractions(1, Purpose.LABEL_QUERY, 0, 10_000).mean() - 0.5) < 0.01)
    True
    """
    bits = draws(seed, purpose, number, count) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def uniform(seed: int, purpose: Purpose, number: int) -> float:
    """Return the ``number``-th number with ``purpose``, uniform in [0, 1).

    For consecutive numbers this costs a hundredth of `fractions`, because blocks of numbers are cached. The
    numbers differ from those of `fractions`, so a purpose should use only one of the two.

    Examples
    --------
    >>> uniform(1, Purpose.DICTIONARY, 5000) == uniform(1, Purpose.DICTIONARY, 5000) < 1.0
    True
    """
    block, index = divmod(number, BLOCK)
    return _block(seed, purpose, block)[index]


@lru_cache(maxsize=64)
def _block(seed: int, purpose: Purpose, number: int) -> list[float]:
    numbers: list[float] = fractions(seed, purpose, number, BLOCK).tolist()
    return numbers
