"""A bounded number of entities, each with a row of totals."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.records import Id

NOBODY = 0
"""The row of an entity that is not known: always zeros."""

FIRST_ROOM = 1024


class EntityTotals:
    """Totals by entity for at most `limit` entities, the one updated longest ago forgotten first.

    It says in which row of `totals` an entity stands; `pipeline.totals` does the sums. Memory follows the
    number of entities that there are. Which rows they have does not show in anything that is kept.

    Parameters
    ----------
    limit
        Most entities kept, at least 1.

    Examples
    --------
    >>> totals = EntityTotals(limit=2)
    >>> [totals.place(user) for user in ["a", "b", "a", "c"]]  # "c" takes the place of "b"
    [-1, -2, 1, -2]
    >>> totals.find("a"), totals.find("b")
    (1, 0)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.totals: NDArray[np.float64] = np.zeros((min(FIRST_ROOM, 1 + limit), 3))
        """Events, labels and ratios of each row, that of `NOBODY` first."""
        self._rows: OrderedDict[Id, int] = OrderedDict()
        """From the entity updated longest ago to the latest."""

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, entity: Id) -> int:
        """The row to read an entity's totals from."""
        return self._rows.get(entity, NOBODY)

    def place(self, entity: Id) -> int:
        """The row to count an entity's label in; negative if it is new there: it has to start at zero."""
        rows = self._rows
        row = rows.get(entity)
        if row is not None:
            rows.move_to_end(entity)
            return row
        if len(rows) < self.limit:
            row = 1 + len(rows)
            self._make_room(row)
        else:
            _, row = rows.popitem(last=False)
        rows[entity] = row
        return -row

    def follow(self, entities: Iterable[Id], counted: Iterable[bool]) -> NDArray[np.int64]:
        """Give each step's row: that of `place` where a label is counted, else that of `find`."""
        known, refresh = self._rows.get, self._rows.move_to_end
        found = []
        for entity, counts in zip(entities, counted, strict=True):
            row = known(entity, NOBODY)
            if counts:
                if row == NOBODY:
                    row = self.place(entity)
                else:
                    refresh(entity)
            found.append(row)
        return np.array(found, dtype=np.int64)

    def saved(self) -> tuple[list[Id], NDArray[np.float64]]:
        """Entities in the order in which they will be forgotten, and their totals, shape (entities, 3)."""
        return list(self._rows), self.totals[list(self._rows.values())]

    def restore(self, entities: Sequence[Id], totals: NDArray[np.float64]) -> None:
        """Take what `saved` gave, in place of what was there.

        Raises
        ------
        ValueError
            Entities are too many, or one is there twice.
        """
        rows = OrderedDict((entity, row) for row, entity in enumerate(entities, start=1))
        if len(rows) != len(entities) or len(rows) > self.limit:
            raise ValueError(
                f"{len(entities)} entities, {len(rows)} of them different, where {self.limit} fit"
            )
        self._rows = rows
        self._make_room(len(rows))
        self.totals[1 : 1 + len(rows)] = totals

    def _make_room(self, row: int) -> None:
        while row >= len(self.totals):
            more = min(len(self.totals), 1 + self.limit - len(self.totals))
            self.totals = np.concatenate([self.totals, np.zeros((more, 3))])
