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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.config.settings import Join as JoinSettings
from pipeline.join.digests import KEY_BYTES, Digester, Digests
from pipeline.join.early_labels import EarlyLabels
from pipeline.join.event_rows import NEVER, NO_ROW, EventRows, Integers
from pipeline.join.id_texts import IdTexts
from pipeline.join.identity import identify_by
from pipeline.join.records import Answered, ChallengerScores, EarlyLabel, Pending
from pipeline.join.scored_columns import ScoredColumns
from pipeline.join.spill import SpilledPredictions
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.entities import columns_of
from pipeline.records.fields import Id
from pipeline.records.texts import Texts

MAX_TIME: Final = 2**62
"""Later than any timestamp."""
UNDECIDED: Final = -1
"""In the column that says whether a label was asked for: all labels are learned as they come."""


class WrittenIds(Protocol):
    """Ids of predictions by number, kept elsewhere."""

    def ids(self, numbers: Integers) -> list[list[Id]]:
        """Return the ids of predictions: that of its event, then that of each entity, of each."""

    def same_ids(self, numbers: Integers, ids: Texts, rows: Integers) -> NDArray[np.bool_]:
        """Return of each prediction whether it has the ids of the row beside it, shape (n,)."""


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
    """

    def __init__(
        self,
        settings: JoinSettings,
        spilled: SpilledPredictions | None = None,
        item_entities: Sequence[int] = (),
    ) -> None:
        self.identify = identify_by(item_entities)
        """Returns the event by which the tables find something."""
        self.digester = Digester(bytes(KEY_BYTES)) if spilled is None else spilled.digester
        """Makes the digests of events."""
        self.digests = self.digester.digests
        self.window = settings.window
        self.early = settings.early
        self.early_bytes = settings.early_bytes
        self.max_pending = settings.max_pending
        self.max_in_memory = settings.max_in_memory
        self.max_closed = settings.max_closed
        self.corrections = settings.corrections
        self.pending = EventRows(["versions"], {"asked": np.int8}, self._move_rows, self._resize)
        """Predictions without an outcome, but for those spilled; their numbers are `Pending.sequence`."""
        self._ids, self._ids_from = IdTexts(), 0
        """The ids of those predictions, from a row on."""
        self._written_ids: WrittenIds | None = None
        """The ids of the predictions of the rows before."""
        self.scored = ScoredColumns()
        """Their scores and features, by row."""
        self._challengers: dict[int, ChallengerScores] = {}
        """Of those predictions, by number, where there are challengers."""
        self.spilled = spilled
        """Older predictions without an outcome; None where all are in memory."""
        self.closed = EventRows()
        """The outcomes not yet forgotten. Their numbers are twice the sequence, and 1 more if it expired."""
        self._answered: dict[int, Answered] = {}
        """The closed events whose labels may be corrected, by number; empty unless they may."""
        self.early_labels = EarlyLabels(self.digests, settings.early)
        """Labels that wait for their interaction."""

    def knows_any(self, event_ids: Collection[Id]) -> bool:
        """Whether any of the events was predicted, as far as memory goes."""
        return bool(self._known(self.digests(event_ids)).any())

    @property
    def pending_count(self) -> int:
        """Number of predictions without an outcome."""
        return len(self.pending) + (0 if self.spilled is None else len(self.spilled))

    def find(self, event_id: Id) -> Pending | None:
        """Return the prediction of an event that waits, if there is one."""
        [row] = self.pending.find(self.digests([event_id])).tolist()
        if row != NO_ROW:
            return self.pending_at(row)
        records = self.spilled.find_all([event_id]) if self.spilled else None
        return None if records is None else Pending.of_spilled(records[0])

    def pending_at(self, row: int) -> Pending:
        """Return the prediction of a row."""
        pending = self.pending
        number, asked = int(pending.numbers[row]), int(pending["asked"][row])
        [[event_id, *ids]] = self.ids_of(np.array([row]))
        return Pending(
            event_id,
            tuple(ids),
            int(pending.deadlines[row]) - self.window,
            int(pending.integers("versions")[row]),
            number,
            self.scored.of(np.array([row])).tobytes(),
            None if asked == UNDECIDED else bool(asked),
            self._challengers.get(number),
        )

    def ids_of(self, rows: Integers) -> list[list[Id]]:
        """Return the ids of predictions in memory: that of the event, then that of each entity, of each."""
        written = rows < self._ids_from
        if self._written_ids is None or not written.any():
            return self._ids.of(rows - self._ids_from)
        elsewhere = iter(self._written_ids.ids(self.pending.numbers[rows[written]]))
        own = iter(self._ids.of(rows[~written] - self._ids_from))
        return [next(elsewhere if each else own) for each in written.tolist()]

    def same_ids(self, rows: Integers, ids: Texts, id_rows: Integers) -> NDArray[np.bool_]:
        """Return of each prediction in memory whether it has the ids of the row beside it, shape (n,)."""
        own = rows >= self._ids_from
        if self._written_ids is None or own.all():
            return self._ids.equal(rows - self._ids_from, ids, id_rows)
        same = np.empty(len(rows), dtype=np.bool_)
        same[own] = self._ids.equal(rows[own] - self._ids_from, ids, id_rows[own])
        same[~own] = self._written_ids.same_ids(self.pending.numbers[rows[~own]], ids, id_rows[~own])
        return same

    def read_ids_from(self, written: WrittenIds) -> None:
        """Read the ids of all predictions that are in memory elsewhere from now on, and keep none of them."""
        self._written_ids, self._ids_from = written, self.pending.end
        self._ids = IdTexts()

    def challengers_of(self, numbers: Integers) -> list[ChallengerScores | None]:
        """Return the challengers' scores of predictions in memory."""
        if not self._challengers:
            return [None] * len(numbers)
        return [*map(self._challengers.get, numbers.tolist())]

    def closed_number(self, event_id: Id) -> int | None:
        """Return the number of a closed event, which is odd if it expired; None if it is not known."""
        [row] = self.closed.find(self.digests([event_id])).tolist()
        return None if row == NO_ROW else int(self.closed.numbers[row])

    def deadline(self, prediction: Pending) -> int:
        """Return the last moment at which the prediction's label is in time, in milliseconds."""
        return prediction.timestamp + self.window

    def nothing_due(self, stream_time: int) -> bool:
        """Whether at this time nothing has expired, waited too long or is to be forgotten."""
        return (
            stream_time <= self.closed.first
            and stream_time <= self.pending.first
            and stream_time <= self.early_labels.rows.first
            and stream_time <= self._spilled_deadline()
        )

    def has_room(self, predictions: int) -> bool:
        """Whether so many more predictions may wait."""
        return self.pending_count + predictions <= self.max_pending

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

    def digests_of(self, due: Due) -> Digests:
        """Return the digests of the events of predictions, shape (n, 2)."""
        in_memory = due.rows != NO_ROW
        digests = np.empty((len(in_memory), 2), dtype=np.uint64)
        digests[in_memory] = self.pending.digests[due.rows[in_memory]]
        if self.spilled:
            digests[~in_memory] = self.spilled.digests(due.spilled[~in_memory])
        return digests

    def read_spilled(self, due: Due) -> list[Pending]:
        """Return those of the predictions that are spilled."""
        rows = due.spilled[due.spilled != NO_ROW]
        return [*map(Pending.of_spilled, self.spilled.read(rows))] if self.spilled else []

    def _known(self, digests: Digests) -> NDArray[np.bool_]:
        """Return which of the events are predicted, spilled or closed."""
        known: NDArray[np.bool_] = self.pending.find(digests) != NO_ROW
        known |= self.closed.find(digests) != NO_ROW
        if self.spilled:
            known |= self.spilled.known(digests)
        return known

    def open(self, prediction: Pending) -> None:
        """Let a prediction wait for its label."""
        self.open_all([prediction])

    def open_all(self, predictions: Sequence[Pending]) -> None:
        """`open` each; their events are all new, and differ."""
        numbers = np.array([each.sequence for each in predictions], dtype=np.int64)
        self.open_rows(
            self.digests(map(self.identify, predictions)),
            numbers,
            np.array([each.timestamp for each in predictions], dtype=np.int64),
            np.array([each.model_version for each in predictions], dtype=np.int64),
            Texts.of_ids(
                [each.event_id for each in predictions], columns_of([each.ids for each in predictions], 0)
            ),
        )
        if any(each.scored for each in predictions):
            asked = np.array([UNDECIDED if each.asked is None else each.asked for each in predictions])
            scored = np.frombuffer(b"".join([each.scored for each in predictions]))
            self.store(numbers, scored.reshape(len(predictions), -1), asked)
            self._challengers |= {
                each.sequence: each.challengers for each in predictions if each.challengers is not None
            }

    def open_rows(
        self,
        digests: Digests,
        numbers: Integers,
        timestamps: Integers,
        versions: Integers,
        ids: Texts,
    ) -> None:
        """`open` predictions column by column."""
        if not len(numbers):
            return
        self.pending.append(
            digests,
            numbers,
            timestamps + self.window,
            versions=versions,
            asked=np.full(len(numbers), UNDECIDED),
        )
        self._ids.append(ids)

    def _move_rows(self, kept: Integers) -> None:
        """Move ids and what was predicted as the rows of predictions move."""
        written = int(np.searchsorted(kept, self._ids_from))
        self._ids.keep(kept[written:] - self._ids_from)
        self._ids_from = written
        self.scored.move(kept)

    def _resize(self, size: int) -> None:
        self.scored.resize(size)

    def store(
        self,
        numbers: Integers,
        scored: NDArray[np.float64],
        asked: NDArray[np.int8] | None = None,
        challengers: Sequence[Mapping[str, float] | None] = (),
    ) -> None:
        """Keep what the model predicted, in those predictions that wait in memory.

        Parameters
        ----------
        numbers
            Of predictions, ascending, shape (n,).
        scored
            Scores, then features, shape (n, 1 + features).
        asked
            Whether their labels are asked for, shape (n,); None where all labels are learned as they come.
        challengers
            The challengers' scores of each; empty without challengers.
        """
        pending = self.pending
        rows = pending.live(pending.from_number(int(numbers[0])))
        places = np.searchsorted(numbers, pending.numbers[rows])
        inside = places < len(numbers)
        inside[inside] = numbers[places[inside]] == pending.numbers[rows[inside]]
        rows, places = rows[inside], places[inside]
        if not len(rows):
            return
        self.scored.store(rows, scored[places])
        if asked is not None:
            pending["asked"][rows] = asked[places]
        if challengers and challengers[0]:
            names = tuple(challengers[0])
            self._challengers |= {
                int(numbers[place]): ChallengerScores.of(challengers[place] or {}, names) for place in places
            }

    def close(self, prediction: Pending, label_timestamp: int | None, sequence: int) -> None:
        """End a prediction's wait with an outcome of this sequence; remember how for one more window."""
        event_id = self.identify(prediction)
        if prediction.record is None:
            self.drop_rows(np.array([self.pending.from_number(prediction.sequence)]))
        else:
            self.drop_spilled([event_id])
        self.remember(event_id, prediction.timestamp, label_timestamp, sequence)

    def drop_rows(self, rows: Integers) -> None:
        """Remove predictions in memory that wait no longer."""
        if self._challengers:
            for number in self.pending.numbers[rows].tolist():
                self._challengers.pop(number, None)
        self.pending.remove(rows)

    def drop_spilled(self, event_ids: Sequence[Id]) -> None:
        """Remove spilled predictions that wait no longer."""
        if event_ids and self.spilled is not None:
            self.spilled.remove(event_ids)

    def remembered_until(self, timestamp: int, label_timestamp: int | None) -> int:
        """Return the stream time until which a closed event is remembered: one window after it was closed."""
        return (timestamp + self.window if label_timestamp is None else label_timestamp) + self.window

    def all_remembered_until(self, timestamps: Integers, label_timestamps: Integers) -> Integers:
        """Return `remembered_until` of each; `NO_TIMESTAMP` is in place of labels that did not come."""
        expired = label_timestamps == NO_TIMESTAMP
        return np.where(expired, timestamps + self.window, label_timestamps) + self.window

    def remember(self, event_id: Id, timestamp: int, label_timestamp: int | None, sequence: int) -> None:
        """Remember an event as closed, with an outcome of this sequence."""
        number = 2 * sequence + (label_timestamp is None)
        until = self.remembered_until(timestamp, label_timestamp)
        self._remember(self.digests([event_id]), np.array([number]), np.array([until]))

    def _remember(self, digests: Digests, number: Integers, until: Integers) -> None:
        """Remember one event, given its digest, its number among closed events, and until when."""
        # An id used again after it was forgotten goes to the end: `closed` stays in the order of sequences.
        [row] = self.closed.find(digests).tolist()
        if row != NO_ROW:
            self._forget(row)
        self.closed.append(digests, number, until)
        if len(self.closed) > self.max_closed:
            self.forget(NO_TIMESTAMP)

    def remember_all(
        self, digests: Digests, until: Integers, sequences: Sequence[int], expired: NDArray[np.bool_]
    ) -> None:
        """`remember` each, given its event's digest, until when, and whether no label came."""
        numbers = 2 * np.array(sequences, dtype=np.int64) + expired
        if self.max_closed < len(self.closed) + len(digests) or (
            len(np.unique(digests[:, 0])) < len(digests) or (self.closed.find(digests) != NO_ROW).any()
        ):
            for row in range(len(digests)):
                one = slice(row, row + 1)
                self._remember(digests[one], numbers[one], until[one])
            return
        self.closed.append(digests, numbers, until)

    def answered(self, number: int) -> Answered | None:
        """Return what is known of the closed event of a number, if its label may be corrected."""
        return self._answered.get(number)

    def note_answer(self, event_id: Id, answered: Answered) -> None:
        """Note what is known of an event, if it is still remembered as closed."""
        number = self.closed_number(event_id)
        if number is not None:
            self._answered[number] = answered

    def forget(self, stream_time: int) -> None:
        """Forget closed events that are due, or for which there is no room, by deadline."""
        numbers = self.closed.remove_until(stream_time)
        if (excess := len(self.closed) - self.max_closed) > 0:
            numbers = np.concatenate([numbers, self.closed.remove_first(excess)])
        if self._answered:
            for number in numbers.tolist():
                self._answered.pop(number, None)

    def _forget(self, row: int) -> None:
        self._answered.pop(int(self.closed.numbers[row]), None)
        self.closed.remove(np.array([row]))

    def expired(self, stream_time: int) -> Iterator[Pending]:
        """Yield predictions that are overdue, or for which there is no room, in the order of their deadlines.

        The caller closes each before it asks for the next.
        """
        while True:
            deadline = self._spilled_deadline()
            until = NEVER if self.over_capacity() else stream_time
            # Of equal deadlines, the lower sequence is first: that of a prediction that is spilled.
            if self.spilled and deadline <= self.pending.next_deadline():
                if deadline >= until:
                    return
                yield Pending.of_spilled(self.spilled.head)
            elif (row := self.pending.next_due(until)) != NO_ROW:
                yield self.pending_at(row)
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
            self.drop_rows(rows)
        self.spilled.compact()

    def _spilled_deadline(self) -> int:
        """Return the earliest deadline of a prediction that is spilled, `NEVER` if there is none."""
        return self.spilled.first + self.window if self.spilled else NEVER

    def add_early(self, early: EarlyLabel) -> None:
        """Let a label wait for its interaction."""
        self.early_labels.add(self.digests([self.identify(early.label)]), [early])

    def pop_early(self, event_id: Id) -> EarlyLabel | None:
        """Remove and return the early label of an event, if there is one."""
        row = self.early_labels.row(event_id)
        return None if row == NO_ROW else self._pop_early(row)

    def _pop_early(self, row: int) -> EarlyLabel:
        early = self.early_labels.at(row)
        self.early_labels.remove(np.array([row]))
        return early

    def orphans(self, stream_time: int) -> Iterator[EarlyLabel]:
        """Remove and yield early labels that are overdue, or for which there is no room, oldest first."""
        while (row := self.early_labels.next_due(stream_time, self.early_bytes)) != NO_ROW:
            yield self._pop_early(row)

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
