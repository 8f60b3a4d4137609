"""The table of weights: a bounded number of rows, found by hash.

A key has `WAYS` places, a bucket. A new one takes a free place, or that of the key that was learned longest
ago among them. So the memory is bounded, and what is forgotten depends on the learned events alone.
A row is told from others by 32 bits of its key's hash. Two keys of the same places share a row once in 2^32.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from forks.arrays import IntArray
from forks.compiled.alignment import CACHE_LINE
from forks.jit import njit

WAYS: Final = 8
"""Places of the table that a key may be in."""
NO_ROW: Final = -1
"""Stands for the row of a key that is not in the table."""
_FREE: Final = np.uint32(0)
_TAKEN: Final = np.uint32(1)
_HIGH: Final = np.uint64(32)


class Table(NamedTuple):
    """Rows of v weights and v variances, in buckets of `WAYS`.

    A bucket's tags and clocks are one cache line, and its weights are behind them: memory is asked for few
    places for each key.

    Attributes
    ----------
    tags : ndarray, shape (buckets, WAYS), uint32
        What tells the key of each row from others; 0 for a free row.
    clocks : ndarray, shape (buckets, WAYS), uint32
        Learned events, modulo 2^32, when each row was learned last.
    weights : ndarray, shape (buckets, WAYS, v, 2), float32
        Weight and variance of each variant; a variance of 0 stands for no weight.
    """

    tags: NDArray[np.uint32]
    clocks: NDArray[np.uint32]
    weights: NDArray[np.float32]

    @classmethod
    def empty(cls, capacity: int, variants: int) -> Self:
        """Return a table without rows."""
        buckets, header = capacity // WAYS, 2 * WAYS
        length = header + 2 * WAYS * variants  # a multiple of a cache line
        memory = _aligned_zeros(buckets * length).reshape(buckets, length)
        weights = memory[:, header:].view(np.float32).reshape(buckets, WAYS, variants, 2)
        return cls(memory[:, :WAYS], memory[:, WAYS:header], weights)


def _aligned_zeros(numbers: int) -> NDArray[np.uint32]:
    """Return zeros that begin at a cache line. NumPy asks for large pages, which are found faster."""
    line = CACHE_LINE * 8
    memory = np.zeros(numbers + line // 4, dtype=np.uint32)
    begin = -memory.ctypes.data % line // 4
    return memory[begin : begin + numbers]


@njit(cache=True, forceinline=True)
def bucket_of(key: np.uint64, buckets: int) -> int:
    """Return the bucket of a key."""
    return int(key & np.uint64(buckets - 1))


@njit(cache=True, forceinline=True)
def tag_of(key: np.uint64) -> np.uint32:
    """Return what tells a key from others, never 0."""
    tag = np.uint32(key >> _HIGH)
    return tag if tag != _FREE else _TAKEN


@njit(cache=True, forceinline=True)
def find(key: np.uint64, tags: NDArray[np.uint32]) -> int:
    """Return the row of a key, or `NO_ROW`; row r is in place r % WAYS of bucket r // WAYS."""
    bucket, tag = bucket_of(key, tags.shape[0]), tag_of(key)
    row = NO_ROW
    for place in range(WAYS):  # no branch, which would often be taken otherwise than expected
        row = bucket * WAYS + place if tags[bucket, place] == tag else row
    return row


@njit(cache=True)
def insert(
    key: np.uint64,
    now: np.uint32,
    tags: NDArray[np.uint32],
    clocks: NDArray[np.uint32],
    used: IntArray,
) -> int:
    """Return a row for a key that has none, or `NO_ROW` if each of its bucket was learned just now.

    The weights of the row are still those of the former key.

    Parameters
    ----------
    key
        The key.
    now
        Learned events, modulo 2^32.
    tags, clocks
        Arrays of a `Table`; changed.
    used : ndarray, shape (1,), int64
        Number of rows in use; changed.
    """
    bucket = bucket_of(key, tags.shape[0])
    oldest, age = NO_ROW, np.uint32(0)
    for place in range(WAYS):
        if tags[bucket, place] == _FREE:
            oldest = place
            used[0] += 1
            break
        other = np.uint32(now - clocks[bucket, place])
        if other > age:
            oldest, age = place, other
    if oldest == NO_ROW:
        return NO_ROW
    tags[bucket, oldest], clocks[bucket, oldest] = tag_of(key), now
    return bucket * WAYS + oldest


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
        taken = (table.tags != _FREE).reshape(-1)
        weights = table.weights.reshape(-1, *table.weights.shape[2:])[taken]
        known = weights[:, :, 1] != 0.0
        return cls(
            np.packbits(taken),
            table.tags.reshape(-1)[taken],
            table.clocks.reshape(-1)[taken],
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
        places = np.divmod(np.flatnonzero(taken), WAYS)
        table.tags[places], table.clocks[places], table.weights[places] = self.tags, self.clocks, rows
        return table
