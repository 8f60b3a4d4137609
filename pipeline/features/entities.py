"""A bounded number of entities, or pairs of them, each with a row of totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.features.totals import BASE_COLUMNS, NEWER, NO_ROW, OLDER, UNLINKED
from pipeline.records.fields import Id
from pipeline.records.places import flagged

INITIAL_ROWS = 1024
Key: TypeAlias = Id | tuple[Id, ...]
"""What names an entity, a category, or a pair of these."""


class EntityTotals:
    """Totals of at most `limit` entities; the one updated longest ago is evicted first.

    Names are looked up here. Sums and the order of updates are compiled, in `pipeline.features.totals`.
    Between `row_for` and `release_evicted` there may be more entities than `limit`, since compiled code
    decides which of them are evicted. Memory grows with the largest number of entities so far. The state does
    not depend on which entity has which row.

    Parameters
    ----------
    limit
        The largest number of entities after `release_evicted`, at least 1.
    columns
        Columns of the totals: see `pipeline.features.totals`.
    annotate
        Returns a number to keep beside an entity's totals, always the same for the same entity.

    Attributes
    ----------
    totals
        Totals of each row, shape (rows, columns), float64. The first row is that of `NO_ROW`, always zeros.
    ring
        The rows updated before and after each row, shape (rows, 2), int64: see `pipeline.features.totals`.
    annotations
        The number that `annotate` returned for each row's entity, shape (rows,), int64: looked up once, not
        at each event.
    capacity
        The number of new entities before one is evicted.
    """

    def __init__(
        self, limit: int, columns: int = BASE_COLUMNS, annotate: Callable[[Key], int] = lambda _: 0
    ) -> None:
        self.limit = limit
        self.columns = columns
        self._annotate = annotate
        self._rows: dict[Key, int] = {}
        self._names: list[Key] = [""]
        self._free: list[int] = []
        self._new_rows: list[int] = []
        self._clear()

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, entity: Key) -> int:
        """Return the row of an entity's totals, `NO_ROW` if it is not known."""
        return self._rows.get(entity, NO_ROW)

    def row_for(self, entity: Key) -> int:
        """Return the row of an entity, known or new, to count a label in; `release_evicted` must follow."""
        return self._rows.get(entity, NO_ROW) or self._add(entity)

    def rows_for(self, entities: Sequence[Key]) -> NDArray[np.int64]:
        """Return `row_for` of each entity, shape (entities,)."""
        found = np.fromiter(map(self._rows.get, entities, repeat(NO_ROW)), np.int64, len(entities))
        new = flagged(found == NO_ROW).tolist()
        found[new] = [self.row_for(entities[number]) for number in new]
        return found

    def release_evicted(self, evicted: Sequence[int]) -> None:
        """Forget the entities of rows that were evicted, or that were new and got no label."""
        if not (evicted or self._new_rows):
            return
        touched = np.array([*{*self._new_rows, *evicted}])
        unlinked = touched[self.ring[touched, OLDER] == UNLINKED].tolist()
        for row in unlinked:
            del self._rows[self._names[row]]
            self._names[row] = ""
        self._free += unlinked
        self._new_rows.clear()
        self.capacity = self.limit - len(self._rows)

    def rows(self) -> NDArray[np.int64]:
        """Return the rows of the entities in the order of eviction, shape (entities,)."""
        newer = self.ring[:, NEWER].tolist()
        rows = []
        row = newer[NO_ROW]
        while row != NO_ROW:
            rows.append(row)
            row = newer[row]
        return np.array(rows, dtype=np.int64)

    def state(self) -> tuple[list[Key], NDArray[np.float64]]:
        """Return the entities in the order of eviction, and their totals, shape (entities, columns)."""
        rows = self.rows()
        return [self._names[row] for row in rows.tolist()], self.totals[rows]

    def restore(self, entities: Sequence[Key], totals: NDArray[np.float64]) -> None:
        """Replace all entities and totals by those that `state` returned.

        Raises
        ------
        ValueError
            There are more entities than `limit`, or one of them stands there twice.
        """
        count = len(entities)
        rows = {entity: row for row, entity in enumerate(entities, start=1)}
        if len(rows) != count or count > self.limit:
            raise ValueError(
                f"{count} entities, {len(rows)} of them different: at most {self.limit} fit, each once"
            )
        self._rows, self._names, self._free = rows, ["", *entities], []
        self._clear()
        self._grow(count)
        self.totals[1 : 1 + count] = totals
        self.annotations[1 : 1 + count] = list(map(self._annotate, entities))
        self.ring[: 1 + count, OLDER] = np.roll(np.arange(1 + count), 1)
        self.ring[: 1 + count, NEWER] = np.roll(np.arange(1 + count), -1)
        self.capacity = self.limit - count

    def _clear(self) -> None:
        self.totals: NDArray[np.float64] = np.zeros((INITIAL_ROWS, self.columns))
        self.ring: NDArray[np.int64] = np.full((INITIAL_ROWS, 2), UNLINKED)
        self.ring[NO_ROW] = NO_ROW
        self.annotations: NDArray[np.int64] = np.zeros(INITIAL_ROWS, dtype=np.int64)
        self.capacity = self.limit

    def _add(self, entity: Key) -> int:
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
