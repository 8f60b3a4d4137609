"""A bounded number of entities, each with a row of totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from pipeline.features.totals import NEWER, NOBODY, OLDER, OUT
from pipeline.records.fields import Id

FIRST_ROOM = 1024


class EntityTotals:
    """Totals by entity for at most `limit` entities, the one updated longest ago forgotten first.

    Names are looked up here; sums and the order of updates are compiled, in `pipeline.features.totals`. Between
    `enter` and `settle` there may be more entities than `limit`, since compiled code finds out which of them
    go. Memory follows the largest number that there was. Which rows they have does not show in what is saved.

    Parameters
    ----------
    limit
        Most entities kept from one `settle` to the next, at least 1.
    note
        What is to be known of an entity beside its totals; the same whenever it is asked.

    Attributes
    ----------
    totals
        Events, labels and ratios of each row, that of `NOBODY` first, always zeros. Shape (rows, 3).
    ring
        The row updated before and after each row, shape (rows, 2): see `pipeline.features.totals`.
    notes
        What `note` says of each row's entity, shape (rows,): looked up once, not at each of its events.
    room
        Entities that may come before one has to go.
    """

    def __init__(self, limit: int, note: Callable[[Id], int] = lambda _: 0) -> None:
        self.limit = limit
        self._note = note
        self._rows: dict[Id, int] = {}
        self._names: list[Id] = [""]
        self._free: list[int] = []
        self._entered: list[int] = []
        self._clear()

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, entity: Id) -> int:
        """The row of an entity's totals, that of `NOBODY` if it is not known."""
        return self._rows.get(entity, NOBODY)

    def enter(self, entity: Id) -> int:
        """The row of an entity that a label may be counted of; `settle` has to follow."""
        return self._rows.get(entity, NOBODY) or self._add(entity)

    def enter_all(self, entities: Sequence[Id]) -> NDArray[np.int64]:
        """`enter` for each of the entities, shape (entities,)."""
        found = np.fromiter(map(self._rows.get, entities, repeat(NOBODY)), np.int64, len(entities))
        new = np.flatnonzero(found == NOBODY).tolist()
        found[new] = [self.enter(entities[place]) for place in new]
        return found

    def settle(self, forgotten: Sequence[int]) -> None:
        """Let the names go whose rows were forgotten, or entered without a label."""
        if not (forgotten or self._entered):
            return
        touched = np.array([*{*self._entered, *forgotten}])
        gone = touched[self.ring[touched, OLDER] == OUT].tolist()
        for row in gone:
            del self._rows[self._names[row]]
            self._names[row] = ""
        self._free += gone
        self._entered.clear()
        self.room = self.limit - len(self._rows)

    def saved(self) -> tuple[list[Id], NDArray[np.float64]]:
        """Entities in the order in which they will be forgotten, and their totals, shape (entities, 3)."""
        newer = self.ring[:, NEWER].tolist()
        rows = []
        row = newer[NOBODY]
        while row != NOBODY:
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
        self._make_room(count)
        self.totals[1 : 1 + count] = totals
        self.notes[1 : 1 + count] = list(map(self._note, entities))
        self.ring[: 1 + count, OLDER] = np.roll(np.arange(1 + count), 1)
        self.ring[: 1 + count, NEWER] = np.roll(np.arange(1 + count), -1)
        self.room = self.limit - count

    def _clear(self) -> None:
        self.totals: NDArray[np.float64] = np.zeros((FIRST_ROOM, 3))
        self.ring: NDArray[np.int64] = np.full((FIRST_ROOM, 2), OUT)
        self.ring[NOBODY] = NOBODY
        self.notes: NDArray[np.int64] = np.zeros(FIRST_ROOM, dtype=np.int64)
        self.room = self.limit

    def _add(self, entity: Id) -> int:
        if self._free:
            row = self._free.pop()
            self._names[row] = entity
        else:
            row = len(self._names)
            self._names.append(entity)
            self._make_room(row)
        self._rows[entity] = row
        self.notes[row] = self._note(entity)
        self._entered.append(row)
        return row

    def _make_room(self, row: int) -> None:
        while row >= len(self.totals):
            self.totals = np.concatenate([self.totals, np.zeros_like(self.totals)])
            self.ring = np.concatenate([self.ring, np.full_like(self.ring, OUT)])
            self.notes = np.concatenate([self.notes, np.zeros_like(self.notes)])
