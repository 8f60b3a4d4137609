"""The fast path: process many messages at once, where nothing unusual happens.

Nearly always an interaction is new and a label finds its prediction. For such messages, one by one in
`pipeline.task.task` and all at once here give the same result, and all at once costs less. Predictions that
expire between the messages are closed with them. Everything else (duplicates, early labels, late labels,
messages that cannot be used) is left to the task.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.join.closing import NONE, Closings, Waiting, close_in_order
from pipeline.join.digests import Digests
from pipeline.join.event_rows import NO_ROW
from pipeline.join.matching import match_events
from pipeline.join.records import Pending
from pipeline.join.tables import UNDECIDED, Due, Join
from pipeline.model.model import Model
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.entities import columns_of
from pipeline.records.fields import Id
from pipeline.records.id_columns import IdColumns
from pipeline.records.input_columns import InputColumns
from pipeline.task.merged_messages import MergedMessages
from pipeline.task.merging import Integers
from pipeline.task.plan import Plan
from pipeline.task.prior_predictions import PriorPredictions

Value = TypeVar("Value")
Other = TypeVar("Other")

MIN_MESSAGES = 2
"""Fewest messages for which the fast path is tried."""
PLAIN_MESSAGES = 8
"""Messages to process one by one where it was refused, so that attempts do not cost more than they do."""
UNUSUAL_MESSAGES = 2
"""Messages to process one by one where an unusual one is next: often a label, then its interaction."""
MAX_MESSAGES = 4096
"""Most messages processed together."""
MAX_ATTEMPTS = 2
"""Most attempts before the next messages are processed one by one: the second ends before an unusual one."""


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


class PlannedMessages(NamedTuple):
    """The plan of messages, and what becomes of the join's tables."""

    plan: Plan
    opened: Integers
    """Rows of the plan's predictions that wait for their label."""
    digests: Digests
    """Those of the events of the plan's predictions, shape (n, 2)."""
    ids: IdColumns
    """Their ids."""
    closed_rows: Integers
    """Rows of the predictions in memory that get an outcome."""
    closed_spilled: list[Id]
    """Events of the spilled predictions that get an outcome."""
    closed_digests: Digests
    """Those of the events that get an outcome, shape (outcomes, 2)."""
    remembered_until: Integers
    """How long these are remembered, in milliseconds."""
    expired: NDArray[np.bool_]
    """Which of them get no label."""
    crowded_out: int
    """How many expire because there is no room."""

    def apply(self, join: Join) -> None:
        """Change the tables."""
        plan, rows = self.plan, self.opened
        join.drop_rows(self.closed_rows)
        join.drop_spilled(self.closed_spilled)
        whole = len(rows) == len(plan.event_ids)
        join.open_rows(
            self.digests if whole else self.digests[rows],
            plan.first + rows,
            np.array(plan.timestamps, dtype=np.int64)[rows],
            np.array(plan.versions, dtype=np.int64)[rows],
            self.ids if whole else self.ids.select(rows),
        )
        join.remember_closed(self.closed_digests, self.remembered_until, plan.folded, self.expired)


class _Events(NamedTuple):
    """The events of messages."""

    event_ids: list[Id]
    """Of the interactions."""
    digests: Digests
    """Those of the interactions' events, shape (n, 2)."""
    label_digests: Digests
    """Those of the labels' events, shape (m, 2)."""


class _Found(NamedTuple):
    """Where the predictions of labels are."""

    rows: Integers
    """Of each label: the new predictions first, then the others in the order of labels."""
    label_rows: Integers
    """Those of the others among the labels."""
    join_rows: Integers
    """Of the others, their rows in the join's table; `NO_ROW` of those that are spilled."""
    spilled: list[Pending]
    """Those that are spilled."""


