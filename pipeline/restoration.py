"""A partition's task from its last committed state record and the log since."""

from __future__ import annotations

from pipeline.errors import StateError
from pipeline.records import Outcome, Prediction
from pipeline.state import Marks, State
from pipeline.task import Task

MARK_EVERY = 1_000
"""Records between two marks that are noted while reading."""

FOLD_AT_ONCE = 1_000
"""Outcomes folded together, which costs a fraction of one by one."""


class Restoration:
    """Reads outcomes, then predictions, each in order; `finish` checks that the whole fits together.

    Parameters
    ----------
    task
        New, its model restored from the record's snapshot if there is one.
    state
        The last committed state record, see `pipeline.recovery.read_snapshot`.
    """

    def __init__(self, task: Task, state: State) -> None:
        self.task = task
        self.state = state
        self._next_outcome: int | None = None
        self._first_outcome = min(state.outcomes_from, task.model.folded)
        self._next_prediction = state.pending_from
        self._closed: set[int] = set()
        self._unfolded: list[Outcome] = []
        task.prediction_marks = Marks(state.prediction_offset)
        task.outcome_marks = Marks(state.outcome_offset)
        task.stream_time = state.stream_time
        task.predicted = state.predictions
        task.counters.update({name: state.counters.get(name, 0) for name in task.counters})
        task.snapshot, task.previous = state.snapshot, state.previous
        task.earlier = state.earlier
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

    def outcome(self, outcome: Outcome, offset: int) -> None:
        """Take the next outcome of the log: fold it, unless the snapshot holds it."""
        model, sequence = self.task.model, outcome.sequence
        repeated = self._next_outcome is not None and sequence < self._next_outcome
        if repeated or sequence >= self.state.outcomes:
            raise self._stray("outcome", sequence, offset)
        if sequence > self._expected_outcome:
            raise self._missing("outcome", self._expected_outcome, f"before offset {offset}")
        if sequence == model.folded + len(self._unfolded):
            self._unfolded.append(outcome)
            if len(self._unfolded) == FOLD_AT_ONCE:
                self._fold()
        self._next_outcome = sequence + 1
        if outcome.prediction_sequence >= self.state.pending_from:
            self._closed.add(outcome.prediction_sequence)
        join = self.task.join
        if join.remembered_until(outcome) >= self.state.stream_time:
            join.remember(outcome)
        if sequence % MARK_EVERY == 0:
            self.task.outcome_marks.add(sequence, offset)

    def prediction(self, prediction: Prediction, offset: int) -> None:
        """Take the next prediction of the log: it waits for its label, unless it has an outcome."""
        sequence = prediction.sequence
        if sequence < self.state.pending_from:
            return
        if sequence < self._next_prediction or sequence >= self.state.predictions:
            raise self._stray("prediction", sequence, offset)
        if sequence > self._next_prediction:
            raise self._missing("prediction", self._next_prediction, f"before offset {offset}")
        self._next_prediction += 1
        if sequence not in self._closed:
            self.task.join.open(prediction)
        if sequence % MARK_EVERY == 0:
            self.task.prediction_marks.add(sequence, offset)

    def finish(self) -> Task:
        """The task, as it was when the state record was committed."""
        if self.outcomes_left:
            raise self._missing("outcome", self._expected_outcome, "at the end")
        if self.predictions_left:
            raise self._missing("prediction", self._next_prediction, "at the end")
        self._fold()
        task, state = self.task, self.state
        task.join.forget(task.stream_time)
        pending = len(task.join.pending)
        if pending != state.pending:
            raise StateError(
                f"the log of partition {task.partition} does not add up to its state record: "
                f"{pending} predictions wait for their label where {state.pending} should"
            )
        return task

    def _fold(self) -> None:
        self.task.model.fold_many(self._unfolded)
        self._unfolded.clear()

    @property
    def _expected_outcome(self) -> int:
        """The next outcome; before any was read, the latest that the log may begin with."""
        return self._first_outcome if self._next_outcome is None else self._next_outcome

    def _missing(self, kind: str, sequence: int, where: str) -> StateError:
        return StateError(f"{kind} {sequence} of partition {self.task.partition} is missing {where}")

    def _stray(self, kind: str, sequence: int, offset: int) -> StateError:
        return StateError(
            f"{kind} {sequence} of partition {self.task.partition} at offset {offset} is not covered by "
            "the committed state record: something else writes to this topic, or offsets were set back"
        )
