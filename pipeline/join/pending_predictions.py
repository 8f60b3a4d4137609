"""Predictions that wait for their label in memory: rows, and the ids of their events."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.join.digests import Digests
from pipeline.join.event_rows import Integers
from pipeline.join.id_texts import IdTexts
from pipeline.join.prediction_columns import UNDECIDED
from pipeline.join.prediction_rows import PredictionRows
from pipeline.records.fields import Id
from pipeline.records.texts import Texts


class WrittenIds(Protocol):
    """Ids of predictions by number, kept elsewhere."""

    def ids(self, numbers: Integers) -> list[list[Id]]:
        """Return the ids of predictions: that of its event, then that of each entity, of each."""

    def same_ids(self, numbers: Integers, ids: Texts, rows: Integers) -> NDArray[np.bool_]:
        """Return of each prediction whether it has the ids of the row beside it, shape (n,)."""


class PendingPredictions(PredictionRows):
    """Predictions by their numbers, which are `pipeline.join.records.Pending.sequence`."""

    def __init__(self) -> None:
        super().__init__()
        self._ids, self._ids_from = IdTexts(), 0
        """The ids of rows, from a row on."""
        self._written_ids: WrittenIds | None = None
        """The ids of the rows before."""

    def open(
        self, digests: Digests, numbers: Integers, deadlines: Integers, versions: Integers, ids: Texts
    ) -> Integers:
        """Let predictions wait, and return their rows.

        Parameters
        ----------
        digests
            Digests of their events, shape (n, 2).
        numbers, deadlines, versions
            Shape (n,).
        ids
            The ids of their events and of each entity.
        """
        if not len(numbers):
            return numbers
        asked = np.full(len(numbers), UNDECIDED)
        begin = self.append(digests, numbers, deadlines, versions=versions, asked=asked)
        self._ids.append(ids)
        return begin + np.arange(len(numbers))

    def ids_of(self, rows: Integers) -> list[list[Id]]:
        """Return the ids of predictions: that of the event, then that of each entity, of each."""
        written = rows < self._ids_from
        if self._written_ids is None or not written.any():
            return self._ids.of(rows - self._ids_from)
        elsewhere = iter(self._written_ids.ids(self.numbers[rows[written]]))
        own = iter(self._ids.of(rows[~written] - self._ids_from))
        return [next(elsewhere if each else own) for each in written.tolist()]

    def same_ids(self, rows: Integers, ids: Texts, id_rows: Integers) -> NDArray[np.bool_]:
        """Return of each prediction whether it has the ids of the row beside it, shape (n,)."""
        own = rows >= self._ids_from
        if self._written_ids is None or own.all():
            return self._ids.equal(rows - self._ids_from, ids, id_rows)
        same = np.empty(len(rows), dtype=np.bool_)
        same[own] = self._ids.equal(rows[own] - self._ids_from, ids, id_rows[own])
        same[~own] = self._written_ids.same_ids(self.numbers[rows[~own]], ids, id_rows[~own])
        return same

    def read_ids_from(self, written: WrittenIds) -> None:
        """Read the ids of all rows elsewhere from now on, and keep none of them."""
        self._written_ids, self._ids_from = written, self.end
        self._ids = IdTexts()

    def _rows_moved(self, kept: Integers) -> None:
        written = int(np.searchsorted(kept, self._ids_from))
        self._ids.keep(kept[written:] - self._ids_from)
        self._ids_from = written
        super()._rows_moved(kept)
