"""A bounded number of entities, each with a row of totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from pipeline.features.totals import NEWER, NO_ROW, OLDER, UNLINKED
from pipeline.records.fields import Id

INITIAL_ROWS = 1024


class EntityTotals:
    """Totals by entity for at most `limit` entities, the one updated longest ago forgotten first.

    Names are looked up here; sums and the order of updates are compiled, in `pipeline.features.totals`.
    Between `row_for` and `release_evicted` there may be more entities than `limit`, since compiled code finds
    out which of them go. Memory follows the largest number that there was. Which rows they have does not show
    in what is saved.

    Parameters
    ----------
    limit
        Most entities kept from one `release_evicted` to the next, at least 1.
    note
        What is to be known of an entity beside its totals; the same whenever it is asked.

    Attributes
    ----------
    totals
        Events, labels and ratios of each row, that of `NO_ROW` first, always zeros. Shape (rows, 3).
    ring
        The row updated before and after each row, shape (rows, 2): see `pipeline.features.totals`.
    notes
        What `annotate` says of each row's entity, shape (rows,): looked up once, not at each of its events.
    room
        Entities that may come before one has to go.
    """

    def __init__(self, limit: int, annotate: Callable[[Id], int] = lambda _: 0) -> None:
        self.limit = limit
        self._annotate = annotate
        self._rows: dict[Id, int] = {}
        self._names: list[Id] = [""]
        self._free: list[int] = []
        self._new_rows: list[int] = []
        self._clear()

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, entity: Id) -> int:
        """The row of an entity's totals, that of `NO_ROW` if it is not known."""
        return self._rows.get(entity, NO_ROW)

    def row_for(self, entity: Id) -> int:
        """The row of an entity that a label may be counted of; `release_evicted` has to follow."""
        return self._rows.get(entity, NO_ROW) or self._add(entity)

    def rows_for(self, entities: Sequence[Id]) -> NDArray[np.int64]:
        """`row_for` for each of the entities, shape (entities,)."""
        found = np.fromiter(map(self._rows.get, entities, repeat(NO_ROW)), np.int64, len(entities))
        new = np.flatnonzero(found == NO_ROW).tolist()
        found[new] = [self.row_for(entities[place]) for place in new]
        return found

    def release_evicted(self, evicted: Sequence[int]) -> None:
        """Let the names go whose rows were forgotten, or entered without a label."""
        if not (evicted or self._new_rows):
            return
        touched = np.array([*{*self._new_rows, *evicted}])
        gone = touched[self.ring[touched, OLDER] == UNLINKED].tolist()
        for row in gone:
            del self._rows[self._names[row]]
            self._names[row] = ""
        self._free += gone
        self._new_rows.clear()
        self.capacity = self.limit - len(self._rows)

    def saved(self) -> tuple[list[Id], NDArray[np.float64]]:
        """Entities in the order in which they will be forgotten, and their totals, shape (entities, 3)."""
        newer = self.ring[:, NEWER].tolist()
        rows = []
        row = newer[NO_ROW]
        while row != NO_ROW:
            rows.append(row)
            row = newer[row]
        return [self._names[row] for row in rows], self.totals[rows]

    def restore(self, entities: Sequence[Id], totals: NDArray[np.float64]) -> None:
        """Take what `saved` gave, in place of what was there.

        Raises
        ------
        ValueError
            Entities are too many, or one is there twice.
        """
        count = len(entities)
        rows = {entity: row for row, entity in enumerate(entities, start=1)}
        if len(rows) != count or count > self.limit:
            raise ValueError(f"{count} entities, {len(rows)} of them different, where {self.limit} fit")
        self._rows, self._names, self._free = rows, ["", *entities], []
        self._clear()
        self._grow(count)
        self.totals[1 : 1 + count] = totals
        self.annotations[1 : 1 + count] = list(map(self._annotate, entities))
        self.ring[: 1 + count, OLDER] = np.roll(np.arange(1 + count), 1)
        self.ring[: 1 + count, NEWER] = np.roll(np.arange(1 + count), -1)
        self.capacity = self.limit - count

    def _clear(self) -> None:
        self.totals: NDArray[np.float64] = np.zeros((INITIAL_ROWS, 3))
        self.ring: NDArray[np.int64] = np.full((INITIAL_ROWS, 2), UNLINKED)
        self.ring[NO_ROW] = NO_ROW
        self.annotations: NDArray[np.int64] = np.zeros(INITIAL_ROWS, dtype=np.int64)
        self.capacity = self.limit

    def _add(self, entity: Id) -> int:
        if self._free:
            row = self._free.pop()
            self._names[row] = entity
        else:
            row = len(self._names)
            self._names.append(entity)
            self._grow(row)
        self._rows[entity] = row
        self.annotations[row] = self._annotate(entity)
        self._new_rows.append(row)
        return row

    def _grow(self, row: int) -> None:
        while row >= len(self.totals):
            self.totals = np.concatenate([self.totals, np.zeros_like(self.totals)])
            self.ring = np.concatenate([self.ring, np.full_like(self.ring, UNLINKED)])
            self.annotations = np.concatenate([self.annotations, np.zeros_like(self.annotations)])
