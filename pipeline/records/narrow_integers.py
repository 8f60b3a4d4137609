"""Many integers in as few bytes as hold them."""

from __future__ import annotations

from array import array
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers: TypeAlias = NDArray[np.int64]

_LIMITS: Final = {"H": 2**16 - 1, "I": 2**32 - 1}
"""The narrow kinds of arrays, and the largest distance that each holds; `q` holds all integers."""


class NarrowIntegers:
    """Integers in rows, in two, four or eight bytes each.

    They lie within 2**62 of each other, and are kept as distances from a lowest one, in the narrowest type
    that holds all of them. After one that lies lower, all are kept in eight bytes, until `replace` or `keep`
    begins anew.

    Parameters
    ----------
    lowest
        The lowest integer; None for the lowest of those that come first.

    Examples
    --------
    >>> integers = NarrowIntegers()
    >>> integers.append(np.array([10**12, 10**12 + 7]))
    >>> integers[np.array([1, 0])].tolist(), integers.bytes_each
    ([1000000000007, 1000000000000], 2)
    """

    def __init__(self, lowest: int | None = None) -> None:
        self._lowest = lowest
        # Unlike arrays of NumPy, these grow in place, without being held twice meanwhile.
        self._distances = array("H")
        self._base = 0

    def __len__(self) -> int:
        return len(self._distances)

    def __getitem__(self, rows: Any) -> Any:
        """Return the integers of rows, which are an index of an array."""
        return self._view()[rows].astype(np.int64) + self._base

    @property
    def bytes_each(self) -> int:
        """The size of an integer, in bytes."""
        return self._distances.itemsize

    def append(self, integers: Integers) -> None:
        """Add the integers of the next rows, shape (n,)."""
        if not len(integers):
            return
        lowest, highest = int(integers.min()), int(integers.max())
        if not len(self._distances):
            self._base = lowest if self._lowest is None else self._lowest
        if lowest < self._base:
            self._become("q", 0)
        highest -= self._base
        while highest > _LIMITS.get(self._distances.typecode, highest):
            self._become("I" if self._distances.typecode == "H" else "q", self._base)
        self._distances.frombytes((integers - self._base).astype(self._distances.typecode).tobytes())

    def set(self, rows: Integers, integer: int) -> None:
        """Hold the same integer in these rows; it is none below the lowest, and none above all others."""
        self._view()[rows] = integer - self._base

    def replace(self, integers: Integers) -> None:
        """Hold these integers instead, shape (n,)."""
        self._distances = array("H")
        self.append(integers)

    def keep(self, rows: Integers) -> None:
        """Drop all rows but these."""
        self.replace(self[rows])

    def search(self, integers: ArrayLike) -> Any:
        """Return the first row of at least each integer, where the integers of the rows ascend."""
        distances = self._view()
        # NumPy would search in a copy, if it had to search for another type.
        limit = _LIMITS.get(self._distances.typecode, np.iinfo(np.int64).max)
        wanted = np.asarray(integers, dtype=np.int64) - self._base
        rows = np.searchsorted(distances, np.clip(wanted, 0, limit).astype(distances.dtype))
        return np.where(wanted > limit, len(distances), rows)

    def _view(self) -> NDArray[Any]:
        return np.frombuffer(self._distances, self._distances.typecode)

    def _become(self, typecode: str, base: int) -> None:
        """Keep distances from another base, in another type."""
        distances = self[:] - base
        self._base, self._distances = base, array(typecode, distances.astype(typecode).tobytes())
