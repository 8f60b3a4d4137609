"""Merged messages on their way through the join: what the tables know of them goes into the join loop."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.join.actions import NONE, ActionLog, Ids, Known, Limits, Messages, Waiting
from pipeline.join.event_rows import NO_ROW
from pipeline.join.loop import join_messages
from pipeline.join.records import Pending
from pipeline.join.symbols import number_events
from pipeline.join.tables import Join
from pipeline.records.fields import Id
from pipeline.records.places import flagged
from pipeline.task.merging import INTERACTION, LABEL, REJECTED, Integers, Merged
from pipeline.task.record_queue import RecordQueue

_NO_INTEGERS: Final = np.empty(0, dtype=np.int64)
_NOTHING: Final = Waiting(_NO_INTEGERS, _NO_INTEGERS, _NO_INTEGERS, complete=True, size=0)


class Entries(NamedTuple):
    """Predictions that wait: those of the events of messages, and those that may be due."""

    rows: Integers
    """Their rows in memory; `NO_ROW` of those that are spilled."""
    spilled: Integers
    """Their rows among those that are spilled; `NO_ROW` of those in memory."""
    numbers: Integers
    waiting: Waiting


class Slice:
    """Merged messages, and what they can touch in the tables.

    Parameters
    ----------
    interactions, labels
        The queues of the inputs.
    merged
        Their next messages.
    join
        The tables.
    stream_time
        Before these messages, in milliseconds.
    entities
        The number of the stream's entities.

    Attributes
    ----------
    n, m
        How many rows there are of interactions, and of labels, that can be used.
    places
        The places of the messages among those of their queues.
    first_rows
        The first row of each interaction, and behind them `n`; shape (interactions + 1,).
    digests
        The digests of their events, shapes (n, 2) and (m, 2).
    closed_rows
        The row of each symbol's closed event, `NO_ROW` without one.
    listed_closed
        The rows of closed events that may have to be forgotten for want of room.
    entries
        The predictions that the join loop knows; with `early_rows` and `early_labels`, once it has run.
    """

    def __init__(  # noqa: PLR0917 - see above
        self,
        interactions: RecordQueue,
        labels: RecordQueue,
        merged: Merged,
        join: Join,
        stream_time: int,
        entities: int,
    ) -> None:
        self.queues = interactions, labels
        self.merged, self.join, self.stream_time = merged, join, stream_time
        self.columns = 1 + entities
        self.interactions = interactions.columns(merged.interactions)
        self.labels = labels.columns(merged.labels)
        self.n, self.m = len(self.interactions), len(self.labels)
        self.rows, self.places = _usable(merged)
        self.interaction_ids, self.label_ids = self.interactions.texts, self.labels.texts
        self.digests = join.digests_of(self.interaction_ids), join.digests_of(self.label_ids)
        self.symbols = number_events(*self.digests)
        self.first_rows = self.interactions.first_rows
        times = interactions.times(merged.interactions)[self.places[0]]
        counts = self.interactions.item_counts
        self.interaction_times = np.repeat(times, counts) if len(counts) else times
        self.label_times = labels.times(merged.labels)[self.places[1]]

    def run(self, max_steps: int, max_outcomes: int) -> ActionLog:
        """Look up what the tables know, and run the join loop. Nothing changes in the tables."""
        join, stream_time = self.join, self.stream_time
        times = np.ascontiguousarray(self.merged.times)
        latest = max(stream_time, int(times.max())) if len(times) else stream_time
        entries, pending_of = self._pending(latest, max_steps)
        early_rows, early, early_of = self._early(latest)
        self.closed_rows = join.closed.find(self.symbols.digests)
        closed, closed_until, closed_at, closed_due = self._closed(latest, len(entries.rows))
        self.entries, self.early_rows = entries, early_rows
        self.early_labels = [join.early_labels.at(row) for row in early_rows.tolist()]
        self.spilled = dict[int, Pending]()
        closed_values, same_closed = self._answers()
        known = Known(
            pending_of,
            early_of,
            closed_until,
            closed_at,
            closed_due,
            closed_values,
            same_closed,
            self._same_pending(pending_of),
            self._same_early(early_of),
        )
        early_values = np.array([each.label.watch_ratio for each in self.early_labels], dtype=np.float64)
        sizes = self.queues[1].sizes(self.merged.labels)[self.places[1]]
        messages = Messages(
            self.merged.kinds,
            self.rows,
            times,
            self.first_rows,
            self.symbols.interactions,
            self.symbols.labels,
            sizes,
            self.labels.array("watch_ratio") if self.m else np.empty(0),
            Ids.of(self.interaction_ids),
            Ids.of(self.label_ids),
        )
        limits = Limits(
            join.window,
            join.early,
            join.max_pending,
            join.early_bytes,
            join.max_closed,
            join.answered is not None,
            max_steps,
            max_outcomes,
        )
        return join_messages(
            messages,
            known,
            entries.waiting,
            early,
            join.early_labels.sizes(early_rows),
            early_values,
            closed,
            limits,
            stream_time,
        )

    # What the tables know.

    def _pending(self, latest: int, max_steps: int) -> tuple[Entries, Integers]:
        """Return the predictions that wait, and that of each symbol."""
        join, digests = self.join, self.symbols.digests
        rows, spilled = join.pending.find(digests), _NO_INTEGERS
        if join.spilled:
            spilled = join.spilled.find(digests)
            of_symbols = flagged((rows != NO_ROW) | (spilled != NO_ROW))
            spilled = spilled[of_symbols]
        else:
            of_symbols = flagged(rows != NO_ROW)
            spilled = np.full(len(of_symbols), NO_ROW)
        rows = rows[of_symbols]
        due = join.first_due(latest, self.n, max_steps + self.n)
        places = others = _NO_INTEGERS
        if len(due.rows):
            places = np.full(len(due.rows), NONE)
            for known, wanted in ((rows, due.rows), (spilled, due.spilled)):
                here = wanted != NO_ROW
                places[here] = _place(known, wanted[here])
            others = flagged(places == NONE)
            places[others] = len(rows) + np.arange(len(others))
            rows, spilled = np.append(rows, due.rows[others]), np.append(spilled, due.spilled[others])
        deadlines, numbers = _NO_INTEGERS, _NO_INTEGERS
        if len(rows):
            deadlines, numbers = np.empty((2, len(rows)), dtype=np.int64)
            inside = rows != NO_ROW
            deadlines[inside] = join.pending.deadlines[rows[inside]]
            numbers[inside] = join.pending.numbers[rows[inside]]
            if join.spilled:
                deadlines[~inside] = join.spilled.timestamps(spilled[~inside]) + join.window
                numbers[~inside] = join.spilled.sequences(spilled[~inside])
        pending_of = np.full(len(digests), NONE)
        pending_of[of_symbols] = self.n + np.arange(len(of_symbols))
        symbols = np.append(of_symbols, np.full(len(others), NONE)) if len(others) else of_symbols
        waiting = Waiting(deadlines, symbols, places, len(due.rows) < max_steps + self.n, join.pending_count)
        return Entries(rows, spilled, numbers, waiting), pending_of

    def _early(self, latest: int) -> tuple[Integers, Waiting, Integers]:
        """Return the rows of the labels that wait, what is known of them, and that of each symbol."""
        table, digests = self.join.early_labels, self.symbols.digests
        early_of = np.full(len(digests), NONE)
        if not len(table):
            return _NO_INTEGERS, _NOTHING, early_of
        found = table.rows.find(digests)
        of_symbols = flagged(found != NO_ROW)
        full = table.bytes + int(self.queues[1].sizes(self.merged.labels).sum()) > self.join.early_bytes
        due = table.rows.first_rows(latest, len(table) if full else 0)
        rows = found[of_symbols]
        places = _place(rows, due)
        others = flagged(places == NONE)
        places[others] = len(rows) + np.arange(len(others))
        rows = np.append(rows, due[others])
        early_of[of_symbols] = self.m + np.arange(len(of_symbols))
        symbols = np.append(of_symbols, np.full(len(others), NONE))
        return rows, Waiting(table.rows.deadlines[rows], symbols, places, True, table.bytes), early_of

    def _closed(self, latest: int, entries: int) -> tuple[Waiting, Integers, Integers, Integers]:
        """Return the closed events that may be forgotten for want of room.

        For each symbol, until when the event is remembered, the time of its label, and, where labels are
        corrected, when its prediction was due.
        """
        join, found = self.join, self.closed_rows
        table = join.closed
        here = flagged(found != NO_ROW)
        until, closed_at, due = np.full((3, len(found)), NONE)
        if len(here):
            until[here] = table.deadlines[found[here]]
        if join.answered is not None:
            closed_at[here] = join.answered.integers("label_times")[found[here]]
            due[here] = join.answered.integers("timestamps")[found[here]] + join.window
        else:
            closed_at[here] = np.where(table.numbers[found[here]] % 2, NONE, until[here] - join.window)
        self.listed_closed = _NO_INTEGERS
        excess = len(table) + self.n + entries - join.max_closed
        if excess <= 0:
            return _NOTHING._replace(size=len(table)), until, closed_at, due
        if join.answered is not None:
            excess += self.m  # those that are corrected are due later
        self.listed_closed = rows = table.first_rows(latest, excess)
        symbols, places = np.full(len(rows), NONE), _place(found[here], rows)
        symbols[places != NONE] = here[places[places != NONE]]
        return (
            Waiting(table.deadlines[rows], symbols, np.arange(len(rows)), True, len(table)),
            until,
            closed_at,
            due,
        )

    def _answers(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the value of each symbol's last label, and whether each label names the event's entities."""
        values, same = np.full(len(self.closed_rows), np.nan), np.zeros(self.m, dtype=np.bool_)
        answered = self.join.answered
        if answered is None:
            return values, same
        here = flagged(self.closed_rows != NO_ROW)
        values[here] = answered["values"][self.closed_rows[here]]
        rows = self.closed_rows[self.symbols.labels]
        of_labels = flagged(rows != NO_ROW)
        if len(of_labels):
            found = self.join.digester.digests_of_rows(self.label_ids.select(of_labels))
            same[of_labels] = (answered["id_digests"][rows[of_labels]] == found).all(axis=1)
        return values, same

    def _same_pending(self, pending_of: Integers) -> NDArray[np.bool_]:
        """Return of each label whether it names the entities of the prediction that waits for it."""
        same = np.zeros(self.m, dtype=np.bool_)
        places = pending_of[self.symbols.labels] - self.n
        of_labels = flagged(places >= 0)
        if not len(of_labels):
            return same
        rows = self.entries.rows[places[of_labels]]
        inside = rows != NO_ROW
        if inside.all():
            same[of_labels] = self.join.pending.same_ids(rows, self.label_ids, of_labels)
            return same
        same[of_labels[inside]] = self.join.pending.same_ids(rows[inside], self.label_ids, of_labels[inside])
        for label in of_labels[~inside].tolist():
            ids = tuple(self.labels.ids(column, np.array([label]))[0] for column in range(1, self.columns))
            same[label] = self.read_spilled(int(places[label])).ids == ids
        return same

    def _same_early(self, early_of: Integers) -> NDArray[np.bool_]:
        """Return of each interaction whether the label that waits for it names its entities."""
        same = np.zeros(self.n, dtype=np.bool_)
        if not len(self.early_rows):
            return same
        places = early_of[self.symbols.interactions] - self.m
        for row in flagged(places >= 0).tolist():
            one = np.array([row])
            ids = tuple(self.interactions.ids(column, one)[0] for column in range(1, self.columns))
            same[row] = self.early_labels[places[row]].label.ids == ids
        return same

    @property
    def of_slates(self) -> bool:
        """Whether interactions are slates, of which there is one."""
        return len(self.interactions.item_counts) > 0

    def of_closed(self, targets: Integers) -> NDArray[np.bool_]:
        """Return which predictions of actions were closed before these messages."""
        closed: NDArray[np.bool_] = targets >= self.n + len(self.entries.rows)
        return closed

    def closed_rows_of(self, targets: Integers) -> Integers:
        """Return the rows of predictions that were closed before."""
        return self.closed_rows[targets - self.n - len(self.entries.rows)]

    def versions_of(self, entries: Integers) -> Integers:
        """Return how many outcomes there were before predictions that wait."""
        rows, pending = self.entries.rows[entries], self.join.pending
        versions = np.empty(len(entries), dtype=np.int64)
        inside = rows != NO_ROW
        versions[inside] = pending.integers("versions")[rows[inside]]
        versions[~inside] = [self.read_spilled(entry).model_version for entry in entries[~inside].tolist()]
        return versions

    def ids_of_waiting(self, entries: Integers) -> list[tuple[Id, ...]]:
        """Return the ids of the events of predictions that wait, and those of each entity."""
        rows = self.entries.rows[entries]
        inside = iter(self.join.pending.ids_of(rows[rows != NO_ROW]))
        found = list[tuple[Id, ...]]()
        for entry, row in zip(entries.tolist(), rows.tolist(), strict=True):
            if row != NO_ROW:
                found.append(tuple(next(inside)))
            else:
                spilled = self.read_spilled(entry)
                found.append((spilled.event_id, *spilled.ids))
        return found

    def read_spilled(self, entry: int) -> Pending:
        """Return a prediction that is spilled, which is read once."""
        if entry not in self.spilled:
            assert self.join.spilled is not None
            [record] = self.join.spilled.read(self.entries.spilled[entry : entry + 1])
            self.spilled[entry] = Pending.of_spilled(record)
        return self.spilled[entry]


def _usable(merged: Merged) -> tuple[Integers, tuple[Integers, Integers]]:
    """Return the row of each message among those of its input that can be used, and the places of these."""
    if not (merged.kinds == REJECTED).any():
        return merged.rows, (np.arange(merged.interactions), np.arange(merged.labels))
    rows = merged.rows.copy()
    of_interactions = merged.kinds == INTERACTION
    of_labels = merged.kinds == LABEL
    places = merged.rows[of_interactions], merged.rows[of_labels]
    rows[of_interactions], rows[of_labels] = np.arange(len(places[0])), np.arange(len(places[1]))
    return rows, places


def _place(rows: Integers, wanted: Integers) -> Integers:
    """Return the place of each wanted row among rows, which differ; `NONE` where it is not there."""
    places = np.full(len(wanted), NONE)
    if len(rows) and len(wanted):
        order = np.argsort(rows)
        at = np.minimum(np.searchsorted(rows, wanted, sorter=order), len(rows) - 1)
        found = rows[order[at]] == wanted
        places[found] = order[at[found]]
    return places
