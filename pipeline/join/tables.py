"""Tables of the join: predictions wait for their label, early labels for their interaction.

Pure state, moved only by calls: no clock, no I/O. Time is stream time. A prediction at time t waits
until t + `window`; after that it expires. A label waits `early` for its interaction; after that it
is an orphan. Closed events are remembered for one more window, so that duplicates and late labels are
recognised.

Each table has a capacity. Above it, the entry that is due next leaves before its deadline.

Predictions that wait and closed events are rows (`pipeline.join.event_rows`), found by a keyed digest of the
event's id. Where there is a store, only the newest predictions are in memory, and older ones are in it
(`pipeline.join.spill`). Which they are changes nothing but the memory that they take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.config.settings import Join as JoinSettings
from pipeline.join.answered_events import AnsweredEvents
from pipeline.join.digests import KEY_BYTES, Digester, Digests
from pipeline.join.early_labels import EarlyLabels
from pipeline.join.event_rows import NEVER, NO_ROW, EventRows, Integers
from pipeline.join.identity import identify_by
from pipeline.join.pending_predictions import PendingPredictions
from pipeline.join.prediction_columns import PredictionColumns
from pipeline.join.records import EarlyLabel, Pending
from pipeline.join.spill import SpilledPredictions
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.outputs import Outcome
from pipeline.records.texts import Texts

MAX_TIME: Final = 2**62
"""Later than any timestamp."""


class Due(NamedTuple):
    """Predictions by deadline and number."""

    deadlines: Integers
    """In milliseconds, shape (n,), as the others."""
    numbers: Integers
    """As `pipeline.join.records.Pending.sequence`."""
    rows: Integers
    """Their rows in memory; `NO_ROW` of those that are spilled."""
    spilled: Integers
    """Their rows among those that are spilled; `NO_ROW` of those in memory."""

    def select(self, places: Integers) -> Due:
        """Return some of them."""
        return Due(*(column[places] for column in self))


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

    Attributes
    ----------
    identify
        Returns the event by which the tables find something.
    digester
        Makes the digests of events.
    pending
        Predictions in memory without an outcome.
    spilled
        Older predictions without an outcome; None where all are in memory.
    closed
        The events with an outcome that are remembered. Their numbers are twice the sequence of the newest
        outcome, and 1 more if it has no label.
    answered
        The same, where labels may be corrected; else None.
    early_labels
        Labels that wait for their interaction.
    """

    def __init__(
        self,
        settings: JoinSettings,
        spilled: SpilledPredictions | None = None,
        item_entities: Sequence[int] = (),
    ) -> None:
        self.identify = identify_by(item_entities)
        self.digester = Digester(bytes(KEY_BYTES)) if spilled is None else spilled.digester
        self._item_entities = item_entities
        self.window = settings.window
        self.early = settings.early
        self.early_bytes = settings.early_bytes
        self.max_pending = settings.max_pending
        self.max_in_memory = settings.max_in_memory
        self.max_closed = settings.max_closed
        self.pending = PendingPredictions()
        self.spilled = spilled
        self.answered = None if settings.corrections == "off" else AnsweredEvents()
        self.closed = EventRows() if self.answered is None else self.answered
        self.replaces = settings.corrections == "replace"
        """Whether a corrected label is learned in place of the former one, and not beside it."""
        self.early_labels = EarlyLabels(settings.early)

    def digests_of(self, ids: Texts) -> Digests:
        """Return the digests of the events of rows, shape (n, 2)."""
        return self.digester.digests_of(ids, self._item_entities)

    @property
    def pending_count(self) -> int:
        """Number of predictions without an outcome."""
        return len(self.pending) + (0 if self.spilled is None else len(self.spilled))

    def first_due(self, time: int, more: int, most: int) -> Due:
        """Return the predictions that may expire.

        Parameters
        ----------
        time
            Those overdue then are among them, in milliseconds.
        more
            So many predictions come until then: there may be no room for as many.
        most
            The largest number to return.
        """
        excess = max(0, self.pending_count + more - self.max_pending)
        pending, rows = self.pending, self.pending.first_rows(time, excess, most)
        due = Due(pending.deadlines[rows], pending.numbers[rows], rows, np.full(len(rows), NO_ROW))
        if not self.spilled or (self._spilled_deadline() >= time and not excess):
            return due
        rows = self.spilled.first_rows(time - self.window, most)
        if len(rows) < excess:
            rows = self.spilled.first_rows(MAX_TIME, min(excess, most))
        deadlines, numbers = self.spilled.timestamps(rows) + self.window, self.spilled.sequences(rows)
        spilled = Due(deadlines, numbers, np.full(len(rows), NO_ROW), rows)
        both = Due(*map(np.concatenate, zip(spilled, due, strict=True)))
        return both.select(np.lexsort((both.numbers, both.deadlines))[:most])

    def digests_due(self, due: Due) -> Digests:
        """Return the digests of the events of predictions, shape (n, 2)."""
        in_memory = due.rows != NO_ROW
        digests = np.empty((len(in_memory), 2), dtype=np.uint64)
        digests[in_memory] = self.pending.digests[due.rows[in_memory]]
        if self.spilled:
            digests[~in_memory] = self.spilled.digests(due.spilled[~in_memory])
        return digests

    def _spilled_deadline(self) -> int:
        """Return the earliest deadline of a prediction that is spilled, `NEVER` if there is none."""
        return self.spilled.first + self.window if self.spilled else NEVER

    def open_all(self, predictions: Sequence[Pending]) -> None:
        """Let predictions wait that were made before. Their events are all new, and differ."""
        if not predictions:
            return
        columns = PredictionColumns.of(predictions)
        deadlines = columns.timestamps + self.window
        digests = self.digests_of(columns.ids)
        rows = self.pending.open(digests, columns.numbers, deadlines, columns.versions, columns.ids)
        if predictions[0].scored:
            self.pending.store(rows, columns, np.arange(len(columns)))

    def store(self, predictions: PredictionColumns, outcome: int) -> None:
        """Keep what the model predicted, for predictions that wait in memory or may be corrected.

        Parameters
        ----------
        predictions
            Predictions of a batch, at least one.
        outcome
            The first outcome that may be of these predictions.
        """
        numbers, pending = predictions.numbers, self.pending
        rows = pending.live(pending.from_number(int(numbers[0])))
        places = np.searchsorted(numbers, pending.numbers[rows])
        inside = places < len(numbers)
        inside[inside] = numbers[places[inside]] == pending.numbers[rows[inside]]
        pending.store(rows[inside], predictions, places[inside])
        if self.answered is not None:
            self.answered.store_predicted(outcome, predictions)

    def remembered_until(
        self, due: Integers, label_timestamps: Integers, corrects: NDArray[np.bool_]
    ) -> Integers:
        """Return the stream time until which closed events are remembered: one window after they were closed.

        Parameters
        ----------
        due
            When the predictions expired, or would have, shape (n,).
        label_timestamps
            The times of their labels, `NO_TIMESTAMP` where none came, shape (n,).
        corrects
            Which are corrections, shape (n,). These do not shorten how long their events are remembered. Else
            a restart would remember others where the table is full.
        """
        closed_at = np.where(label_timestamps == NO_TIMESTAMP, due, label_timestamps)
        return np.where(corrects, np.maximum(closed_at, due), closed_at) + self.window

    def remember(
        self, digests: Digests, until: Integers, sequences: Sequence[int], expired: NDArray[np.bool_]
    ) -> None:
        """Remember closed events, where labels are not corrected.

        Parameters
        ----------
        digests
            Digests of their events, shape (n, 2). If one comes twice, the later one counts.
        until
            How long they are remembered, shape (n,).
        sequences
            Sequences of their outcomes, ascending.
        expired
            Whether no label came.
        """
        last = self._forget_former(digests)
        numbers = 2 * np.array(sequences, dtype=np.int64) + expired
        self.closed.append(digests[last], numbers[last], until[last])
        self._forget_excess()

    def remember_outcomes(self, outcomes: Sequence[Outcome], stream_time: int) -> None:
        """Remember the events of outcomes of a log, of which some may be of one event."""
        if not outcomes:
            return
        timestamps = np.array([each.timestamp for each in outcomes], dtype=np.int64)
        known_at = [
            NO_TIMESTAMP if each.label_timestamp is None else each.label_timestamp for each in outcomes
        ]
        corrects = np.array([each.corrects for each in outcomes])
        until = self.remembered_until(timestamps + self.window, np.array(known_at, dtype=np.int64), corrects)
        ids = Texts.of_id_rows([(each.event_id, *each.ids) for each in outcomes])
        digests = self.digests_of(ids)
        last = self._forget_former(digests)
        rows = last[until[last] >= stream_time]
        if not len(rows):
            return
        kept = [outcomes[row] for row in rows.tolist()]
        if self.answered is None:
            expired = np.array([each.watch_ratio is None for each in kept])
            self.remember(digests[rows], until[rows], [each.sequence for each in kept], expired)
            return
        self.answered.add(digests[rows], until[rows], kept, self.digester.digests_of_rows(ids)[rows])
        self._forget_excess()

    def _forget_former(self, digests: Digests) -> Integers:
        """Forget events that come again; return the row of the last digest of each event, ascending."""
        last = np.arange(len(digests))
        if len(np.unique(digests[:, 0])) < len(digests):
            _, reversed_rows = np.unique(digests[::-1], axis=0, return_index=True)
            last = np.sort(len(digests) - 1 - reversed_rows)
        former = self.closed.find(digests[last])
        self.closed.remove(former[former != NO_ROW])
        return last

    def forget(self, stream_time: int) -> None:
        """Forget closed events that are due, or for which there is no room, by deadline."""
        self.closed.remove_until(stream_time)
        self._forget_excess()

    def _forget_excess(self) -> None:
        if (excess := len(self.closed) - self.max_closed) > 0:
            self.closed.remove_first(excess)

    def spill(self, take_records: Callable[[Integers], Sequence[bytes]]) -> None:
        """Spill the oldest predictions, if more than `max_in_memory` are in memory.

        Parameters
        ----------
        take_records
            Gives the records of predictions of these sequences, which ascend.
        """
        if self.spilled is None:
            return
        pending = self.pending
        if (count := len(pending) - self.max_in_memory) > 0:
            rows = pending.live()[:count]
            numbers = pending.numbers[rows]
            self.spilled.append(
                pending.digests[rows],
                take_records(numbers),
                timestamps=pending.deadlines[rows] - self.window,
                sequences=numbers,
                versions=pending.integers("versions")[rows],
            )
            pending.remove(rows)
        self.spilled.compact()

    def wait_for_interactions(self, labels: Sequence[EarlyLabel]) -> None:
        """Let labels wait for their interactions, none of whose events has one waiting."""
        if labels:
            ids = Texts.of_id_rows([(each.label.event_id, *each.label.ids) for each in labels])
            self.early_labels.add(self.digests_of(ids), labels)

    def lowest_needed(self, next_prediction: int, next_outcome: int) -> tuple[int, int]:
        """Return the numbers from which predictions and outcomes are read to restore these tables.

        An outcome's sequence is never below the `model_version` of its prediction, which is how far
        back outcomes are needed to know which predictions are still pending.
        """
        row = self.pending.oldest()
        lowest_prediction = next_prediction if row == NO_ROW else int(self.pending.numbers[row])
        lowest_outcome = next_outcome if row == NO_ROW else int(self.pending.integers("versions")[row])
        if self.spilled:
            lowest_prediction, lowest_outcome = self.spilled.lowest
        row = self.closed.oldest()
        return lowest_prediction, (
            lowest_outcome if row == NO_ROW else min(lowest_outcome, int(self.closed.numbers[row]) // 2)
        )
