"""Predictions of earlier batches that get an outcome, in columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipeline.join.records import ChallengerScores, Pending
from pipeline.records.entities import columns_joined
from pipeline.records.fields import Id
from pipeline.records.outputs import Prediction


@dataclass
class PriorPredictions:
    """Predictions in the order of their outcomes.

    Examples
    --------
    >>> prior = PriorPredictions.of([Pending("e", (7, 3), 5, 0, 9, np.array([0.5, 0.25]).tobytes())])
    >>> prior.numbers, prior.scored(1).tolist()
    (array('q', [9]), [[0.5, 0.25]])
    """

    numbers: array[int] = field(default_factory=lambda: array("q"))
    """As in `pipeline.join.records.Pending.sequence`."""
    event_ids: list[Id] = field(default_factory=list)
    ids: tuple[list[Id], ...] = ()
    """The ids, one column for each entity; none as long as there is no prediction."""
    timestamps: list[int] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    """How many outcomes there were before each prediction."""
    outputs: bytearray = field(default_factory=bytearray)
    """Score, then features, float64, one prediction's after another's."""
    asked: list[bool | None] = field(default_factory=list)
    """Whether the label was asked for; None where all labels are learned as they come."""
    challengers: list[ChallengerScores | None] = field(default_factory=list)
    spilled: list[Prediction] = field(default_factory=list)
    """The records of those that were spilled."""

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of(cls, predictions: Iterable[Pending]) -> Self:
        """Return the columns of predictions."""
        prior = cls()
        for each in predictions:
            prior.append(each)
        return prior

    def append(self, prediction: Pending) -> None:
        """Append a prediction."""
        self.numbers.append(prediction.sequence)
        self.event_ids.append(prediction.event_id)
        self.ids = columns_joined(self.ids, tuple([each] for each in prediction.ids))
        self.timestamps.append(prediction.timestamp)
        self.versions.append(prediction.model_version)
        self.outputs += prediction.scored
        self.asked.append(prediction.asked)
        self.challengers.append(prediction.challengers)
        if prediction.record is not None:
            self.spilled.append(prediction.record)

    def extend(self, later: PriorPredictions) -> None:
        """Append later predictions."""
        self.numbers += later.numbers
        self.event_ids += later.event_ids
        self.ids = columns_joined(self.ids, later.ids)
        self.timestamps += later.timestamps
        self.versions += later.versions
        self.outputs += later.outputs
        self.asked += later.asked
        self.challengers += later.challengers
        self.spilled += later.spilled

    def take(self, rows: Sequence[int]) -> PriorPredictions:
        """Return these rows, in this order; all that were spilled are among them, in their order."""
        outputs = np.frombuffer(self.outputs, dtype=np.uint8).reshape(len(self), -1)
        return PriorPredictions(
            array("q", map(self.numbers.__getitem__, rows)),
            [*map(self.event_ids.__getitem__, rows)],
            tuple([*map(column.__getitem__, rows)] for column in self.ids),
            [*map(self.timestamps.__getitem__, rows)],
            [*map(self.versions.__getitem__, rows)],
            bytearray(outputs[rows].tobytes()),
            [*map(self.asked.__getitem__, rows)],
            [*map(self.challengers.__getitem__, rows)],
            self.spilled,
        )

    def scored(self, features: int) -> NDArray[np.float64]:
        """Return score and features of each prediction, shape (n, 1 + features)."""
        return np.frombuffer(bytes(self.outputs)).reshape(len(self), 1 + features)
