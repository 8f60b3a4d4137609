"""Delayed labels: predictions wait for their label, early labels for their prediction.

Pure state, moved only by calls: no clock, no I/O. Time is stream time. A prediction at time t waits
until t + `window`; after that it expires. A label waits `early` for its interaction; after that it
is an orphan. What is closed is remembered for one more window, so that repetitions and labels that
come too late are known for what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from pipeline.records import Id, Outcome, Prediction, Source, Status, WatchLabel


class EarlyLabel(NamedTuple):
    """A label that came before its interaction, with its message in case none comes."""

    label: WatchLabel
    source: Source


class Join:
    """The join's tables.

    Parameters
    ----------
    window
        How long a prediction waits for its label, in milliseconds of stream time.
    early
        How long a label waits for its interaction, in milliseconds of stream time.
    early_bytes
        How much room the messages of early labels may take; the oldest make way.
    """

    def __init__(self, window: int, early: int, early_bytes: int) -> None:
        self.window = window
        self.early = early
        self.early_bytes = early_bytes
        self.pending: dict[Id, Prediction] = {}
        """Predictions without an outcome, in the order in which they were made."""
        self.closed: dict[Id, tuple[Status, int]] = {}
        """Status and sequence of the outcomes not yet forgotten, in the order of their sequence."""
        self.waiting: dict[Id, EarlyLabel] = {}
        """Early labels, in the order in which they came."""
        self._waiting_bytes = 0
        self._deadlines: list[tuple[int, int, Id]] = []
        self._forgettable: list[tuple[int, int, Id]] = []
        self._patience: list[tuple[int, int, Id]] = []

    def knows(self, event_id: Id) -> bool:
        """Whether the event was predicted, as far as memory goes."""
        return event_id in self.pending or event_id in self.closed

    def open(self, prediction: Prediction) -> None:
        """Let a prediction wait for its label."""
        self.pending[prediction.event_id] = prediction
        heappush(
            self._deadlines, (prediction.timestamp + self.window, prediction.sequence, prediction.event_id)
        )

    def close(self, outcome: Outcome) -> None:
        """End the wait of the outcome's prediction, and remember how for one more window."""
        del self.pending[outcome.event_id]
        self.remember(outcome)

    def remembered_until(self, outcome: Outcome) -> int:
        """The stream time up to which the outcome's event is known as closed: one window after it was."""
        closed_at = outcome.label_timestamp
        if closed_at is None:
            closed_at = outcome.timestamp + self.window
        return closed_at + self.window

    def remember(self, outcome: Outcome) -> None:
        """Know the outcome's event as closed, for one window after it was."""
        # An id used again after it was forgotten goes to the end: `closed` stays in the order of sequences.
        self.closed.pop(outcome.event_id, None)
        self.closed[outcome.event_id] = (outcome.status, outcome.sequence)
        heappush(self._forgettable, (self.remembered_until(outcome), outcome.sequence, outcome.event_id))

    def forget(self, stream_time: int) -> None:
        """Forget the closed events whose time is over."""
        while self._forgettable and self._forgettable[0][0] < stream_time:
            _, sequence, event_id = heappop(self._forgettable)
            if event_id in self.closed and self.closed[event_id][1] == sequence:
                del self.closed[event_id]

    def expired(self, stream_time: int) -> Iterator[Prediction]:
        """Predictions whose label has not come in time, by deadline; the caller closes each."""
        while self._deadlines and self._deadlines[0][0] < stream_time:
            _, sequence, event_id = heappop(self._deadlines)
            prediction = self.pending.get(event_id)
            if prediction is not None and prediction.sequence == sequence:
                yield prediction

    def hold(self, early: EarlyLabel) -> None:
        """Let a label wait for its interaction."""
        self.waiting[early.label.event_id] = early
        self._waiting_bytes += _size(early)
        deadline = early.label.timestamp + self.early
        heappush(self._patience, (deadline, early.source.offset, early.label.event_id))

    def take(self, event_id: Id) -> EarlyLabel | None:
        """The label that waits for this event, which then waits no longer."""
        early = self.waiting.pop(event_id, None)
        if early is not None:
            self._waiting_bytes -= _size(early)
        return early

    def orphans(self, stream_time: int) -> Iterator[EarlyLabel]:
        """Labels that have waited too long or for which there is no room, the oldest first; they are gone."""
        while self._patience and (
            self._patience[0][0] < stream_time or self._waiting_bytes > self.early_bytes
        ):
            _, offset, event_id = heappop(self._patience)
            early = self.waiting.get(event_id)
            if early is not None and early.source.offset == offset:
                self.take(event_id)
                yield early

    def lowest_needed(self, next_prediction: int, next_outcome: int) -> tuple[int, int]:
        """The sequences from which predictions and outcomes have to be read to build these tables again.

        An outcome's sequence is never below the `model_version` of its prediction, which is how far
        back outcomes are needed to know which predictions are still pending.
        """
        oldest = next(iter(self.pending.values()), None)
        lowest_prediction = next_prediction if oldest is None else oldest.sequence
        lowest_outcome = next_outcome if oldest is None else oldest.model_version
        closed = next(iter(self.closed.values()), None)
        return lowest_prediction, lowest_outcome if closed is None else min(lowest_outcome, closed[1])


def _size(early: EarlyLabel) -> int:
    """Bytes that the label takes in a state record, about."""
    source = early.source
    headers = sum(len(name) + len(value or b"") for name, value in source.headers)
    return len(source.key or b"") + len(source.value or b"") + headers