class _Outcomes(NamedTuple):
    """The outcomes, with and without labels."""

    closings: Closings
    expired: NDArray[np.bool_]
    """Which have no label."""
    rows: Integers
    """Of each: the new predictions first, then `_Found`'s others, then those that expired."""
    due: Due
    """Those that expired and are not new, in their order."""
    spilled: list[Pending]
    """Those of them that are spilled."""
    numbers: Integers
    """The numbers of the others, and of those that expired."""

    def spread(self, column: list[Value], missing: Other) -> list[Value | Other]:
        """Return a column of labels as one of outcomes."""
        if len(column) == len(self.expired):
            return [*column]
        return [column[label] if label != NONE else missing for label in self.closings.labels.tolist()]


def try_plan(
    messages: MergedMessages, join: Join, model: Model, progress: Progress, max_steps: int
) -> PlannedMessages | int:
    """Return the plan of messages, if every interaction is new and every label finds its prediction.

    Parameters
    ----------
    messages
        Merged messages; no early label becomes overdue in them.
    join
        Tables; nothing changes in them.
    model
        Its features and its target; nothing changes in it.
    progress
        How far the task has come.
    max_steps
        Most messages and predictions that become overdue.

    Returns
    -------
    PlannedMessages or int
        If something is unusual, a lower number of messages to try instead: those before it, or half of them
        where its place is not known.
    """
    interactions, n = messages.interactions, len(messages.interactions)
    digests, label_digests = _digests(interactions, join), _digests(messages.labels, join)
    events = _Events(interactions.ids(0), digests, label_digests)
    rows = match_events(digests, label_digests)
    if isinstance(rows, int):
        return messages.before_interaction(rows) if rows < n else messages.before_label(rows - n)
    if (known := join.first_known(events.event_ids, digests)) is not None:
        return messages.before_interaction(known)
    found = _find_predictions(rows, messages, label_digests, join)
    if isinstance(found, int):
        return messages.before_label(found)
    if not _labels_match(found, messages, join):
        return messages.half
    outcomes = _close(messages, found, join, progress, max_steps)
    if isinstance(outcomes, int):
        return outcomes
    return _planned(messages, events, found, outcomes, join, model, progress)


def plan_expired(
    join: Join, model: Model, progress: Progress, time: int, max_steps: int
) -> PlannedMessages | None:
    """Return the plan of the predictions that are overdue at a time, before any message.

    Parameters
    ----------
    join, model, progress
        As for `try_plan`.
    time
        In milliseconds.
    max_steps
        Most predictions that expire.

    Returns
    -------
    PlannedMessages or None
        None if they are left to the task: they are too few, or there is no room for all that wait.
    """
    if join.over_capacity():
        return None
    due = join.first_due(time, 0, max_steps)
    count = len(due.rows)
    if count < MIN_MESSAGES:
        return None
    none, places = np.empty(0, dtype=np.int64), np.arange(count)
    closings = Closings(0, np.full(count, NONE), places, none, 0, count)
    return _planned(
        MergedMessages(InputColumns.of([]), InputColumns.of([]), none, none, none, none, NO_TIMESTAMP),
        _Events([], join.digests([]), join.digests([])),
        _Found(none, none, none, []),
        _Outcomes(closings, np.ones(count, dtype=np.bool_), places, due, join.read_spilled(due), due.numbers),
        join,
        model,
        progress,
    )


