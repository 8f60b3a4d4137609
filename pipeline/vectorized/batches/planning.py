"""The fast path: process many messages at once, where nothing unusual happens.

Nearly always an interaction is new and a label finds its prediction. For such messages, one by one in
`pipeline.task.task` and all at once here give the same result, and all at once costs less. Everything else
(duplicates, early labels, messages that cannot be used, a full table, a prediction about to expire) is left
to the task.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from pipeline.join.digests import Digests
from pipeline.join.event_rows import NO_ROW
from pipeline.join.records import Pending
from pipeline.join.tables import UNDECIDED, Join
from pipeline.model.model import Model
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.entities import columns_of
from pipeline.records.fields import Id
from pipeline.task.plan import Plan
from pipeline.task.prior_predictions import PriorPredictions
from pipeline.task.record_queue import RecordQueue
from pipeline.vectorized.batches.matching import match_events
from pipeline.vectorized.batches.merging import Integers, merge
from pipeline.vectorized.columns.id_columns import IdColumns
from pipeline.vectorized.columns.input_columns import InputColumns

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

MAX_TIME = 2**62
"""Latest time that the compiled merge accepts."""


class MergedMessages(NamedTuple):
    """The next messages of both inputs, and their order."""

    interactions: InputColumns
    labels: InputColumns
    interaction_times: Integers
    """Those of the interactions."""
    label_times: Integers
    """Those of the labels."""
    labels_before: Integers
    """How many come before each interaction."""
    interactions_before: Integers
    """How many come before each label."""
    time: int
    """Stream time after them, if it was not ahead of them."""

    @property
    def half(self) -> int:
        """Half of their number."""
        return (len(self.interactions) + len(self.labels)) // 2

    def before_interaction(self, row: int) -> int:
        """Return how many messages come before an interaction."""
        return row + int(self.labels_before[row])

    def before_label(self, row: int) -> int:
        """Return how many messages come before a label."""
        return row + int(self.interactions_before[row])


def merge_queued(
    interactions: RecordQueue, labels: RecordQueue, join: Join, max_messages: int, end: int | None = None
) -> MergedMessages:
    """Merge buffered messages up to one that has to wait, cannot be used, or makes anything overdue.

    Parameters
    ----------
    interactions, labels
        Queues of the inputs; nothing is removed from them.
    join
        Tables with the next deadline.
    max_messages
        Most messages to merge.
    end
        All merged messages are of earlier times; None for any time.
    """
    interaction_times, more_interactions = _peek(interactions, max_messages, end)
    label_times, more_labels = _peek(labels, max_messages, end)
    labels_before, interactions_before = np.empty((2, max_messages), dtype=np.int64)
    n, m, time = merge(
        interaction_times,
        label_times,
        more_interactions,
        more_labels,
        join.window,
        min(join.next_deadline(), MAX_TIME),
        max_messages,
        labels_before,
        interactions_before,
    )
    return MergedMessages(
        interactions.columns(n),
        labels.columns(m),
        interaction_times[:n],
        label_times[:m],
        labels_before[:n],
        interactions_before[:m],
        time,
    )


def _peek(queue: RecordQueue, max_messages: int, end: int | None) -> tuple[Integers, bool]:
    """Return merge times up to one that cannot be used or is too late, and whether more may come."""
    times = np.frombuffer(queue.peek(max_messages), dtype=np.int64)
    more = len(times) < len(queue) or not queue.at_end
    if len(times) and times.min() == NO_TIMESTAMP:
        times, more = times[: np.argmin(times)], True
    if end is not None and len(times) and times.max() >= end:
        times, more = times[: np.argmax(times >= end)], True
    return times, more


class PlannedMessages(NamedTuple):
    """The plan of messages, and what becomes of the join's tables."""

    plan: Plan
    opened: list[int]
    """Rows of the plan's predictions that wait for their label."""
    digests: Digests
    """Those of the events of the plan's predictions, shape (n, 2)."""
    ids: IdColumns
    """Their ids."""
    closed_rows: Integers
    """Rows of the predictions in memory that get an outcome."""
    closed_spilled: list[Id]
    """Events of the spilled predictions that get an outcome."""
    label_digests: Digests
    """Those of the labels' events, shape (m, 2)."""

    def apply(self, join: Join, label_times: Integers) -> None:
        """Change the tables."""
        plan, rows = self.plan, self.opened
        join.drop_rows(self.closed_rows)
        join.drop_spilled(self.closed_spilled)
        whole = len(rows) == len(plan.event_ids)
        join.open_rows(
            self.digests if whole else self.digests[rows],
            plan.first + np.array(rows, dtype=np.int64),
            np.array([plan.timestamps[row] for row in rows], dtype=np.int64),
            np.array([plan.versions[row] for row in rows], dtype=np.int64),
            self.ids if whole else self.ids.select(np.array(rows, dtype=np.int64)),
        )
        join.remember_labelled(self.label_digests, label_times, plan.folded)


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


