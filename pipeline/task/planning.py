"""Join merged messages, and plan what the model predicts and learns of them, in columns.

`pipeline.join.loop` says what happens, as a log of actions. Here its inputs are looked up in the tables, and
its actions become a plan, dead letters, and changes of the tables.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.join.digests import Digests
from pipeline.join.event_rows import NO_ROW
from pipeline.join.loop import (
    NONE,
    Action,
    ActionLog,
    Known,
    Limits,
    Message,
    Messages,
    Waiting,
    join_messages,
)
from pipeline.join.records import EarlyLabel, Pending
from pipeline.join.symbols import number_events
from pipeline.join.tables import UNDECIDED, Due, Join
from pipeline.model.model import Model
from pipeline.records.decoding import RejectedRecord
from pipeline.records.fields import Id
from pipeline.records.id_columns import IdColumns
from pipeline.records.input_columns import InputColumns
from pipeline.records.inputs import Label
from pipeline.records.names import Fault
from pipeline.task.merging import Integers, Merged
from pipeline.task.plan import DeadLetter, Plan
from pipeline.task.prior_predictions import PriorPredictions
from pipeline.task.record_queue import Position, RecordQueue

MAX_MESSAGES: Final = 4096
"""Most messages that are joined together."""
_NO_INTEGERS: Final = np.empty(0, dtype=np.int64)
_NOTHING: Final = Waiting(_NO_INTEGERS, _NO_INTEGERS, _NO_INTEGERS, complete=True, size=0)
_OUTCOMES: Final = (Action.LABELLED, Action.EXPIRED, Action.EVICTED)
_REFUSED: Final = (Action.REJECTED, Action.LATE, Action.MISMATCHED, Action.ORPHAN)
_COUNTERS: Final = {
    Action.PREDICTED: "predictions",
    Action.LABELLED: "labelled",
    Action.EXPIRED: "expired",
    Action.DUPLICATE_INTERACTION: "duplicate_interactions",
    Action.DUPLICATE_LABEL: "duplicate_labels",
    Action.EARLY: "early",
}
"""What is counted of each action; dead letters are counted by their fault."""


class Progress(NamedTuple):
    """How far a task has come, and what is planned of its batch."""

    predicted: int
    """Predictions planned."""
    folded: int
    """Outcomes planned."""
    first: int
    """The first prediction of the batch, the model's output for which is not known yet."""
    stream_time: int
    """In milliseconds."""
    missing_label: bool | float | None
    """What a prediction that expires teaches."""


class _Entries(NamedTuple):
    """Predictions that wait: those of the events of messages, and those that may be due."""

    rows: Integers
    """Their rows in memory; `NO_ROW` of those that are spilled."""
    spilled: Integers
    """Their rows among those that are spilled; `NO_ROW` of those in memory."""
    numbers: Integers
    waiting: Waiting


class JoinedMessages(NamedTuple):
    """What became of merged messages."""

    plan: Plan
    merged: Merged
    """Those that were processed."""
    counts: Counter[str]
    stream_time: int
    """After them, in milliseconds."""


def join_queued(  # noqa: PLR0917 - what is read, and what is known
    interactions: RecordQueue,
    labels: RecordQueue,
    merged: Merged,
    join: Join,
    model: Model,
    progress: Progress,
    max_steps: int,
) -> JoinedMessages:
    """Join merged messages. The tables are changed, and the queues are not.

    Parameters
    ----------
    interactions, labels
        The queues of the inputs.
    merged
        Their next messages.
    join
        The tables.
    model
        Its features and its target; nothing changes in it.
    progress
        How far the task has come.
    max_steps
        Most messages, predictions that expire and labels that are orphans because time passes.
    """
    return _Slice(interactions, labels, merged, join, model, progress).run(max_steps)


def pass_time(join: Join, model: Model, progress: Progress, time: int, max_steps: int) -> JoinedMessages:
    """Do the same without a message, as time passes up to a moment, in milliseconds."""
    queue = _NO_QUEUE
    merged = Merged(
        np.array([Message.TIME], dtype=np.uint8), np.zeros(1, dtype=np.int64), np.array([time]), 0, 0
    )
    return _Slice(queue, queue, merged, join, model, progress).run(max_steps)