def _planned(  # noqa: PLR0917 - what was found of the same messages
    messages: MergedMessages,
    events: _Events,
    found: _Found,
    outcomes: _Outcomes,
    join: Join,
    model: Model,
    progress: Progress,
) -> PlannedMessages:
    """Make the plan of messages whose outcomes are known."""
    interactions, labels, n = messages.interactions, messages.labels, len(messages.interactions)
    ratios, expired = labels.field("watch_ratio"), outcomes.expired
    plan = Plan(
        first=progress.predicted,
        folded=progress.folded,
        event_ids=events.event_ids,
        ids=_entity_ids(interactions, model.features.entities),
        timestamps=messages.interaction_times.tolist(),
        values=model.features.event.values_of(interactions.field, messages.interaction_times),
        versions=(progress.folded + outcomes.closings.outcomes_before).tolist(),
        carried=interactions.carried,
        labels=outcomes.spread([*model.target.labels(ratios)], progress.missing_label),
        watch_ratios=outcomes.spread([*ratios], None),
        label_timestamps=outcomes.spread(messages.label_times.tolist(), None),
        weights=outcomes.spread([*labels.field("weight")], 1.0) if model.weighted else [],
        prior=_prior(found, outcomes, labels, progress.first, join),
        steps=outcomes.closings.steps,
    )
    own = np.arange(progress.predicted, progress.predicted + n)
    plan.closed = array("q", np.concatenate([own, outcomes.numbers])[outcomes.rows].tobytes())
    left = np.ones(n, dtype=np.bool_)
    left[outcomes.rows[outcomes.rows < n]] = False
    closed_digests, until = _remembered(messages, events, found, outcomes, join)
    rows = np.concatenate([found.join_rows, outcomes.due.rows])
    return PlannedMessages(
        plan,
        np.flatnonzero(left),
        events.digests,
        _id_columns(interactions),
        rows[rows != NO_ROW],
        [each.event_id for each in found.spilled + outcomes.spilled],
        closed_digests,
        until,
        expired,
        outcomes.closings.crowded_out,
    )


def _digests(columns: InputColumns, join: Join) -> Digests:
    """Return the digests of the events."""
    return join.digester.digests_in(columns.text, columns.begins[0], columns.ends[0])


def _entity_ids(columns: InputColumns, entities: int) -> tuple[list[Id], ...]:
    return tuple(columns.ids(1 + entity) if len(columns) else [] for entity in range(entities))


def _find_predictions(rows: Integers, messages: MergedMessages, digests: Digests, join: Join) -> _Found | int:
    """Find the predictions of the labels; or return a label that none comes before.

    Of each label, `rows` has the row of its interaction, and one more than all rows where there is none here.
    """
    n, labels = len(messages.interactions), messages.labels
    early = np.flatnonzero((rows < n) & (rows >= messages.interactions_before))
    if len(early):
        return int(early[0])
    before = rows == n
    label_rows = np.flatnonzero(before)
    join_rows = join.pending.find(digests[before])
    elsewhere = join_rows == NO_ROW
    spilled = list[Pending]()
    if elsewhere.any():
        records = join.spilled.find_all(labels.ids(0, label_rows[elsewhere])) if join.spilled else None
        if records is None:
            return int(label_rows[np.argmax(elsewhere)])
        spilled = list(map(Pending.of_spilled, records))
    rows[before] += np.arange(len(join_rows))
    return _Found(rows, label_rows, join_rows, spilled)


def _labels_match(found: _Found, messages: MergedMessages, join: Join) -> bool:
    """Whether each label names the entities of its interaction."""
    rows, n = found.rows, len(messages.interactions)
    own, named = rows < n, _id_columns(messages.labels)
    new, earlier = np.flatnonzero(own), found.label_rows
    if not named.equal(new, _id_columns(messages.interactions), rows[new]):
        return False
    in_memory = found.join_rows != NO_ROW
    if not join.same_ids(found.join_rows[in_memory], named, earlier[in_memory]):
        return False
    spilled = found.spilled
    return not spilled or named.equal(
        earlier[~in_memory],
        IdColumns.of([each.event_id for each in spilled], columns_of([each.ids for each in spilled], 0)),
        np.arange(len(spilled)),
    )


def _id_columns(columns: InputColumns) -> IdColumns:
    # Compiled code would be compiled once more for arrays that are not contiguous.
    return IdColumns(columns.text, np.ascontiguousarray(columns.begins), np.ascontiguousarray(columns.ends))


