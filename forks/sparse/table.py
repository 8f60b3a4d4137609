"""The table of weights: a bounded number of rows, found by hash.

A key has `WAYS` places next to each other. A new one takes a free place, or that of the key that was learned
longest ago among them. So the memory is bounded, and what is forgotten depends on the learned events alone.
A row is told from others by 32 bits of its key's hash. Two keys of the same places share a row once in 2^32.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from forks.arrays import FloatArray, IntArray
from forks.jit import njit

WAYS: Final = 8
"""Places of the table that a key may be in."""
NO_ROW: Final = -1
"""Stands for the row of a key that is not in the table."""
_FREE: Final = np.uint32(0)
_TAKEN: Final = np.uint32(1)
_HIGH: Final = np.uint64(32)


class Table(NamedTuple):
    """Rows of v weights and v variances.

    Attributes
    ----------
    tags : ndarray, shape (capacity,), uint32
        What tells the key of each row from others; 0 for a free row.
    clocks : ndarray, shape (capacity,), uint32
        Learned events, modulo 2^32, when each row was learned last.
    weights : ndarray, shape (capacity, v, 2), float32
        Weight and variance of each variant; a variance of 0 stands for no weight.
    """

    tags: NDArray[np.uint32]
    clocks: NDArray[np.uint32]
    weights: NDArray[np.float32]

    @classmethod
    def empty(cls, capacity: int, variants: int) -> Self:
        """Return a table without rows."""
        return cls(
            np.zeros(capacity, dtype=np.uint32),
            np.zeros(capacity, dtype=np.uint32),
            np.zeros((capacity, variants, 2), dtype=np.float32),
        )


@njit(cache=True, forceinline=True)
def first_place(key: np.uint64, capacity: int) -> int:
    """Return the first of the places of a key."""
    return int(key & np.uint64(capacity // WAYS - 1)) * WAYS


@njit(cache=True, forceinline=True)
def tag_of(key: np.uint64) -> np.uint32:
    """Return what tells a key from others, never 0."""
    tag = np.uint32(key >> _HIGH)
    return tag if tag != _FREE else _TAKEN


@njit(cache=True, forceinline=True)
def find(key: np.uint64, tags: NDArray[np.uint32]) -> int:
    """Return the row of a key, or `NO_ROW`."""
    first, tag = first_place(key, tags.shape[0]), tag_of(key)
    row = NO_ROW
    for place in range(WAYS):  # no branch, which would often be taken otherwise than expected
        row = first + place if tags[first + place] == tag else row
    return row


@njit(cache=True)
def insert(
    key: np.uint64,
    now: np.uint32,
    tags: NDArray[np.uint32],
    clocks: NDArray[np.uint32],
    weights: NDArray[np.float32],
    priors: FloatArray,
    used: IntArray,
) -> int:
    """Return a row for a key that has none, or `NO_ROW` if each of its places was learned just now.

    Parameters
    ----------
    key
        The key.
    now
        Learned events, modulo 2^32.
    tags, clocks, weights
        Arrays of a `Table`; changed.
    priors : ndarray, shape (v,), float64
        Prior variances; 0 for a variant that has no such weight.
    used : ndarray, shape (1,), int64
        Number of rows in use; changed.
    """
    first = first_place(key, tags.shape[0])
    row, age = NO_ROW, np.uint32(0)
    for place in range(first, first + WAYS):
        if tags[place] == _FREE:
            row = place
            used[0] += 1
            break
        other = np.uint32(now - clocks[place])
        if other > age:
            row, age = place, other
    if row == NO_ROW:
        return NO_ROW
    tags[row], clocks[row] = tag_of(key), now
    for variant in range(weights.shape[1]):
        weights[row, variant, 0] = 0.0
        weights[row, variant, 1] = priors[variant]
    return row


class Rows(NamedTuple):
    """The rows in use, in the order of their places, and their weights one after the other.

    Attributes
    ----------
    taken : ndarray, shape (capacity / 8,), uint8
        One bit for each row: whether it is in use.
    tags, clocks : ndarray, shape (rows,), uint32
        See `Table`.
    known : ndarray, shape (rows,), uint8
        One bit for each variant: whether the row has a weight of it.
    weights : ndarray, shape (known bits, 2), float32
        Weights and variances.
    """

    taken: NDArray[np.uint8]
    tags: NDArray[np.uint32]
    clocks: NDArray[np.uint32]
    known: NDArray[np.uint8]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return the rows of a table: at most 16 bytes for each weight that it has."""
        taken = table.tags != _FREE
        weights = table.weights[taken]
        known = weights[:, :, 1] != 0.0
        return cls(
            np.packbits(taken),
            table.tags[taken],
            table.clocks[taken],
            np.packbits(known, axis=1, bitorder="little").reshape(-1),
            weights[known],
        )

    def table(self, capacity: int, variants: int) -> Table:
        """Return the table that these are the rows of.

        Raises
        ------
        ValueError
            They are not the rows of such a table.
        """
        if len(self.taken) != capacity // 8:
            raise ValueError(f"there are bits of {8 * len(self.taken)} rows, not {capacity}")
        taken = np.unpackbits(self.taken).astype(np.bool_)
        count = int(taken.sum())
        lengths = {"tags": len(self.tags), "clocks": len(self.clocks), "known": len(self.known)}
        for name, length in lengths.items():
            if length != count:
                raise ValueError(f"{name} are of {length} rows, not {count}")
        if (self.tags == _FREE).any():
            raise ValueError("tags of rows in use must not be 0")
        bits = np.unpackbits(self.known[:, None], axis=1, bitorder="little")
        known = bits[:, :variants].astype(np.bool_)
        if bits[:, variants:].any() or self.weights.shape != (int(known.sum()), 2):
            raise ValueError(f"weights are of shape {self.weights.shape}, not ({int(known.sum())}, 2)")
        if not (np.isfinite(self.weights).all() and (self.weights[:, 1] > 0.0).all()):
            raise ValueError("weights must be finite, and variances above 0")
        table = Table.empty(capacity, variants)
        rows = np.zeros((count, variants, 2), dtype=np.float32)
        rows[known] = self.weights
        table.tags[taken], table.clocks[taken], table.weights[taken] = self.tags, self.clocks, rows
        return table