class _Slice:
    """Merged messages, on their way through the join."""

    def __init__(  # noqa: PLR0917 - see `join_queued`
        self,
        interactions: RecordQueue,
        labels: RecordQueue,
        merged: Merged,
        join: Join,
        model: Model,
        progress: Progress,
    ) -> None:
        self.queues = interactions, labels
        self.merged, self.join, self.model, self.progress = merged, join, model, progress
        self.interactions = interactions.columns(merged.interactions)
        self.labels = labels.columns(merged.labels)
        self.n, self.m = len(self.interactions), len(self.labels)
        self.rows, self.places = _usable(merged)
        self.digests = _digests(self.interactions, join), _digests(self.labels, join)
        self.symbols = number_events(*self.digests)
        self.label_ids = _id_columns(self.labels)
        self.interaction_times = interactions.times(merged.interactions)[self.places[0]]
        self.label_times = labels.times(merged.labels)[self.places[1]]

    def run(self, max_steps: int) -> JoinedMessages:
        """Run the join loop, and let the tables and a plan follow from its actions."""
        join, progress = self.join, self.progress
        times = np.ascontiguousarray(self.merged.times)
        latest = max(progress.stream_time, int(times.max())) if len(times) else progress.stream_time
        entries, pending_of = self._pending(latest, max_steps)
        early_rows, early, early_of = self._early(latest)
        closed, closed_until, closed_expired = self._closed(latest, len(entries.rows))
        self.entries, self.early_rows = entries, early_rows
        self.early_labels = [join.early_labels.at(row) for row in early_rows.tolist()]
        self.spilled = dict[int, Pending]()
        known = Known(
            pending_of,
            early_of,
            closed_until,
            closed_expired,
            self._same_pending(pending_of),
            self._same_early(early_of),
        )
        sizes = np.array(self.queues[1].sizes(self.merged.labels), dtype=np.int64)[self.places[1]]
        messages = Messages(
            self.merged.kinds,
            self.rows,
            times,
            self.symbols.interactions,
            self.symbols.labels,
            sizes,
            _id_columns(self.interactions),
            self.label_ids,
        )
        limits = Limits(
            join.window, join.early, join.max_pending, join.early_bytes, join.max_closed, max_steps
        )
        log = join_messages(
            messages,
            known,
            entries.waiting,
            early,
            join.early_labels.sizes(early_rows),
            closed,
            limits,
            progress.stream_time,
        )
        return self._follow(log)

    # What the tables know.

    def _pending(self, latest: int, max_steps: int) -> tuple[_Entries, Integers]:
        """Return the predictions that wait, and that of each symbol."""
        join, digests = self.join, self.symbols.digests
        rows = join.pending.find(digests)
        spilled = join.spilled.find(digests) if join.spilled else np.full(len(rows), NO_ROW)
        of_symbols = np.flatnonzero((rows != NO_ROW) | (spilled != NO_ROW))
        rows, spilled = rows[of_symbols], spilled[of_symbols]
        due = join.first_due(latest, self.n, max_steps + self.n)
        places = np.full(len(due.rows), NONE)
        for known, wanted in ((rows, due.rows), (spilled, due.spilled)):
            here = wanted != NO_ROW
            places[here] = _place(known, wanted[here])
        others = np.flatnonzero(places == NONE)
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
        symbols = np.append(of_symbols, np.full(len(others), NONE))
        waiting = Waiting(deadlines, symbols, places, len(due.rows) < max_steps + self.n, join.pending_count)
        return _Entries(rows, spilled, numbers, waiting), pending_of

    def _early(self, latest: int) -> tuple[Integers, Waiting, Integers]:
        """Return the rows of the labels that wait, what is known of them, and that of each symbol."""
        table, digests = self.join.early_labels, self.symbols.digests
        early_of = np.full(len(digests), NONE)
        if not len(table):
            return _NO_INTEGERS, _NOTHING, early_of
        found = table.rows.find(digests)
        of_symbols = np.flatnonzero(found != NO_ROW)
        full = table.bytes + sum(self.queues[1].sizes(self.merged.labels)) > self.join.early_bytes
        due = table.rows.first_rows(latest, len(table) if full else 0)
        rows = found[of_symbols]
        places = _place(rows, due)
        others = np.flatnonzero(places == NONE)
        places[others] = len(rows) + np.arange(len(others))
        rows = np.append(rows, due[others])
        early_of[of_symbols] = self.m + np.arange(len(of_symbols))
        symbols = np.append(of_symbols, np.full(len(others), NONE))
        return rows, Waiting(table.rows.deadlines[rows], symbols, places, True, table.bytes), early_of

    def _closed(self, latest: int, entries: int) -> tuple[Waiting, Integers, NDArray[np.bool_]]:
        """Return the closed events that may be forgotten for want of room, and what each symbol is."""
        join, digests = self.join, self.symbols.digests
        table = join.closed
        found = table.find(digests)
        here = np.flatnonzero(found != NO_ROW)
        until, expired = np.full(len(digests), NONE), np.zeros(len(digests), dtype=np.bool_)
        if len(here):
            until[here] = table.deadlines[found[here]]
            expired[here] = table.numbers[found[here]] % 2 == 1
        excess = len(table) + self.n + entries - join.max_closed
        if excess <= 0:
            return _NOTHING._replace(size=len(table)), until, expired
        rows = table.first_rows(latest, excess)
        symbols, places = np.full(len(rows), NONE), _place(found[here], rows)
        symbols[places != NONE] = here[places[places != NONE]]
        return Waiting(table.deadlines[rows], symbols, np.arange(len(rows)), True, len(table)), until, expired

    def _same_pending(self, pending_of: Integers) -> NDArray[np.bool_]:
        """Return of each label whether it names the entities of the prediction that waits for it."""
        same = np.zeros(self.m, dtype=np.bool_)
        places = pending_of[self.symbols.labels] - self.n
        of_labels = np.flatnonzero(places >= 0)
        if not len(of_labels):
            return same
        rows = self.entries.rows[places[of_labels]]
        inside = rows != NO_ROW
        same[of_labels[inside]] = self.join.same_ids(rows[inside], self.label_ids, of_labels[inside])
        for label in of_labels[~inside].tolist():
            ids = tuple(self.labels.ids(column, np.array([label]))[0] for column in range(1, self._columns))
            same[label] = self._read_spilled(int(places[label])).ids == ids
        return same

    def _same_early(self, early_of: Integers) -> NDArray[np.bool_]:
        """Return of each interaction whether the label that waits for it names its entities."""
        same = np.zeros(self.n, dtype=np.bool_)
        places = early_of[self.symbols.interactions] - self.m
        for row in np.flatnonzero(places >= 0).tolist():
            one = np.array([row])
            ids = tuple(self.interactions.ids(column, one)[0] for column in range(1, self._columns))
            same[row] = self.early_labels[places[row]].label.ids == ids
        return same

    @property
    def _columns(self) -> int:
        return 1 + self.model.features.entities

    def _read_spilled(self, entry: int) -> Pending:
        """Return a prediction that is spilled, which is read once."""
        if entry not in self.spilled:
            assert self.join.spilled is not None
            [record] = self.join.spilled.read(self.entries.spilled[entry : entry + 1])
            self.spilled[entry] = Pending.of_spilled(record)
        return self.spilled[entry]

    # What follows from the actions.

    def _follow(self, log: ActionLog) -> JoinedMessages:
        """Make the plan of the actions, and change the tables as they say."""
        merged = self.merged.first(log.messages)
        happened = np.bincount(log.kinds, minlength=len(Action)).tolist()
        counts = Counter({name: happened[kind] for kind, name in _COUNTERS.items() if happened[kind]})
        if crowded_out := happened[Action.EVICTED]:
            counts.update(expired=crowded_out, crowded_out=crowded_out)
        counts.update(interactions=merged.interactions, labels=merged.labels)
        closing = log.of(*_OUTCOMES)
        sources, targets = log.sources[closing], log.targets[closing]
        plan, opened = self._plan(log, closing, sources, targets)
        if any(happened[kind] for kind in _REFUSED):
            plan.dead_letters = self._dead_letters(log, counts)
        self._change_tables(log, plan, opened, sources, targets)
        return JoinedMessages(plan, merged, counts, log.stream_time)

    def _plan(
        self, log: ActionLog, closing: Integers, sources: Integers, targets: Integers
    ) -> tuple[Plan, Integers]:
        """Return the plan, and the interactions that were predicted.

        Parameters
        ----------
        log
            The actions.
        closing, sources, targets
            The places of those that close a prediction, with their labels and predictions.
        """
        progress, model, n = self.progress, self.model, self.n
        predicted = log.of(Action.PREDICTED)
        opened = log.sources[predicted]
        interactions = self.interactions if len(opened) == n else self.interactions.select(opened)
        own = np.full(n, NONE)
        own[opened] = np.arange(len(opened))
        timestamps = self.interaction_times[opened]
        ratios: list[Any] = [*self.labels.field("watch_ratio")] if self.m else []
        ratios += [each.label.watch_ratio for each in self.early_labels]
        numbers = np.concatenate([progress.predicted + own, self.entries.numbers])[targets]
        times = [*self.label_times.tolist(), *(each.label.timestamp for each in self.early_labels)]
        learned = [*model.target.labels(ratios)] if ratios else []
        weights = list[float]()
        if model.weighted:
            known = [*self.labels.field("weight")] if self.m else []
            weights = _spread([*known, *(each.label.weight for each in self.early_labels)], sources, 1.0)
        plan = Plan(
            first=progress.predicted,
            folded=progress.folded,
            event_ids=interactions.ids(0),
            ids=_entity_ids(interactions, model.features.entities),
            timestamps=timestamps.tolist(),
            values=model.features.event.values_of(interactions.field, timestamps),
            versions=(progress.folded + np.searchsorted(closing, predicted)).tolist(),
            carried=interactions.carried,
            labels=_spread(learned, sources, progress.missing_label),
            watch_ratios=_spread(ratios, sources, None),
            label_timestamps=_spread(times, sources, None),
            weights=weights,
            prior=self._prior(sources, targets, numbers),
            steps=log.steps,
        )
        plan.closed = array("q", numbers.tobytes())
        return plan, opened

    def _prior(self, sources: Integers, targets: Integers, numbers: Integers) -> PriorPredictions:
        """Return those of the predictions with outcomes that were made before the batch, in their order."""
        before = np.flatnonzero((targets >= self.n) & (numbers < self.progress.first))
        entries, labels = targets[before] - self.n, sources[before]
        rows = self.entries.rows[entries]
        inside, labelled = rows != NO_ROW, (labels >= 0) & (labels < self.m)
        parts = [
            np.flatnonzero(inside & labelled),
            np.flatnonzero(inside & ~labelled),
            np.flatnonzero(~inside),
        ]
        of_labels, unlabelled, spilled = parts
        ids = [self.labels.ids(column, labels[of_labels]) for column in range(len(self.labels.begins))]
        prior = _prior_in_memory(rows[of_labels], ids, self.join)
        if len(unlabelled):
            found = self.join.ids_of(rows[unlabelled])
            prior.extend(
                _prior_in_memory(rows[unlabelled], [*map(list, zip(*found, strict=True))], self.join)
            )
        if len(spilled):
            prior.extend(PriorPredictions.of(map(self._read_spilled, entries[spilled].tolist())))
        if len(unlabelled) or len(spilled):
            return prior.take(np.argsort(np.concatenate(parts)).tolist())
        return prior

    def _dead_letters(self, log: ActionLog, counts: Counter[str]) -> list[DeadLetter]:
        """Return the messages that could not be used, and count them by their fault."""
        found = list[DeadLetter]()
        for place in log.of(*_REFUSED).tolist():
            kind, row = Action(log.kinds[place]), int(log.sources[place])
            if kind is Action.REJECTED:
                queue, at = self.queues[0], row
                if row >= self.merged.interactions:
                    queue, at = self.queues[1], row - self.merged.interactions
                rejected = queue.record_at(at)
                assert isinstance(rejected, RejectedRecord)
                source = queue.source_at(at)
            else:
                rejected = reason_of(kind, self.model.features.entity_names)
                source = self._early_label(row).source if row >= self.m else self._label_source(row)
            counts[rejected.fault] += 1
            found.append(DeadLetter(source, rejected.fault, rejected.reason))
        return found

    def _label_source(self, row: int) -> Any:
        return self.queues[1].source_at(int(self.places[1][row]))

    def _early_label(self, source: int) -> EarlyLabel:
        return self.early_labels[source - self.m]

    def _change_tables(
        self, log: ActionLog, plan: Plan, opened: Integers, sources: Integers, targets: Integers
    ) -> None:
        """Let the tables follow: what waits, what is closed, and which labels are early."""
        join, n = self.join, self.n
        closed = self._closed_events(sources, targets, plan.folded, log.stream_time)
        entries = targets[targets >= n] - n
        rows = self.entries.rows[entries]
        join.drop_rows(rows[rows != NO_ROW])
        if join.spilled and (rows == NO_ROW).any():
            join.spilled.remove_rows(self.entries.spilled[entries[rows == NO_ROW]])
        left = np.ones(n, dtype=np.bool_)
        left[targets[targets < n]] = False
        waits = np.flatnonzero(left[opened])
        rows, ids = opened[waits], _id_columns(self.interactions)
        whole = len(rows) == n
        join.open_rows(
            self.digests[0] if whole else self.digests[0][rows],
            plan.first + waits,
            np.array(plan.timestamps, dtype=np.int64)[waits],
            np.array(plan.versions, dtype=np.int64)[waits],
            ids if whole else ids.select(rows),
        )
        join.forget(log.stream_time)
        join.closed.append(*closed)
        if len(join.closed) > join.max_closed:
            join.forget(log.stream_time)
        came = log.sources[log.of(Action.EARLY)]
        if len(came) or len(self.early_rows):
            self._change_early_labels(log, came)

    def _change_early_labels(self, log: ActionLog, came: Integers) -> None:
        """Let the labels that wait follow, given those that came."""
        table, m = self.join.early_labels, self.m
        gone = log.sources[log.of(Action.LABELLED, Action.MISMATCHED, Action.ORPHAN)]
        if (old := gone[gone >= m] - m).size:
            table.remove(self.early_rows[old])
        if len(came := came[~np.isin(came, gone)]):
            table.add(self.digests[1][came], [self._new_early_label(row) for row in came.tolist()])

    def _closed_events(
        self, sources: Integers, targets: Integers, first: int, stream_time: int
    ) -> tuple[Digests, Integers, Integers]:
        """Return digest, number and last moment of the closed events that are still to be remembered."""
        join, by_label = self.join, sources != NONE
        numbers = 2 * np.arange(first, first + len(targets)) + ~by_label
        by_label &= sources < self.m  # the label of an event has its digest
        if by_label.all():
            digests, closed_at = self.digests[1][sources], self.label_times[sources]
        else:
            digests, closed_at = np.empty((len(targets), 2), np.uint64), np.empty(len(targets), np.int64)
            labels, others = sources[by_label], np.flatnonzero(~by_label)
            digests[by_label], closed_at[by_label] = self.digests[1][labels], self.label_times[labels]
            digests[others], closed_at[others] = self._closed_otherwise(sources[others], targets[others])
        until = closed_at + join.window
        kept = until >= stream_time
        if kept.all():
            return digests, numbers, until
        return digests[kept], numbers[kept], until[kept]

    def _closed_otherwise(self, sources: Integers, targets: Integers) -> tuple[Digests, Integers]:
        """Return digest and moment of events that are closed as they expire, or by a label that waited."""
        n, own = self.n, targets < self.n
        digests, closed_at = np.empty((len(targets), 2), np.uint64), np.empty(len(targets), np.int64)
        digests[own], closed_at[own] = self.digests[0][targets[own]], self.interaction_times[targets[own]]
        closed_at[own] += self.join.window
        entries = targets[~own] - n
        rows, spilled, numbers, waiting = self.entries
        due = Due(waiting.deadlines[entries], numbers[entries], rows[entries], spilled[entries])
        digests[~own], closed_at[~own] = self.join.digests_of(due), due.deadlines
        labelled = np.flatnonzero(sources != NONE)
        early = [self.early_labels[source - self.m].label.timestamp for source in sources[labelled].tolist()]
        closed_at[labelled] = early
        return digests, closed_at

    def _new_early_label(self, row: int) -> EarlyLabel:
        place = int(self.places[1][row])
        label = self.queues[1].record_at(place)
        assert isinstance(label, Label)
        return EarlyLabel(label, self.queues[1].source_at(place))


