"""Closed events whose labels may be corrected, with their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.join.digests import Digests
from pipeline.join.event_rows import Integers
from pipeline.join.prediction_columns import PredictionColumns
from pipeline.join.prediction_rows import PredictionRows
from pipeline.join.records import Pending
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.outputs import Outcome
from pipeline.records.places import flagged

Floats: TypeAlias = NDArray[np.float64]


class AnsweredEvents(PredictionRows):
    """Closed events by the numbers that `pipeline.join.tables.Join.closed` gives them.

    Their columns are, beside what the model predicted:

    - ``predictions`` and ``timestamps``, the number and the time of the prediction;
    - ``label_times``, the time of the newest label, -1 where none came;
    - ``id_digests``, digests of the ids of the event and of all entities, shape (n, 2);
    - ``values``, the value of the newest label, NaN where none came;
    - ``weights``, the weight of that label;
    - ``learned``, the value that was learned last, NaN where nothing was.
    """

    def __init__(self) -> None:
        super().__init__(
            ["predictions", "timestamps", "label_times"],
            {
                "id_digests": (np.uint64, (2,)),
                "values": np.float64,
                "weights": np.float64,
                "learned": np.float64,
            },
        )

    def add(
        self, digests: Digests, until: Integers, outcomes: Sequence[Outcome], id_digests: Digests
    ) -> None:
        """Add the events of outcomes of a log, by their sequences, at least one.

        Parameters
        ----------
        digests
            Digests of the events, shape (n, 2).
        until
            How long they are remembered, shape (n,).
        outcomes
            The outcomes.
        id_digests
            Digests of all ids of the events, shape (n, 2).
        """
        sequences = np.array([each.sequence for each in outcomes], dtype=np.int64)
        values = np.array([each.watch_ratio for each in outcomes], dtype=np.float64)
        taught = np.array([each.label is not None for each in outcomes], dtype=np.bool_)
        begin = self.append(
            digests,
            2 * sequences + np.isnan(values),
            until,
            flagged(np.array([each.corrects for each in outcomes])),
            versions=np.array([each.model_version for each in outcomes], dtype=np.int64),
            predictions=np.array([each.prediction_number for each in outcomes], dtype=np.int64),
            timestamps=np.array([each.timestamp for each in outcomes], dtype=np.int64),
            label_times=np.array(
                [NO_TIMESTAMP if each.label_timestamp is None else each.label_timestamp for each in outcomes],
                dtype=np.int64,
            ),
            id_digests=id_digests,
            values=values,
            weights=np.array([each.weight for each in outcomes]),
            learned=np.where(taught, np.nan_to_num(values), np.nan),
        )
        places = np.arange(len(outcomes))
        self.store(begin + places, PredictionColumns.of([*map(Pending.of_outcome, outcomes)]), places)

    def since(self, sequence: int) -> Integers:
        """Return the rows of outcomes from a sequence on."""
        return self.live(self.from_number(2 * sequence))

    def sequences(self, sequence: int = 0) -> Integers:
        """Return the sequences of outcomes from one on, ascending."""
        sequences: Integers = self.numbers[self.since(sequence)] // 2
        return sequences

    def note_learned(self, first: int, learned: Floats) -> None:
        """Note what outcomes have taught, shape (n,), of which the first has this sequence."""
        rows = self.since(first)
        self["learned"][rows] = learned[self.numbers[rows] // 2 - first]

    def store_predicted(self, first: int, predictions: PredictionColumns) -> None:
        """Keep what the model predicted.

        Parameters
        ----------
        first
            Sequence of the first outcome that may be of these predictions.
        predictions
            Predictions of a batch.
        """
        rows = self.since(first)
        numbers, closed = predictions.numbers, self.integers("predictions")[rows]
        here = flagged(np.isin(closed, numbers))
        self.store(rows[here], predictions, np.searchsorted(numbers, closed[here]))