def _close(
    messages: MergedMessages, found: _Found, join: Join, progress: Progress, max_steps: int
) -> _Outcomes | int:
    """Let expire what is overdue or has no room; or return how many messages come before an unusual one.

    Where there is no room before, or spilled predictions might have to expire for want of it, none does.
    """
    n, numbers = len(messages.interactions), _numbers(found, join)
    if join.over_capacity() or (join.spilled and not join.has_room(n)):
        return 0
    due = join.first_due(max(progress.stream_time, messages.time), n, max_steps)
    targets = np.where(found.rows < n, found.rows, NONE)
    if len(due.rows) and len(numbers):
        _, other, place = np.intersect1d(numbers, due.numbers, return_indices=True)
        targets[np.flatnonzero(found.rows >= n)[other]] = n + place
    waiting = Waiting(
        join.pending_count,
        due.deadlines,
        len(due.rows) < max_steps,
        join.window,
        join.max_pending,
        progress.stream_time,
    )
    closings = close_in_order(
        messages.interaction_times, messages.label_times, messages.labels_before, targets, waiting, max_steps
    )
    if closings.messages < n + len(messages.labels):
        return closings.messages
    expired, rows = closings.labels == NONE, closings.targets.copy()
    rows[~expired] = found.rows[closings.labels[~expired]]
    earlier = expired & (rows >= n)
    due = due.select(rows[earlier] - n)
    rows[earlier] = n + len(numbers) + np.arange(len(due.rows))
    numbers = np.concatenate([numbers, due.numbers])
    return _Outcomes(closings, expired, rows, due, join.read_spilled(due), numbers)


def _remembered(
    messages: MergedMessages, events: _Events, found: _Found, outcomes: _Outcomes, join: Join
) -> tuple[Digests, Integers]:
    """Return the digests of the events that get an outcome, and how long they are remembered."""
    known_until, expired = messages.label_times + join.window, outcomes.expired
    if not expired.any():
        return events.label_digests, known_until
    rows, n = outcomes.rows[expired], len(events.digests)
    places = np.where(rows < n, rows, rows - len(found.join_rows))
    deadlines = [messages.interaction_times + join.window, outcomes.due.deadlines]
    digests, until = np.empty((len(expired), 2), dtype=np.uint64), np.empty(len(expired), dtype=np.int64)
    digests[expired] = np.concatenate([events.digests, join.digests_of(outcomes.due)])[places]
    until[expired] = np.concatenate(deadlines)[places] + join.window
    digests[~expired], until[~expired] = events.label_digests, known_until
    return digests, until


def _numbers(found: _Found, join: Join) -> Integers:
    """Return the numbers of the predictions of labels that were made before."""
    numbers, in_memory = np.empty(len(found.join_rows), dtype=np.int64), found.join_rows != NO_ROW
    numbers[in_memory] = join.pending.numbers[found.join_rows[in_memory]]
    numbers[~in_memory] = [each.sequence for each in found.spilled]
    return numbers


def _prior(
    found: _Found, outcomes: _Outcomes, labels: InputColumns, first: int, join: Join
) -> PriorPredictions:
    """Return those of the predictions found that were made before the batch, in the order of outcomes."""
    n, others = len(outcomes.closings.outcomes_before), len(found.join_rows)
    places = outcomes.rows[outcomes.rows >= n] - n
    places = places[outcomes.numbers[places] < first]
    all_rows = np.concatenate([found.join_rows, outcomes.due.rows])
    in_memory, labelled = all_rows[places] != NO_ROW, places < others
    parts = [
        np.flatnonzero(in_memory & labelled),
        np.flatnonzero(in_memory & ~labelled),
        np.flatnonzero(~in_memory),
    ]
    of_labels, expired, spilled = (places[part] for part in parts)
    label_rows = found.label_rows[of_labels]
    ids = [labels.ids(column, label_rows) for column in range(len(labels.begins))]
    prior = _prior_in_memory(all_rows[of_labels], ids, join)
    if len(expired):
        rows = all_rows[expired]
        prior.extend(_prior_in_memory(rows, [*map(list, zip(*join.ids_of(rows), strict=True))], join))
    if len(spilled):
        objects = zip(
            np.flatnonzero(all_rows == NO_ROW).tolist(), found.spilled + outcomes.spilled, strict=True
        )
        prior.extend(PriorPredictions.of(map(dict(objects).__getitem__, spilled.tolist())))
    if len(expired) or len(spilled):
        return prior.take(np.argsort(np.concatenate(parts)).tolist())
    return prior


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
