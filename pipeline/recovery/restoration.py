"""Restore a partition's task from its last committed state record and the log since."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import attrgetter

import numpy as np

from pipeline.config.stream import MAX_ITEMS
from pipeline.errors import StateError
from pipeline.join.records import Answered, Pending
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.outcome_decoder import DecodedOutcomes
from pipeline.records.outputs import Prediction
from pipeline.recovery.sequence_set import SequenceSet
from pipeline.task.state import OffsetIndex, State
from pipeline.task.task import Task

INDEX_INTERVAL = 1_000
"""Records between two entries of an offset index."""


class TaskRestorer:
    """Reads outcomes, then predictions, each in order; `finish` checks that the whole fits together.

    Parameters
    ----------
    task
        The task of the state record: see `Task.restore`.
    state
        The last committed state record, see `pipeline.recovery.state_reader.read_snapshot`.
    keep_waiting
        Is given the predictions that wait for their label in memory, in the order of their sequences: an
        encoder needs their text for their outcomes.
    most_items
        Items of a slate, at most, where interactions are slates.

    Attributes
    ----------
    spill_below
        Predictions below this sequence are spilled if they wait: no feature of theirs is needed.
    """

    def __init__(
        self,
        task: Task,
        state: State,
        keep_waiting: Callable[[Sequence[Prediction]], None],
        most_items: int = MAX_ITEMS,
    ) -> None:
        self.task = task
        self.state = state
        self._keep_waiting = keep_waiting
        self._next_outcome: int | None = None
        self._first_outcome = min(state.outcomes_from, task.model.folded)
        self._next_prediction = state.pending_from
        self._closed = SequenceSet()
        join, most = task.join, most_items if task.model.features.item_entities else 1
        in_memory = max(1, join.max_in_memory // most)
        self.spill_below = max(0, state.predictions - in_memory) if join.spilled is not None else 0

    @property
    def remaining_outcomes(self) -> int:
        """Number of outcomes still to be read."""
        return self.state.outcomes - self._expected_outcome

    @property
    def remaining_predictions(self) -> int:
        """Number of predictions still to be read."""
        return self.state.predictions - self._next_prediction

    @property
    def left(self) -> int:
        """Number of records still to be read."""
        return self.remaining_outcomes + self.remaining_predictions

    def outcomes(self, outcomes: DecodedOutcomes, offsets: Sequence[int]) -> None:
        """Process the next outcomes of the log: learn those that are not in the snapshot.

        Parameters
        ----------
        outcomes, offsets
            In the order of the log.
        """
        if not len(outcomes):
            return
        model, state, outbox = self.task.model, self.state, self.task.outbox
        sequences, first = outcomes.sequences, self._expected_outcome
        if self._next_outcome is None:
            first = min(first, sequences[0])
        self._check_sequences("outcome", sequences, offsets, range(first, state.outcomes))
        try:
            model.learn_columns(outcomes[model.folded - first :])
        except ValueError as error:
            raise StateError(
                f"partition {self.task.partition}: the outcomes from {first} on cannot be learned: {error}. "
                "Either they or the snapshot were changed: `forks audit` tells which records"
            ) from error
        if outbox is not None:
            for row in range(max(0, outbox.next - first), len(outcomes)):
                outbox.add(outcomes.record(row).example)
        self._next_outcome = first + len(outcomes)
        needed = outcomes[max(0, state.outcomes_from - first) :]
        for sequence, number in zip(needed.prediction_sequences, needed.prediction_numbers, strict=True):
            if state.pending_from <= sequence < state.predictions:
                self._closed.add(number)
        self._remember(needed)
        _index_offsets(self.task.outcome_offsets, first, offsets)

    def _remember(self, outcomes: DecodedOutcomes) -> None:
        """Remember the events that are to be known as closed."""
        join = self.task.join
        until = join.all_remembered_until(outcomes.timestamps, outcomes.label_timestamps)
        rows = np.flatnonzero(until >= self.state.stream_time)
        sequences = [outcomes.sequences[row] for row in rows.tolist()]
        expired = outcomes.label_timestamps[rows] == NO_TIMESTAMP
        if join.corrections == "off" and not self.task.model.features.item_entities:
            begins, ends = outcomes.event_begins[rows], outcomes.event_ends[rows]
            digests = join.digester.digests_in(outcomes.text, begins, ends)
            join.remember_all(digests, until[rows], sequences, expired)
            return
        records = [outcomes.record(row) for row in rows.tolist()]
        event_ids = [join.identify(each) for each in records]
        if join.corrections == "off":
            join.remember_all(join.digests(event_ids), until[rows], sequences, expired)
            return
        for event_id, outcome in zip(event_ids, records, strict=True):
            join.remember(event_id, outcome.timestamp, outcome.label_timestamp, outcome.sequence)
            join.note_answer(event_id, Answered.of(outcome))

    def predictions(
        self,
        predictions: Sequence[Prediction],
        offsets: Sequence[int],
        texts: Sequence[bytes] | None = None,
    ) -> None:
        """Process the next predictions of the log: each waits for its label, unless it has an outcome.

        Parameters
        ----------
        predictions, offsets
            In the order of the log. Of a slate, each item is a prediction, with the offset of the slate.
        texts
            The text of each prediction; None if none is to be spilled.
        """
        state, first = self.state, self._next_prediction
        sequences = [prediction.sequence for prediction in predictions]
        needed = next(
            (row for row, sequence in enumerate(sequences) if sequence >= state.pending_from),
            len(sequences),
        )
        predictions, offsets, sequences = predictions[needed:], offsets[needed:], sequences[needed:]
        texts = None if texts is None else texts[needed:]
        numbers = [prediction.number for prediction in predictions]
        if self.task.model.features.item_entities:  # one of each slate
            records = dict(zip(sequences, offsets, strict=True))
            sequences, offsets = [*records], [*records.values()]
        self._check_sequences("prediction", sequences, offsets, range(first, state.predictions))
        self._next_prediction += len(sequences)
        waits = [number not in self._closed for number in numbers]
        waiting = list(compress(predictions, waits))
        if texts is not None:
            waiting = self._spill(waiting, list(compress(texts, waits)))
        self.task.join.open_all([*map(Pending.of, waiting)])
        self._keep_waiting(waiting)
        _index_offsets(self.task.prediction_offsets, first, offsets)

    def _spill(self, waiting: list[Prediction], texts: list[bytes]) -> list[Prediction]:
        """Spill the predictions that are to be spilled, and return the others."""
        number = bisect_left(waiting, self.spill_below, key=attrgetter("sequence"))
        if number and self.task.join.spilled is not None:
            older = waiting[:number]
            self.task.join.spilled.append(
                self.task.join.digests(map(self.task.join.identify, older)),
                texts[:number],
                timestamps=np.array([each.timestamp for each in older], dtype=np.int64),
                sequences=np.array([each.number for each in older], dtype=np.int64),
                versions=np.array([each.model_version for each in older], dtype=np.int64),
            )
        return waiting[number:]

    def finish(self) -> Task:
        """Check that nothing is missing; return the task as it was when the state record was written."""
        if self.remaining_outcomes:
            raise self._missing_record("outcome", self._expected_outcome, "at the end")
        if self.remaining_predictions:
            raise self._missing_record("prediction", self._next_prediction, "at the end")
        task, state = self.task, self.state
        task.join.forget(task.stream_time)
        pending = task.join.pending_count
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

    def _check_sequences(self, kind: str, sequences: list[int], offsets: Sequence[int], due: range) -> None:
        """Refuse the first record that is not the next of those that are due."""
        if sequences == list(due[: len(sequences)]):
            return
        for sequence, offset, expected in zip(sequences, offsets, count(due.start)):
            if not expected <= sequence < due.stop:
                raise self._uncovered_record(kind, sequence, offset)
            if sequence > expected:
                raise self._missing_record(kind, expected, f"before offset {offset}")

    def _missing_record(self, kind: str, sequence: int, where: str) -> StateError:
        return StateError(f"{kind} {sequence} of partition {self.task.partition} is missing {where}")

    def _uncovered_record(self, kind: str, sequence: int, offset: int) -> StateError:
        return StateError(
            f"{kind} {sequence} of partition {self.task.partition} at offset {offset} is not covered by "
            "the committed state record: something else writes to this topic, or offsets were set back"
        )


def _index_offsets(index: OffsetIndex, first: int, offsets: Sequence[int]) -> None:
    """Note the offsets of some records, of which the first has this sequence."""
    for row in range(-first % INDEX_INTERVAL, len(offsets), INDEX_INTERVAL):
        index.add(first + row, offsets[row])
