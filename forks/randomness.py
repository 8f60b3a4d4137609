"""Random numbers as a function of seed, purpose and number, so that there is no generator state to save."""

from __future__ import annotations

import math
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from forks.compiled.logarithm import logarithm
from forks.compiled.philox import philox
from forks.compiled.trigonometry import cosine_and_sine

# Numbers are drawn in blocks, because a call costs as much as a hundred of its numbers.
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
    FREQUENCIES = 9
    PHASES = 10


def draws(seed: int, purpose: Purpose, number: int, count: int) -> NDArray[np.uint64]:
    """Return ``count`` uniform 64-bit integers for the ``number``-th use with ``purpose``.

    They are the output of Philox with seed and purpose as its key and a counter that starts at ``number``,
    as NumPy's ``Philox.random_raw`` gives it.

    Examples
    --------
    >>> bool((draws(1, Purpose.SJLT_ROW, 5, 3) == draws(1, Purpose.SJLT_ROW, 5, 3)).all())
    True
    """
    row: NDArray[np.uint64] = draw_rows(seed, purpose, np.array([number]), count)[0]
    return row


def draw_rows(seed: int, purpose: Purpose, numbers: NDArray[np.int64], count: int) -> NDArray[np.uint64]:
    """Return the `draws` for each of ``numbers``, (n, count).

    Examples
    --------
    >>> rows = draw_rows(1, Purpose.SJLT_ROW, np.array([5, 6]), 3)
    >>> bool((rows[1] == draws(1, Purpose.SJLT_ROW, 6, 3)).all())
    True
    """
    return philox(np.uint64(seed), np.uint64(purpose), numbers.astype(np.uint64), count)


def fractions(seed: int, purpose: Purpose, number: int, count: int) -> NDArray[np.float64]:
    """Return ``count`` uniform numbers in [0, 1), the first 53 bits of each of the `draws`.

    Examples
    --------
    >>> bool(abs(fractions(1, Purpose.LABEL_QUERY, 0, 10_000).mean() - 0.5) < 0.01)
    True
    """
    bits = draws(seed, purpose, number, count) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def normals(seed: int, purpose: Purpose, number: int, count: int) -> NDArray[np.float64]:
    """Return ``count`` normal numbers with mean 0 and variance 1, made of as many `fractions` or one more.

    References
    ----------
    Box and Muller, A Note on the Generation of Random Normal Deviates, 1958.

    Examples
    --------
    >>> numbers = normals(1, Purpose.FREQUENCIES, 0, 10_001)
    >>> bool(abs(numbers.mean()) < 0.03), bool(abs(numbers.std() - 1.0) < 0.03)
    (True, True)
    """
    pairs = fractions(seed, purpose, number, count + count % 2).reshape(-1, 2)
    radii = np.sqrt([-2.0 * logarithm(1.0 - first) for first in pairs[:, 0].tolist()])
    waves = np.array([cosine_and_sine(2.0 * math.pi * second) for second in pairs[:, 1].tolist()])
    numbers: NDArray[np.float64] = (radii[:, None] * waves.reshape(-1, 2)).reshape(-1)[:count]
    return numbers


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
