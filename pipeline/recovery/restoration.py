"""A partition's task from its last committed state record and the log since."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StateError
from pipeline.join.tables import Pending
from pipeline.records.outputs import Outcome, Prediction
from pipeline.task.sharing import Reception
from pipeline.task.state import Marks, State
from pipeline.task.task import Task

MARK_EVERY = 1_000
"""Records between two marks that are noted while reading."""


class Restoration:
    """Reads outcomes, then predictions, each in order; `finish` checks that the whole fits together.

    Parameters
    ----------
    task
        New, its model restored from the record's snapshot if there is one.
    state
        The last committed state record, see `pipeline.recovery.state_reader.read_snapshot`.
    """

    def __init__(self, task: Task, state: State) -> None:
        self.task = task
        self.state = state
        self._next_outcome: int | None = None
        self._first_outcome = min(state.outcomes_from, task.model.folded)
        self._next_prediction = state.pending_from
        self._closed: set[int] = set()
        task.prediction_marks = Marks(state.prediction_offset)
        task.outcome_marks = Marks(state.outcome_offset)
        task.stream_time = state.stream_time
        task.predicted = state.predictions
        task.counters.update({name: state.counters.get(name, 0) for name in task.counters})
        task.snapshot, task.previous = state.snapshot, state.previous
        task.earlier = state.earlier
        task.reception = Reception(task.partition, state.taken)
        for saved in state.waiting:
            task.join.hold(saved.restore())

    @property
    def outcomes_left(self) -> int:
        """Outcomes still to be read."""
        return self.state.outcomes - self._expected_outcome

    @property
    def predictions_left(self) -> int:
        """Predictions still to be read."""
        return self.state.predictions - self._next_prediction

    @property
    def left(self) -> int:
        """Records still to be read."""
        return self.outcomes_left + self.predictions_left

    def outcomes(
        self,
        outcomes: Sequence[Outcome],
        offsets: Sequence[int],
        features: NDArray[np.float64] | None = None,
    ) -> None:
        """Take the next outcomes of the log: fold those that the snapshot does not hold.

        Parameters
        ----------
        outcomes, offsets
            In the order of the log.
        features
            Those of the outcomes, shape (n, features), where they are at hand.
        """
        if not outcomes:
            return
        model, state, join, publication = self.task.model, self.state, self.task.join, self.task.publication
        sequences = [outcome.sequence for outcome in outcomes]
        first = self._expected_outcome
        if self._next_outcome is None:
            first = min(first, sequences[0])
        self._refuse_others("outcome", sequences, offsets, range(first, state.outcomes))
        new = slice(model.folded - first, None)
        model.fold_many(outcomes[new], None if features is None else features[new])
        if publication is not None:
            for outcome in outcomes[max(0, publication.next - first) :]:
                publication.add(outcome.example)
        self._next_outcome = first + len(outcomes)
        for outcome in outcomes[max(0, state.outcomes_from - first) :]:
            if outcome.prediction_sequence >= state.pending_from:
                self._closed.add(outcome.prediction_sequence)
            times = (outcome.timestamp, outcome.label_timestamp)
            if join.remembered_until(*times) >= state.stream_time:
                join.remember(outcome.event_id, *times, outcome.sequence)
        _mark(self.task.outcome_marks, first, offsets)

    def predictions(self, predictions: Sequence[Prediction], offsets: Sequence[int]) -> None:
        """Take the next predictions of the log: each waits for its label, unless it has an outcome."""
        state, first = self.state, self._next_prediction
        sequences = [prediction.sequence for prediction in predictions]
        needed = next(
            (place for place, sequence in enumerate(sequences) if sequence >= state.pending_from),
            len(sequences),
        )
        predictions, offsets, sequences = predictions[needed:], offsets[needed:], sequences[needed:]
        self._refuse_others("prediction", sequences, offsets, range(first, state.predictions))
        self._next_prediction += len(predictions)
        for prediction in predictions:
            if prediction.sequence not in self._closed:
                self.task.join.open(Pending.of(prediction))
        _mark(self.task.prediction_marks, first, offsets)

    def finish(self) -> Task:
        """The task, as it was when the state record was committed."""
        if self.outcomes_left:
            raise self._missing("outcome", self._expected_outcome, "at the end")
        if self.predictions_left:
            raise self._missing("prediction", self._next_prediction, "at the end")
        task, state = self.task, self.state
        task.join.forget(task.stream_time)
        pending = len(task.join.pending)
        if pending != state.pending:
            raise StateError(
                f"the log of partition {task.partition} does not add up to its state record: "
                f"{pending} predictions wait for their label where {state.pending} should"
            )
        return task

    @property
    def _expected_outcome(self) -> int:
        """The next outcome; before any was read, the latest that the log may begin with."""
        return self._first_outcome if self._next_outcome is None else self._next_outcome

    def _refuse_others(self, kind: str, sequences: list[int], offsets: Sequence[int], due: range) -> None:
        """Refuse the first record that is not the next of those that are due."""
        if sequences == list(due[: len(sequences)]):
            return
        for sequence, offset, expected in zip(sequences, offsets, count(due.start)):
            if not expected <= sequence < due.stop:
                raise self._stray(kind, sequence, offset)
            if sequence > expected:
                raise self._missing(kind, expected, f"before offset {offset}")

    def _missing(self, kind: str, sequence: int, where: str) -> StateError:
        return StateError(f"{kind} {sequence} of partition {self.task.partition} is missing {where}")

    def _stray(self, kind: str, sequence: int, offset: int) -> StateError:
        return StateError(
            f"{kind} {sequence} of partition {self.task.partition} at offset {offset} is not covered by "
            "the committed state record: something else writes to this topic, or offsets were set back"
        )


def _mark(marks: Marks, first: int, offsets: Sequence[int]) -> None:
    """Note where some of the records are, of which the first has this sequence."""
    for place in range(-first % MARK_EVERY, len(offsets), MARK_EVERY):
        marks.add(first + place, offsets[place])
