"""Base of the rivals whose events are pairs of a user and an item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from forks.arrays import FloatArray, IntArray
from forks.rivals.base.learner import Rival

USER, ITEM = range(2)

Entity: TypeAlias = tuple[int, int]
"""`USER` or `ITEM`, and its number."""


class PairRival(Rival[tuple[Entity, Entity]]):
    """A learner of (user, item) pairs, which keeps a row of numbers for each user and each item.

    Users and items are any integers of 64 bits; a user and an item with the same number are different
    entities. The first event of an entity costs time that grows with the number of known entities.

    Parameters
    ----------
    columns
        Number of columns of the rows, >= 1.
    """

    arrays: ClassVar = {"entities": (int, (None, 2)), "rows": (float, (None, None))}

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self.entities: IntArray = np.empty((0, 2), dtype=np.int64)
        self.rows: FloatArray = np.empty((0, columns))
        self._rebuild_derived()

    def _event(self, name: str, x: Any) -> tuple[Entity, Entity]:
        user, item = _integers(name, x, "(2,)")
        return (USER, int(user)), (ITEM, int(item))

    def _events(self, X: Any) -> Sequence[tuple[Entity, Entity]]:
        return [((USER, user), (ITEM, item)) for user, item in _integers("X", X, "(n, 2)").tolist()]

    def _rebuild_derived(self) -> None:
        if self.rows.shape != (len(self.entities), self._columns):
            raise ValueError(
                f"state['rows'] has shape {self.rows.shape}; {len(self.entities)} entities and these "
                f"settings ask for {(len(self.entities), self._columns)}"
            )
        self._row_index = {
            (kind, number): index for index, (kind, number) in enumerate(self.entities.tolist())
        }

    def _initial_row(self) -> FloatArray:
        """Return the first row of a new entity, (columns,)."""
        return np.zeros(self._columns)

    def _row(self, entity: Entity) -> FloatArray | None:
        """Return an entity's row, which may be changed, or None if the entity was not learned yet."""
        index = self._row_index.get(entity)
        return None if index is None else self.rows[index]

    def _add_if_new(self, entity: Entity) -> None:
        """Add a row for an entity that has none."""
        if entity not in self._row_index:
            self._row_index[entity] = len(self.entities)
            self.entities = np.vstack([self.entities, np.array(entity, dtype=np.int64)])
            self.rows = np.vstack([self.rows, self._initial_row()])


def _integers(name: str, values: Any, shape: str) -> IntArray:
    """Return an int64 array whose last length is two, or raise a ValueError that names it."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be integers of shape {shape}: {error}") from error
    if array.ndim != shape.count("n") + 1 or array.shape[-1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be integers of at most 64 bits of shape {shape}, a user and an item, "
            f"not {array.dtype} of {array.shape}"
        )
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be integers below 2^63, not {array.max()}")
    return array.astype(np.int64)
