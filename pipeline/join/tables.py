"""Tables of the join: predictions wait for their label, early labels for their interaction.

Pure state, moved only by calls: no clock, no I/O. Time is stream time. A prediction at time t waits
until t + `window`; after that it expires. A label waits `early` for its interaction; after that it
is an orphan. Closed events are remembered for one more window, so that duplicates and late labels are
recognised.

Each table has a capacity. Above it, the entry that is due next leaves before its deadline.

Where there is a store, the newest predictions that wait are objects, and older ones are in it
(`pipeline.join.spill`). Which they are changes nothing but the memory that they take.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np

from pipeline.config.tree import Join as JoinSettings
from pipeline.join.identity import identify_by
from pipeline.join.merge import Integers
from pipeline.join.spill import SpilledPredictions
from pipeline.join.timers import NEVER, TimerQueue
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.fields import Id
from pipeline.records.inputs import Label, RawMessage
from pipeline.records.outputs import Outcome, Prediction


class ChallengerScores(msgspec.Struct, frozen=True, gc=False):
    """Scores that challengers gave to an interaction."""

    names: tuple[str, ...]
    """One object for all predictions of a batch."""
    scores: bytes
    """Float64, in the order of the names."""

    @classmethod
    def of(cls, scores: Mapping[str, float], names: tuple[str, ...] | None = None) -> ChallengerScores:
        """Return the scores of a prediction; `names` is the tuple to share, if there is one."""
        return cls(names or tuple(scores), array("d", scores.values()).tobytes())

    def by_name(self) -> dict[str, float]:
        """Return the scores by name."""
        return dict(zip(self.names, np.frombuffer(self.scores).tolist(), strict=True))


class Pending(msgspec.Struct, gc=False):
    """A prediction that waits for its label. The model's output is filled in when its batch is run.

    Numbers are kept as bytes: as single objects they would be most of what a worker holds, and scattered all
    over its memory.
    """

    event_id: Id
    ids: tuple[Id, ...]
    timestamp: int
    model_version: int
    sequence: int
    """Of a slate's item, `pipeline.records.slates.item_number`."""
    scored: bytes = b""
    """Score, then features, float64."""
    asked: bool | None = None
    """Whether its label was asked for; None where all labels are learned as they come."""
    challengers: ChallengerScores | None = None
    """None where there were no challengers."""
    record: Prediction | None = None
    """The record, of a prediction that was spilled."""

    @classmethod
    def of(cls, prediction: Prediction) -> Pending:
        """Return the waiting prediction of a record."""
        challengers = prediction.challengers
        return cls(
            prediction.event_id,
            prediction.ids,
            prediction.timestamp,
            prediction.model_version,
            prediction.number,
            array("d", [prediction.score, *prediction.features]).tobytes(),
            prediction.asked,
            None if challengers is None else ChallengerScores.of(challengers),
        )

    @classmethod
    def of_spilled(cls, prediction: Prediction) -> Pending:
        """Return the waiting prediction of a record that was spilled."""
        pending = cls.of(prediction)
        pending.record = prediction
        return pending


class EarlyLabel(NamedTuple):
    """A label that came before its interaction, with its message in case none comes."""

    label: Label
    source: RawMessage


class Answered(NamedTuple):
    """A closed event whose label may still be corrected."""

    prediction: Pending
    value: float | None
    """The newest label's; None where none came."""
    label_timestamp: int | None
    learned: float | None
    """The value that was learned; None where nothing was."""

    @classmethod
    def of(cls, outcome: Outcome) -> Answered:
        """Return what an outcome closed."""
        challengers, value = outcome.challengers, outcome.watch_ratio
        prediction = Pending(
            outcome.event_id,
            outcome.ids,
            outcome.timestamp,
            outcome.model_version,
            outcome.prediction_sequence,
            array("d", [outcome.score, *outcome.decoded_features()]).tobytes(),
            outcome.asked,
            None if challengers is None else ChallengerScores.of(challengers),
        )
        learned = None if outcome.label is None else value or 0.0
        return cls(prediction, value, outcome.label_timestamp, learned)


