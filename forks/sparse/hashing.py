"""Hashes of categories, with the same bits on every machine."""

from __future__ import annotations

from typing import Final
from zlib import crc32

import numpy as np

from forks.jit import njit

LARGEST_HASH: Final = 2.0**53
"""A column holds whole numbers below this exactly."""
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_ODD: Final = np.uint64(3)
_NO_HASH: Final = np.uint64(0)


def category(value: object) -> float:
    """Return the hash of a category or a word, a whole number below 2^32, as columns hold it.

    It depends on the text of the value alone. Values of different fields may have the same hash, as each
    field has weights of its own.

    Examples
    --------
    >>> category("pizza"), category(7) == category("7")
    (3487400559.0, True)
    """
    text = value if type(value) is str else str(value)
    return float(crc32(text.encode("utf-8", "surrogatepass")))


@njit(cache=True, forceinline=True)
def mixed(x: np.uint64) -> np.uint64:
    """Return a hash of 64 bits: the finalizer of SplitMix64.

    References
    ----------
    Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (OOPSLA 2014).
    """
    z = x + _STEP
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@njit(cache=True, forceinline=True)
def key_of(value: float, field: int) -> np.uint64:
    """Return the key of a value of a field; what is no hash counts as 0."""
    number = np.uint64(value) if 0.0 <= value < LARGEST_HASH else _NO_HASH
    return mixed(number ^ mixed(np.uint64(field)))


@njit(cache=True, forceinline=True)
def pair_of(left: np.uint64, right: np.uint64) -> np.uint64:
    """Return the key of a pair of keys, in this order."""
    return mixed(left * _ODD ^ right)