def reason_of(kind: Action, entities: Sequence[str], *, of_item: bool = False) -> RejectedRecord:
    """Return why a label cannot be used.

    Parameters
    ----------
    kind
        What happened to it.
    entities
        The names of the stream's entities.
    of_item
        Whether labels are of items of slates.
    """
    if kind is Action.LATE:
        return RejectedRecord(Fault.LATE, "the label came after its prediction had expired")
    if kind is Action.MISMATCHED:
        names = " or ".join(entities)
        return RejectedRecord(Fault.MISMATCHED, f"{names} differ from those of the interaction")
    assert kind is Action.ORPHAN
    about = "event_id and item" if of_item else "event_id"
    return RejectedRecord(Fault.ORPHAN, f"no interaction with this {about} came while the label waited")


def _usable(merged: Merged) -> tuple[Integers, tuple[Integers, Integers]]:
    """Return the row of each message among those of its input that can be used, and the places of these."""
    if not (merged.kinds == Message.REJECTED).any():
        return merged.rows, (np.arange(merged.interactions), np.arange(merged.labels))
    rows = merged.rows.copy()
    of_interactions = merged.kinds == Message.INTERACTION
    of_labels = merged.kinds == Message.LABEL
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


def _spread(column: list[Any], sources: Integers, missing: Any) -> list[Any]:
    """Return a column of labels as one of outcomes."""
    if len(sources) == len(column) and (sources == np.arange(len(sources))).all():
        return column
    return [column[source] if source != NONE else missing for source in sources.tolist()]


