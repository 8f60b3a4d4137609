"""Predictions in columns: those that wait for their label, and those whose label may be corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pipeline.join.event_rows import EventRows, Integers
from pipeline.join.records import ChallengerScores, Pending
from pipeline.join.scored_columns import ScoredColumns

UNDECIDED: Final = -1
"""In the column that says whether a label was asked for: all labels are learned as they come."""


class ModelColumns(NamedTuple):
    """What the model predicted, and whether labels are asked for, as `PredictionRows` keep it."""

    scored: NDArray[np.float64]
    """Scores, then features, shape (n, 1 + features)."""
    asked: NDArray[np.int8]
    """Whether the labels are asked for, or `UNDECIDED`, shape (n,)."""
    challengers: Sequence[ChallengerScores | None]
    """The challengers' scores of each, None where there are no challengers."""

    @classmethod
    def of(cls, predictions: Sequence[Pending]) -> Self:
        """Return those of predictions, at least one."""
        return cls(
            np.frombuffer(b"".join([each.scored for each in predictions])).reshape(len(predictions), -1),
            np.array([UNDECIDED if each.asked is None else each.asked for each in predictions], np.int8),
            [each.challengers for each in predictions],
        )

    def select(self, places: Integers) -> ModelColumns:
        """Return some of them."""
        return ModelColumns(
            self.scored[places], self.asked[places], [self.challengers[place] for place in places.tolist()]
        )


class PredictionRows(EventRows):
    """Rows of predictions, with what the model predicted.

    Parameters
    ----------
    integers
        Names of further columns of integers, beside `versions`: the number of outcomes before the prediction.
    columns
        Further columns by name: their dtype.

    Attributes
    ----------
    scored
        Scores and features, by row.
    """

    def __init__(self, integers: Sequence[str] = (), columns: Mapping[str, Any] | None = None) -> None:
        own = {"asked": np.int8, **(columns or {})}
        super().__init__(["versions", *integers], own, self._rows_moved, self._rows_resized)
        self.scored = ScoredColumns()
        self._challengers: dict[int, ChallengerScores] = {}
        """By the number of the row, where there are challengers."""

    def _rows_moved(self, kept: Integers) -> None:
        self.scored.move(kept)

    def _rows_resized(self, size: int) -> None:
        self.scored.resize(size)

    def remove(self, rows: Integers) -> None:
        """Remove rows."""
        if self._challengers:
            for number in self.numbers[rows].tolist():
                self._challengers.pop(number, None)
        super().remove(rows)

    def store(self, rows: Integers, outputs: ModelColumns) -> None:
        """Keep what the model predicted for rows."""
        if not len(rows):
            return
        self.scored.store(rows, outputs.scored)
        self["asked"][rows] = outputs.asked
        for number, challengers in zip(self.numbers[rows].tolist(), outputs.challengers, strict=True):
            if challengers is None:
                break
            self._challengers[number] = challengers

    def outputs(self, rows: Integers) -> ModelColumns:
        """Return what the model predicted for rows."""
        challengers: list[ChallengerScores | None] = [None] * len(rows)
        if self._challengers:
            challengers = [*map(self._challengers.get, self.numbers[rows].tolist())]
        return ModelColumns(self.scored.of(rows), self["asked"][rows], challengers)
