"""Columns of the predictions that were spilled: what finds them, and what says when they expire.

Rows stand in blocks of the same size, so that the room of a block is used again when its last row has left.
The rows of a block are in the order of their sequences.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.records.places import flagged

Integers: TypeAlias = NDArray[np.int64]

NEVER: Final = 2**63 - 1
"""Timestamp and sequence of a block without rows."""


_BLOCK: Final = np.dtype(
    [
        ("used", np.int64),  # rows, and how many of them are live
        ("alive", np.int64),
        ("head_at", np.int64),  # places of the first live row, by timestamp and by sequence
        ("low_at", np.int64),
        ("head_row", np.int64),  # these rows
        ("low_row", np.int64),
        ("head_timestamp", np.int64),
        ("low_sequence", np.int64),
    ]
)


class SpillColumns:
    """Columns of rows in blocks. 45 bytes a row, and 4 more where timestamps do not ascend.

    Parameters
    ----------
    rows
        Rows of a block, at most 2**31 of all blocks.
    size
        Bytes of the texts of a block, below 2**32.

    Attributes
    ----------
    digests
        Shape (all rows, 2).
    timestamps, sequences, versions
        Of the predictions, in milliseconds, and as in their records; shape (all rows,), int64.
    ends
        Where the text of each row ends in its block, in bytes; shape (all rows,), uint32.
    first
        The earliest timestamp; `NEVER` if there is none.

    Examples
    --------
    >>> columns = SpillColumns(rows=4, size=100)
    >>> block = columns.begin()
    >>> digests, numbers = np.zeros((2, 2), dtype=np.uint64), np.array([7, 8])
    >>> columns.append(
    ...     block,
    ...     digests,
    ...     timestamps=np.array([30, 20]),
    ...     sequences=numbers,
    ...     versions=numbers,
    ...     ends=np.array([10, 20]),
    ... )
    array([0, 1])
    >>> columns.first, columns.lowest
    (20, 0)
    >>> columns.first_rows(25, most=9), columns.first_rows(31, most=9)
    (array([1]), array([1, 0]))
    >>> columns.remove(np.array([1])), columns.remove(np.array([0]))
    ([], [0])
    """

    def __init__(self, rows: int, size: int) -> None:
        self.rows, self.size = rows, size
        self.digests = np.empty((0, 2), dtype=np.uint64)
        self.timestamps, self.sequences, self.versions = np.empty((3, 0), dtype=np.int64)
        self.ends = np.empty(0, dtype=np.uint32)
        self.first = NEVER
        self._live = np.empty(0, dtype=np.bool_)
        self._blocks = np.empty(0, dtype=_BLOCK)
        self._orders: list[NDArray[np.int32]] = []
        """By block, its rows in the order of timestamps and sequences."""
        self._identity = np.arange(rows, dtype=np.int32)
        self._free: list[int] = []
        self._begun: set[int] = set()

    def __len__(self) -> int:
        return int(self._blocks["alive"].sum())

    @property
    def dead(self) -> int:
        """Number of rows that have left, and whose room is not free yet."""
        return int(self._blocks["used"].sum()) - len(self)

    @property
    def lowest(self) -> int:
        """The row of the lowest sequence, of at least one."""
        return int(self._blocks["low_row"][np.argmin(self._blocks["low_sequence"])])

    @property
    def blocks(self) -> int:
        """The number after that of the last block in use."""
        return max(self._begun, default=-1) + 1

    def first_rows(self, time: int, most: int) -> Integers:
        """Return the rows whose timestamps lie before a time, by timestamp and sequence, at most so many."""
        found = list[Integers]()
        for block in flagged(self._blocks["head_timestamp"] < time).tolist():
            known, begin = self._blocks[block], block * self.rows
            live, timestamps = self._of_block(self._live, block), self._of_block(self.timestamps, block)
            order, places = self._orders[block], (known["head_at"], known["used"])
            found.append(begin + _first_live(live, timestamps, order, *places, time, most))
        rows = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
        if len(found) > 1:
            rows = rows[np.lexsort((self.sequences[rows], self.timestamps[rows]))]
        return rows[:most]

    def begin(self) -> int:
        """Return the number of an empty block: the lowest that is free."""
        if not self._free:
            self._grow()
        block = heappop(self._free)
        self._begun.add(block)
        return block

    def room(self, block: int) -> tuple[int, int]:
        """Return the rows that a block has, and the bytes of their texts."""
        used = int(self._blocks["used"][block])
        return used, int(self.ends[block * self.rows + used - 1]) if used else 0

    def append(
        self,
        block: int,
        digests: NDArray[np.uint64],
        *,
        timestamps: Integers,
        sequences: Integers,
        versions: Integers,
        ends: Integers,
    ) -> Integers:
        """Add rows to a block that has room for them, and return their numbers.

        Parameters
        ----------
        block
            Number of the block.
        digests, timestamps, sequences, versions, ends
            See the attributes. Sequences ascend, also from one call to the next.
        """
        known = self._blocks[block]
        used = int(known["used"])
        begin = block * self.rows + used
        added, end = slice(begin, begin + len(sequences)), used + len(sequences)
        self.digests[added], self.ends[added], self._live[added] = digests, ends, True
        self.timestamps[added], self.sequences[added], self.versions[added] = timestamps, sequences, versions
        known["used"], known["alive"] = end, known["alive"] + len(sequences)
        times = self._of_block(self.timestamps, block)
        if self._orders[block] is not self._identity or (np.diff(times[max(0, used - 1) : end]) < 0).any():
            self._orders[block] = np.argsort(times[:end], kind="stable").astype(np.int32)
            known["head_at"] = 0
        self._refresh(block)
        return np.arange(begin, begin + len(sequences))

    def remove(self, rows: Integers) -> list[int]:
        """Remove rows, and return the blocks that have none any more; `free` gives them back."""
        self._live[rows] = False
        removed = np.bincount(rows // self.rows, minlength=len(self._blocks))
        self._blocks["alive"] -= removed
        touched = flagged(removed)
        first_rows = self._blocks[["head_row", "low_row"]][touched]
        held = self._live[first_rows["head_row"]] & self._live[first_rows["low_row"]]
        for block in touched[~held].tolist():
            self._refresh(block)
        empty: list[int] = flagged((removed > 0) & (self._blocks["alive"] == 0)).tolist()
        return empty

    def free(self, block: int) -> None:
        """Give back a block without live rows."""
        known = self._blocks[block]
        known["used"] = known["head_at"] = known["low_at"] = 0
        self._orders[block] = self._identity
        self._begun.remove(block)
        heappush(self._free, block)

    def sparse(self, but: int | None) -> Integers:
        """Return the live rows of the emptiest blocks, about as many as a block has, by sequence.

        Parameters
        ----------
        but
            A block that is not taken: it is still being filled.
        """
        live = list[Integers]()
        blocks = [block for block in self._begun if block != but and 2 * self._filled(block) <= 1]
        for block in sorted(blocks, key=self._blocks["alive"].__getitem__):
            if sum(map(len, live)) >= self.rows:
                break
            live.append(flagged(self._of_block(self._live, block)[: self._blocks["used"][block]]))
            live[-1] += block * self.rows
        rows = np.concatenate(live) if live else np.empty(0, dtype=np.int64)
        return rows[np.argsort(self.sequences[rows])]

    def _filled(self, block: int) -> float:
        """Return the share of a block, by rows or by bytes, that live rows fill."""
        used, size = self.room(block)
        return float(self._blocks["alive"][block]) / used * max(used / self.rows, size / self.size)

    def _of_block(self, column: NDArray, block: int) -> NDArray:  # type: ignore[type-arg]  # of any type
        return column[block * self.rows : (block + 1) * self.rows]

    def _refresh(self, block: int) -> None:
        """Find the first rows of a block."""
        known, begin = self._blocks[block], block * self.rows
        if known["alive"]:
            live, order = self._of_block(self._live, block), self._orders[block]
            known["low_at"] = _next_live(live, self._identity, known["low_at"], known["used"])
            known["head_at"] = _next_live(live, order, known["head_at"], known["used"])
            known["low_row"], known["head_row"] = begin + known["low_at"], begin + order[known["head_at"]]
            known["low_sequence"] = self.sequences[known["low_row"]]
            known["head_timestamp"] = self.timestamps[known["head_row"]]
        else:
            known["low_sequence"] = known["head_timestamp"] = NEVER
        self.first = int(self._blocks["head_timestamp"].min())

    def _grow(self) -> None:
        """Make room for as many blocks again, one at least. Memory that is not written takes no room."""
        blocks = len(self._blocks)
        for block in range(blocks, 2 * blocks + 1):
            heappush(self._free, block)
            self._orders.append(self._identity)
        for name in ("digests", "timestamps", "sequences", "versions", "ends", "_live"):
            setattr(self, name, _grown(getattr(self, name), (2 * blocks + 1) * self.rows))
        self._blocks = _grown(self._blocks, 2 * blocks + 1)
        self._blocks[blocks:] = np.array((0, 0, 0, 0, 0, 0, NEVER, NEVER), dtype=_BLOCK)


def _grown(column: NDArray, length: int) -> NDArray:  # type: ignore[type-arg]  # of any type
    grown = np.empty((length, *column.shape[1:]), dtype=column.dtype)
    grown[: len(column)] = column
    return grown


@njit(cache=True, nogil=True)
def _next_live(live: NDArray[np.bool_], order: NDArray[np.int32], at: int, end: int) -> int:
    """Return the place in an order, from `at` on and before `end`, of the first live row."""
    while at < end and not live[order[at]]:
        at += 1
    return at


@njit(cache=True, nogil=True, allocates=True)
def _first_live(  # noqa: PLR0917 - compiled code is called by position
    live: NDArray[np.bool_],
    timestamps: Integers,
    order: NDArray[np.int32],
    at: int,
    end: int,
    time: int,
    most: int,
) -> Integers:
    """Return the first live rows in an order of timestamps that lie before a time, at most so many."""
    rows = np.empty(min(end - at, most), dtype=np.int64)
    count = 0
    while at < end and count < most and timestamps[order[at]] < time:
        if live[order[at]]:
            rows[count] = order[at]
            count += 1
        at += 1
    return rows[:count]
