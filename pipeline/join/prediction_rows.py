"""Predictions in columns: those that wait for their label, and those whose label may be corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.join.event_rows import EventRows, Integers
from pipeline.join.prediction_columns import PredictionColumns
from pipeline.join.records import ChallengerScores
from pipeline.join.scored_columns import ScoredColumns
from pipeline.records.texts import Texts


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

    def store(self, rows: Integers, predictions: PredictionColumns, places: Integers) -> None:
        """Keep what the model predicted for rows, given the places of these among predictions."""
        if not len(rows):
            return
        self.scored.store(rows, predictions.scores[places], predictions.features[places])
        self["asked"][rows] = predictions.asked[places]
        if predictions.challengers:
            for number, place in zip(self.numbers[rows].tolist(), places.tolist(), strict=True):
                if (scores := predictions.challengers[place]) is not None:
                    self._challengers[number] = scores

    def predictions(
        self, rows: Integers, numbers: Integers, ids: Texts, timestamps: Integers
    ) -> PredictionColumns:
        """Return the predictions of rows, given their numbers, ids and times."""
        scores, features = self.scored.of(rows)
        challengers: list[ChallengerScores | None] = []
        if self._challengers:
            challengers = [*map(self._challengers.get, self.numbers[rows].tolist())]
        versions = self.integers("versions")[rows]
        return PredictionColumns(
            numbers, ids, timestamps, versions, scores, features, self["asked"][rows], challengers
        )