class Join:
    """The join's tables.

    Parameters
    ----------
    settings
        How long predictions and labels wait, and how much room there is for them.
    spilled
        Takes the oldest predictions beyond `JoinSettings.max_in_memory`; None to hold all in memory.
    item_entities
        The numbers of the entities that each item of a slate names. Where there are such, tables have entries
        of items, and their events are those of `pipeline.join.identity`.
    """

    def __init__(
        self,
        settings: JoinSettings,
        spilled: SpilledPredictions | None = None,
        item_entities: Sequence[int] = (),
    ) -> None:
        self.identify = identify_by(item_entities)
        """Returns the event by which the tables find something."""
        self.window = settings.window
        self.early = settings.early
        self.early_bytes = settings.early_bytes
        self.max_pending = settings.max_pending
        self.max_in_memory = settings.max_in_memory
        self.max_closed = settings.max_closed
        self.corrections = settings.corrections
        self.pending: dict[Id, Pending] = {}
        """Predictions without an outcome, in the order in which they were made, but for those spilled."""
        self.spilled = spilled
        """Older predictions without an outcome; None where all are in memory."""
        self.closed: dict[Id, int] = {}
        """The outcomes not yet forgotten, in their order: twice the sequence, and 1 more if it expired."""
        self.answered: dict[Id, Answered] = {}
        """The closed events whose labels may be corrected; empty unless they may."""
        self.waiting: dict[Id, EarlyLabel] = {}
        """Early labels, in the order in which they came."""
        self.waiting_bytes = 0
        """Size of the messages of early labels."""
        self._expiry_timers = TimerQueue(self.pending, attrgetter("sequence"), self.over_capacity)
        self._closed_timers = TimerQueue(self.closed, int, self._closed_over_capacity)
        self._early_timers = TimerQueue(self.waiting, attrgetter("source.offset"), self._early_over_capacity)

    def knows(self, event_id: Id) -> bool:
        """Whether the event was predicted, as far as memory goes."""
        return self.knows_any([event_id])

    def knows_any(self, event_ids: Collection[Id]) -> bool:
        """Whether any of the events was predicted, as far as memory goes."""
        known = any(each in self.pending or each in self.closed for each in event_ids)
        return known or self._spilled_any(event_ids)

    @property
    def pending_count(self) -> int:
        """Number of predictions without an outcome."""
        return len(self.pending) + (0 if self.spilled is None else len(self.spilled))

    def find(self, event_id: Id) -> Pending | None:
        """Return the prediction of an event that waits, if there is one."""
        found = self.find_all([event_id])
        return None if found is None else found[0]

    def find_all(self, event_ids: list[Id]) -> list[Pending] | None:
        """Return the predictions of events, all of which wait; None if one does not."""
        try:
            return list(map(self.pending.__getitem__, event_ids))
        except KeyError:
            if not self.spilled:
                return None
        elsewhere = [event_id for event_id in event_ids if event_id not in self.pending]
        records = self.spilled.find_all(elsewhere)
        if records is None:
            return None
        spilled = map(Pending.of_spilled, records)
        return [self.pending.get(event_id) or next(spilled) for event_id in event_ids]

    def has_expired(self, event_id: Id) -> bool:
        """Whether the event is known as one whose prediction expired."""
        return self.closed.get(event_id, 0) % 2 == 1

    def deadline(self, prediction: Pending) -> int:
        """Return the last moment at which the prediction's label is in time, in milliseconds."""
        return prediction.timestamp + self.window

    def nothing_due(self, stream_time: int) -> bool:
        """Whether at this time nothing has expired, waited too long or is to be forgotten."""
        return (
            stream_time <= self._closed_timers.first
            and stream_time <= self._expiry_timers.first
            and stream_time <= self._early_timers.first
            and stream_time <= self._spilled_deadline()
        )

    def next_deadline(self) -> int:
        """Return the last stream time at which no prediction has expired and no early label is an orphan."""
        return min(self._expiry_timers.next(), self._early_timers.next(), self._spilled_deadline())

    def has_room(self, predictions: int, outcomes: int) -> bool:
        """Tell whether the tables have room for so many more entries."""
        return (
            self.pending_count + predictions <= self.max_pending
            and len(self.closed) + outcomes <= self.max_closed
        )

    def are_new(self, event_ids: dict[Id, int]) -> bool:
        """Whether none of the events is known or has a label that waits."""
        return (
            self.pending.keys().isdisjoint(event_ids)
            and self.closed.keys().isdisjoint(event_ids)
            and self.waiting.keys().isdisjoint(event_ids)
            and not self._spilled_any(event_ids)
        )

    def open(self, prediction: Pending) -> None:
        """Let a prediction wait for its label."""
        event_id = self.identify(prediction)
        self.pending[event_id] = prediction
        self._expiry_timers.add(prediction.timestamp + self.window, prediction.sequence, event_id)

    def close(self, prediction: Pending, label_timestamp: int | None, sequence: int) -> None:
        """End a prediction's wait with an outcome of this sequence; remember how for one more window."""
        self._drop([prediction])
        self.remember(self.identify(prediction), prediction.timestamp, label_timestamp, sequence)

    def open_all(self, predictions: list[Pending]) -> None:
        """`open` each; their events are all new."""
        event_ids = [*map(self.identify, predictions)]
        deadlines = np.array([each.timestamp for each in predictions], dtype=np.int64) + self.window
        self.pending.update(zip(event_ids, predictions, strict=True))
        self._expiry_timers.add_all(
            deadlines, np.array([each.sequence for each in predictions], dtype=np.int64), event_ids
        )

    def close_all(
        self, waited: list[Pending], event_ids: list[Id], label_timestamps: Integers, first: int
    ) -> None:
        """`close` the predictions of events, of which only these waited; the outcomes begin with `first`."""
        self._drop(waited)
        numbers = 2 * np.arange(first, first + len(event_ids))
        self.closed.update(zip(event_ids, numbers.tolist(), strict=True))
        self._closed_timers.add_all(label_timestamps + self.window, numbers, event_ids)

    def remembered_until(self, timestamp: int, label_timestamp: int | None) -> int:
        """Return the stream time until which a closed event is remembered: one window after it was closed."""
        return (timestamp + self.window if label_timestamp is None else label_timestamp) + self.window

    def remember(self, event_id: Id, timestamp: int, label_timestamp: int | None, sequence: int) -> None:
        """Remember an event as closed, with an outcome of this sequence."""
        number, known = 2 * sequence + (label_timestamp is None), self.closed
        # An id used again after it was forgotten goes to the end: `closed` stays in the order of sequences.
        known.pop(event_id, None)
        known[event_id] = number
        self._closed_timers.add(self.remembered_until(timestamp, label_timestamp), number, event_id)
        if len(known) > self.max_closed:
            self.forget(NO_TIMESTAMP)

    def forget(self, stream_time: int) -> None:
        """Forget closed events that are due, or for which there is no room, by deadline."""
        for number, event_id in self._closed_timers.pop_until(stream_time):
            if self.closed.get(event_id) == number:
                self._forget(event_id)
        for event_id in self._closed_timers.due(stream_time):
            self._forget(event_id)

    def _forget(self, event_id: Id) -> None:
        del self.closed[event_id]
        self.answered.pop(event_id, None)

    def expired(self, stream_time: int) -> Iterator[Pending]:
        """Yield predictions that are overdue, or for which there is no room, in the order of their deadlines.

        The caller closes each before it asks for the next.
        """
        if not self.spilled:
            yield from map(self.pending.__getitem__, self._expiry_timers.due(stream_time))
            return
        while True:
            deadline = self._spilled_deadline()
            # Of equal deadlines, the lower sequence is first: that of a prediction that is spilled.
            if deadline <= self._expiry_timers.next() and self.spilled:
                if deadline >= stream_time and not self.over_capacity():
                    return
                yield Pending.of_spilled(self.spilled.head)
            elif (event_id := next(self._expiry_timers.due(stream_time), None)) is not None:
                yield self.pending[event_id]
            else:
                return

    def over_capacity(self) -> bool:
        """Whether more predictions wait than there is room for."""
        return self.pending_count > self.max_pending

    def spill(self, take_records: Callable[[Integers], Sequence[bytes]]) -> None:
        """Spill the oldest predictions, if more than `max_in_memory` are in memory.

        Parameters
        ----------
        take_records
            Gives the records of predictions of these sequences, which ascend.
        """
        if self.spilled is None:
            return
        if (number := len(self.pending) - self.max_in_memory) > 0:
            oldest = list(islice(self.pending.values(), number))
            event_ids = [*map(self.identify, oldest)]
            sequences = np.array([each.sequence for each in oldest], dtype=np.int64)
            self.spilled.append(
                event_ids,
                take_records(sequences),
                timestamps=np.array([each.timestamp for each in oldest], dtype=np.int64),
                sequences=sequences,
                versions=np.array([each.model_version for each in oldest], dtype=np.int64),
            )
            for event_id in event_ids:
                del self.pending[event_id]
        self.spilled.compact()

    def _drop(self, predictions: Sequence[Pending]) -> None:
        """Remove predictions that wait no longer."""
        spilled = list[Id]()
        for prediction in predictions:
            if prediction.record is None:
                del self.pending[self.identify(prediction)]
            else:
                spilled.append(self.identify(prediction))
        if spilled and self.spilled is not None:
            self.spilled.remove(spilled)

    def _spilled_any(self, event_ids: Collection[Id]) -> bool:
        return self.spilled.knows_any(event_ids) if self.spilled else False

    def _spilled_deadline(self) -> int:
        """Return the earliest deadline of a prediction that is spilled, `NEVER` if there is none."""
        return self.spilled.first + self.window if self.spilled else NEVER

    def add_early(self, early: EarlyLabel) -> None:
        """Let a label wait for its interaction."""
        event_id = self.identify(early.label)
        self.waiting[event_id] = early
        self.waiting_bytes += early.source.size
        self._early_timers.add(early.label.timestamp + self.early, early.source.offset, event_id)

    def pop_early(self, event_id: Id) -> EarlyLabel | None:
        """Remove and return the early label of an event, if there is one."""
        early = self.waiting.pop(event_id, None)
        if early is not None:
            self.waiting_bytes -= early.source.size
        return early

    def orphans(self, stream_time: int) -> Iterator[EarlyLabel]:
        """Remove and yield early labels that are overdue, or for which there is no room, oldest first."""
        for event_id in self._early_timers.due(stream_time):
            early = self.waiting[event_id]
            self.pop_early(event_id)
            yield early

    def _closed_over_capacity(self) -> bool:
        return len(self.closed) > self.max_closed

    def _early_over_capacity(self) -> bool:
        return self.waiting_bytes > self.early_bytes

    def lowest_needed(self, next_prediction: int, next_outcome: int) -> tuple[int, int]:
        """Return the numbers from which predictions and outcomes are read to restore these tables.

        An outcome's sequence is never below the `model_version` of its prediction, which is how far
        back outcomes are needed to know which predictions are still pending.
        """
        oldest = next(iter(self.pending.values()), None)
        lowest_prediction = next_prediction if oldest is None else oldest.sequence
        lowest_outcome = next_outcome if oldest is None else oldest.model_version
        if self.spilled:
            lowest_prediction, lowest_outcome = self.spilled.lowest
        closed = next(iter(self.closed.values()), None)
        return lowest_prediction, lowest_outcome if closed is None else min(lowest_outcome, closed // 2)
