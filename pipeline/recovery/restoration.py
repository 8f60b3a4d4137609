"""Restore a partition's task from its last committed state record and the log since."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import attrgetter
from typing import Protocol

import numpy as np

from pipeline.config.stream import MAX_ITEMS
from pipeline.errors import StateError
from pipeline.join.records import Pending
from pipeline.log.outputs import OutcomeChunk, PredictionChunk
from pipeline.log.partition_log import PartitionLog
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.outcome_decoder import DecodedOutcomes
from pipeline.records.outputs import Outcome, Prediction
from pipeline.recovery.sequence_set import SequenceSet
from pipeline.task.state import OffsetIndex, State
from pipeline.task.task import Task

INDEX_INTERVAL = 1_000
"""Records between two entries of an offset index."""


class WrittenTexts(Protocol):
    """Keeps the texts of records that outcomes will need."""

    def restore(self, predictions: Sequence[Prediction]) -> None:
        """Keep those of predictions that wait for their label in memory, in the order of their sequences."""

    def restore_answered(self, outcomes: Sequence[Outcome]) -> None:
        """Keep those of outcomes whose labels may be corrected, in the order of their sequences."""


class TaskRestorer:
    """Reads outcomes, then predictions, each in order; `finish` checks that it all adds up.

    Parameters
    ----------
    task
        The task of the state record: see `Task.restore`.
    state
        The last committed state record, see `pipeline.recovery.state_reader.read_snapshot`.
    texts
        Keeps texts of records that are read.
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
        texts: WrittenTexts,
        most_items: int = MAX_ITEMS,
    ) -> None:
        self.task = task
        self.state = state
        self._texts = texts
        self._next_outcome = min(state.outcomes_from, task.model.outcomes_learned)
        self._next_prediction = state.pending_from
        self._closed = SequenceSet()
        join, most = task.join, most_items if task.model.features.item_entities else 1
        in_memory = max(1, join.max_in_memory // most)
        self.spill_below = max(0, state.predictions - in_memory) if join.spilled is not None else 0

    @property
    def left(self) -> int:
        """Number of records still to be read."""
        state = self.state
        return state.outcomes - self._next_outcome + state.predictions - self._next_prediction

    def read(self, log: PartitionLog) -> Iterator[int]:
        """Read what the state record counts; yield how many records are left, also while some are waited for.

        Parameters
        ----------
        log
            The log of the partition.

        Raises
        ------
        StateError
            The log does not fit the state record, or cannot be learned.
        """
        state = self.state
        begin = min(state.snapshot.outcome_offset if state.snapshot else 0, state.outcome_offset)
        for outcomes in log.outcomes(begin, first=self._next_outcome, stop=state.outcomes):
            self.outcomes(outcomes)
            yield self.left
        for predictions in log.predictions(
            state.prediction_offset,
            first=state.pending_from,
            stop=state.predictions,
            spill_below=self.spill_below,
        ):
            self.predictions(predictions)
            yield self.left

    def outcomes(self, chunk: OutcomeChunk) -> None:
        """Process the next outcomes of the log: learn those that are not in the snapshot."""
        outcomes, offsets = chunk
        if not len(outcomes):
            return
        model, state, outbox = self.task.model, self.state, self.task.outbox
        first = outcomes.sequences[0]
        try:
            model.learn_columns(outcomes[model.outcomes_learned - first :])
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
        join, features = self.task.join, self.task.model.features
        if join.answered is not None or features.item_entities:
            records = [outcomes.record(row) for row in range(len(outcomes))]
            join.remember_outcomes(records, self.state.stream_time)
            if join.answered is not None and records:
                remembered = {*join.answered.sequences(records[0].sequence).tolist()}
                self._texts.restore_answered([each for each in records if each.sequence in remembered])
            return
        corrects = np.zeros(len(outcomes), dtype=np.bool_)  # they were corrected before, under other settings
        corrects[[row for row, record in outcomes.records.items() if record.corrects]] = True
        due = outcomes.timestamps + join.window
        until = join.remembered_until(due, outcomes.label_timestamps, corrects)
        rows = np.flatnonzero(until >= self.state.stream_time)
        events = outcomes.events.select(rows)
        join.remember(
            join.digester.digests_in(events.text, events.begins, events.ends),
            until[rows],
            [outcomes.sequences[row] for row in rows.tolist()],
            outcomes.label_timestamps[rows] == NO_TIMESTAMP,
        )

    def predictions(self, chunk: PredictionChunk) -> None:
        """Process the next predictions of the log: each waits for its label, unless it has an outcome."""
        needed = bisect_left(chunk.sequences, self.state.pending_from)
        sequences, offsets = chunk.sequences[needed:], chunk.offsets[needed:]
        if not sequences:
            return
        rows = bisect_left(chunk.predictions, self.state.pending_from, key=attrgetter("sequence"))
        predictions = chunk.predictions[rows:]
        self._next_prediction = sequences[-1] + 1
        waits = [prediction.number not in self._closed for prediction in predictions]
        waiting = list(compress(predictions, waits))
        if self.spill_below:
            waiting = self._spill(waiting, list(compress(chunk.texts[rows:], waits)))
        self.task.join.open_all([*map(Pending.of, waiting)])
        self._texts.restore(waiting)
        _index_offsets(self.task.prediction_offsets, sequences[0], offsets)

    def _spill(self, waiting: list[Prediction], texts: list[bytes]) -> list[Prediction]:
        """Spill the predictions that are to be spilled, and return the others."""
        number = bisect_left(waiting, self.spill_below, key=attrgetter("sequence"))
        if number and self.task.join.spilled is not None:
            older = waiting[:number]
            self.task.join.spilled.append(
                self.task.join.digester.digests(map(self.task.join.identify, older)),
                texts[:number],
                timestamps=np.array([each.timestamp for each in older], dtype=np.int64),
                sequences=np.array([each.number for each in older], dtype=np.int64),
                versions=np.array([each.model_version for each in older], dtype=np.int64),
            )
        return waiting[number:]

    def finish(self) -> Task:
        """Check that it all adds up; return the task as it was when the state record was written."""
        task, state = self.task, self.state
        task.join.forget(task.stream_time)
        pending = task.join.pending_count
        if pending != state.pending:
            raise StateError(
                f"the log of partition {task.partition} does not add up to its state record: "
                f"{pending} predictions wait for their label where {state.pending} should"
            )
        return task


def _index_offsets(index: OffsetIndex, first: int, offsets: Sequence[int]) -> None:
    """Note the offsets of some records, of which the first has this sequence."""
    for row in range(-first % INDEX_INTERVAL, len(offsets), INDEX_INTERVAL):
        index.add(first + row, offsets[row])
