"""The latest predictions with why: their scores, split while the model is still as it was."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from pipeline.config.stream import entity_word
from pipeline.model.score_terms import score_terms
from pipeline.records.fields import Id
from pipeline.records.texts import decode_ids
from pipeline.task.batch import Batch
from pipeline.task.task import Task

EXPLAIN_INTERVAL: Final = 1.0
"""Seconds between two predictions that are explained."""
KEPT: Final = 10
"""Explained predictions that are kept."""


class _Interaction(NamedTuple):
    ids: tuple[Id, ...]
    timestamp: int


class ScoreTerm(msgspec.Struct, frozen=True):
    """A part of a score: see `pipeline.model.score_terms.Term`."""

    kind: str
    name: str
    value: float


class ExplainedPrediction(msgspec.Struct, frozen=True):
    """A prediction, and the terms that its score is the sum of."""

    partition: int
    sequence: int
    event_id: str
    ids: dict[str, str]
    """By what each entity is called."""
    timestamp: int
    """Event time, in milliseconds."""
    score: float
    probability: float | None
    predicted: bool | float
    terms: list[ScoreTerm]


class LatestExplanations:
    """Explains a few of the predictions, and keeps those of them that were committed last.

    Attributes
    ----------
    predictions
        The explained predictions that were committed last, the newest first. Replaced, never changed.
    """

    def __init__(self) -> None:
        self.predictions: tuple[ExplainedPrediction, ...] = ()
        self._committed = deque[ExplainedPrediction](maxlen=KEPT)
        self._pending: list[ExplainedPrediction] = []
        """Explained, and not committed yet."""
        self._next = 0.0
        """When the next prediction may be explained."""
        self._explained: dict[int, float] = {}
        """When a prediction of each partition was explained last."""

    def look(self, parts: Sequence[tuple[Task, Batch]]) -> None:
        """Explain the last prediction of one of the batches, unless one was explained a moment ago.

        Partitions take turns.

        Parameters
        ----------
        parts
            Tasks with the batches that they have just processed.
        """
        now = time.monotonic()
        if now < self._next:
            return
        for task, batch in sorted(parts, key=lambda part: self._explained.get(part[0].partition, 0.0)):
            if (found := explain_last(task, batch)) is not None:
                self._pending.append(found)
                self._explained[task.partition], self._next = now, now + EXPLAIN_INTERVAL
                return

    def committed(self, partition: int, end: int) -> None:
        """Keep what was explained of a partition's predictions before a sequence, which were committed."""
        for found in [each for each in self._pending if each.partition == partition and each.sequence < end]:
            self._pending.remove(found)
            self._committed.appendleft(found)
            self.predictions = tuple(self._committed)

    def forget_pending(self) -> None:
        """Forget what was not committed: its transaction was given up."""
        self._pending.clear()


def explain_last(task: Task, batch: Batch) -> ExplainedPrediction | None:
    """Explain the last prediction of a batch that a task has just processed.

    Returns
    -------
    ExplainedPrediction or None
        None if there is none, or if the model has learned since: the terms would be those of another score.
    """
    predictions, model = batch.predictions, task.model
    if not len(predictions) or predictions.versions[-1] != model.outcomes_learned:
        return None
    last = predictions.ids.select(np.array([len(predictions) - 1]))
    event_id, *ids = (last.column(number).decode(decode_ids)[0] for number in range(len(last.begins)))
    timestamp, written = int(predictions.timestamps[-1]), float(predictions.scores[-1])
    score, terms = score_terms(model, _Interaction(tuple(ids), timestamp), predictions.features[-1].tolist())
    if score != written:
        return None
    words = map(entity_word, model.features.entity_names)
    return ExplainedPrediction(
        task.partition,
        predictions.first + predictions.records - 1,
        str(event_id),
        dict(zip(words, map(str, ids), strict=True)),
        timestamp,
        score,
        predictions.probabilities[-1],
        predictions.predicted[-1],
        [ScoreTerm(*term) for term in terms],
    )