def _digests(columns: InputColumns, join: Join) -> Digests:
    """Return the digests of the events."""
    return join.digester.digests_in(columns.text, columns.begins[0], columns.ends[0])


def _entity_ids(columns: InputColumns, entities: int) -> tuple[list[Id], ...]:
    return tuple(columns.ids(1 + entity) if len(columns) else [] for entity in range(entities))


def _id_columns(columns: InputColumns) -> IdColumns:
    # Compiled code would be compiled once more for arrays that are not contiguous.
    return IdColumns(columns.text, np.ascontiguousarray(columns.begins), np.ascontiguousarray(columns.ends))


def _prior_in_memory(rows: Integers, ids: list[list[Id]], join: Join) -> PriorPredictions:
    """Return predictions of rows, given the ids of their events and of each entity."""
    if not len(rows):
        return PriorPredictions()
    pending = join.pending
    numbers, asked = pending.numbers[rows], pending["asked"][rows].tolist()
    return PriorPredictions(
        array("q", numbers.tobytes()),
        ids[0],
        tuple(ids[1:]),
        (pending.deadlines[rows] - join.window).tolist(),
        bytearray(join.scored.of(rows).tobytes()),
        [None if each == UNDECIDED else bool(each) for each in asked],
        join.challengers_of(numbers),
    )


_NO_QUEUE: Final = RecordQueue(Position(0), 0)
"""An input without messages."""