def try_plan(  # noqa: PLR0917 - state of the task
    messages: MergedMessages, join: Join, model: Model, predicted: int, folded: int, first: int
) -> PlannedMessages | int:
    """Return the plan of messages, if every interaction is new and every label finds its prediction.

    Parameters
    ----------
    messages
        Merged messages; nothing becomes overdue in them.
    join
        Tables; nothing changes in them.
    model
        Its features and its target; nothing changes in it.
    predicted, folded
        Predictions and outcomes planned before.
    first
        The first prediction of the batch, the model's output for which is not known yet.

    Returns
    -------
    PlannedMessages or int
        If something is unusual, a lower number of messages to try instead: those before it, or half of them
        where its place is not known.
    """
    interactions, labels = messages.interactions, messages.labels
    n, m = len(interactions), len(labels)
    digests, label_digests = _digests(interactions, join), _digests(labels, join)
    rows, event_ids = match_events(digests, label_digests), interactions.ids(0)
    if isinstance(rows, int):
        return messages.before_interaction(rows) if rows < n else messages.before_label(rows - n)
    if (known := join.first_known(event_ids, digests)) is not None:
        return messages.before_interaction(known)
    if not join.has_room(n, m):
        return messages.half
    found = _find_predictions(rows, messages, label_digests, join)
    if isinstance(found, int):
        return messages.before_label(found)
    if not _labels_match(found, messages, join):
        return messages.half
    ids = _entity_ids(interactions, model.features.entities)
    numbers = _numbers(found, join)
    ratios = labels.field("watch_ratio")
    plan = Plan(
        first=predicted,
        folded=folded,
        event_ids=event_ids,
        ids=ids,
        timestamps=messages.interaction_times.tolist(),
        values=model.features.event.values_of(interactions.field, messages.interaction_times),
        versions=(folded + messages.labels_before).tolist(),
        carried=interactions.carried,
        labels=[*model.target.labels(ratios)],
        watch_ratios=[*ratios],
        label_timestamps=list(messages.label_times.tolist()),
        weights=labels.field("weight") if model.weighted else [],
        prior=_prior(found, labels, numbers, first, join),
        steps=n + m,
    )
    plan.closed = array(
        "q", np.concatenate([np.arange(predicted, predicted + n), numbers])[found.rows].tobytes()
    )
    left = np.ones(n, dtype=np.bool_)
    left[found.rows[found.rows < n]] = False
    return PlannedMessages(
        plan,
        np.flatnonzero(left).tolist(),
        digests,
        _id_columns(interactions),
        found.join_rows[found.join_rows != NO_ROW],
        [each.event_id for each in found.spilled],
        label_digests,
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


def _numbers(found: _Found, join: Join) -> Integers:
    """Return the numbers of the predictions that were made before."""
    numbers, in_memory = np.empty(len(found.join_rows), dtype=np.int64), found.join_rows != NO_ROW
    numbers[in_memory] = join.pending.numbers[found.join_rows[in_memory]]
    numbers[~in_memory] = [each.sequence for each in found.spilled]
    return numbers


def _prior(
    found: _Found, labels: InputColumns, numbers: Integers, first: int, join: Join
) -> PriorPredictions:
    """Return those of the predictions found that were made before the batch."""
    before = numbers < first
    if found.spilled:
        spilled = iter(found.spilled)
        each = [next(spilled) if row == NO_ROW else join.pending_at(row) for row in found.join_rows.tolist()]
        return PriorPredictions.of(prediction for prediction in each if prediction.sequence < first)
    pending, rows, label_rows = join.pending, found.join_rows[before], found.label_rows[before]
    asked = pending["asked"][rows].tolist()
    event_ids, *ids = (labels.ids(column, label_rows) for column in range(len(labels.begins)))
    return PriorPredictions(
        array("q", numbers[before].tobytes()),
        event_ids,
        tuple(ids),
        (pending.deadlines[rows] - join.window).tolist(),
        bytearray(join.scored.of(rows).tobytes()),
        [None if each == UNDECIDED else bool(each) for each in asked],
        join.challengers_of(numbers[before]),
    )
