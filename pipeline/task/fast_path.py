"""The fast path: process many messages at once, where nothing unusual happens.

Nearly always an interaction is new and a label finds its prediction. For such messages, one by one in
`pipeline.task.task` and all at once here give the same result, and all at once costs less. Everything else
(duplicates, early labels, messages that cannot be used, a full table, a prediction about to expire) is left
to the task.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np

from pipeline.join.merge import Integers, merge
from pipeline.join.tables import Join, Pending
from pipeline.model.model import Model
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, Label
from pipeline.task.plan import Plan
from pipeline.task.record_queue import RecordQueue

MIN_MESSAGES = 8
"""Fewest messages for which the fast path is tried."""
MAX_MESSAGES = 1024
"""Most messages processed together: few enough to stay in the processor's cache."""

MAX_TIME = 2**62
"""Latest time that the compiled merge accepts."""


class MergedMessages(NamedTuple):
    """The next messages of both inputs, and their order."""

    interactions: list[Interaction]
    labels: list[Label]
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
    interaction_records, interaction_times, more_interactions = _peek(interactions, max_messages, end)
    label_records, label_times, more_labels = _peek(labels, max_messages, end)
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
        interaction_records[:n],
        label_records[:m],
        interaction_times[:n],
        label_times[:m],
        labels_before[:n],
        interactions_before[:m],
        time,
    )


def _peek(queue: RecordQueue, max_messages: int, end: int | None) -> tuple[list[Any], Integers, bool]:
    """Return records up to one that cannot be used or is too late, their times, and whether more may come."""
    ahead, records = queue.peek(max_messages)
    times = np.frombuffer(ahead, dtype=np.int64)
    more = len(records) < len(queue) or not queue.at_end
    if len(records) and times.min() == NO_TIMESTAMP:
        unusable = int(np.argmin(times))
        times, records, more = times[:unusable], records[:unusable], True
    if end is not None and len(records) and times.max() >= end:
        late = int(np.argmax(times >= end))
        times, records, more = times[:late], records[:late], True
    return records, times, more


def try_plan(messages: MergedMessages, join: Join, model: Model, predicted: int, folded: int) -> Plan | None:
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

    Returns
    -------
    Plan or None
        Plan in which the predictions wait that are not closed in it; None if something is unusual.
    """
    interactions, labels = messages.interactions, messages.labels
    n, m = len(interactions), len(labels)
    event_ids, label_event_ids = [each.event_id for each in interactions], [each.event_id for each in labels]
    rows_by_event = dict(zip(event_ids, range(n), strict=True))
    if (
        len(rows_by_event) < n
        or len(set(label_event_ids)) < m
        or not (join.has_room(n, m) and join.are_new(rows_by_event))
    ):
        return None
    found = _match_labels(label_event_ids, rows_by_event, join)
    if found is None:
        return None
    rows, prior_predictions = found
    ratios = [each.watch_ratio for each in labels]
    plan = Plan(
        first=predicted,
        folded=folded,
        event_ids=event_ids,
        ids=[each.ids for each in interactions],
        timestamps=messages.interaction_times.tolist(),
        values=model.features.event.values(interactions, messages.interaction_times),
        versions=(folded + messages.labels_before).tolist(),
        carried=[each.carried for each in interactions] if n and interactions[0].carried else [],
        labels=[*model.target.labels(ratios)],
        watch_ratios=list(ratios),
        label_timestamps=list(messages.label_times.tolist()),
        weights=[each.weight for each in labels] if model.weighted else [],
        prior_predictions=prior_predictions,
        steps=n + m,
    )
    if not _labels_match(rows, plan, messages):
        return None
    sequences = np.array(
        [*range(predicted, predicted + n), *(each.sequence for each in prior_predictions)], np.int64
    )
    plan.closed = array("q", sequences[rows].tobytes())
    left = np.ones(len(sequences), dtype=np.bool_)
    left[rows] = False
    plan.waiting = plan.pending(np.flatnonzero(left).tolist())
    return plan


def _match_labels(
    label_event_ids: list[Id], rows_by_event: dict[Id, int], join: Join
) -> tuple[Integers, list[Pending]] | None:
    """Find the predictions of labels; None if one is missing.

    Returns the row of each label's prediction, and the prior predictions. Rows count the new predictions
    first, by `rows_by_event`, then the prior ones.
    """
    n = len(rows_by_event)
    rows = np.array([rows_by_event.get(event_id, n) for event_id in label_event_ids], dtype=np.int64)
    before = rows == n
    prior_predictions = join.find_all([label_event_ids[number] for number in np.flatnonzero(before).tolist()])
    if prior_predictions is None:
        return None
    rows[before] += np.arange(len(prior_predictions))
    return rows, prior_predictions


def _labels_match(rows: Integers, plan: Plan, messages: MergedMessages) -> bool:
    """Whether each label comes after its interaction, and names the same entities."""
    n = len(plan.event_ids)
    ids = plan.ids + [each.ids for each in plan.prior_predictions]
    return [ids[row] for row in rows.tolist()] == [each.ids for each in messages.labels] and bool(
        ((rows < messages.interactions_before) | (rows >= n)).all()
    )
