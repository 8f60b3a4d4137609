"""Stretches of the merge in which nothing unusual happens, taken at once.

Nearly always an interaction is new and a label finds its prediction. Messages of which all that is true
come to the same whether `pipeline.task.task` takes one after the other or all of them at once, which costs
less. What may be otherwise (repetitions, early labels, messages that cannot be used, a table that is full, a
prediction about to expire) is left to the task.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np

from pipeline.features.target import TARGET
from pipeline.join.merge import Integers, merge
from pipeline.join.tables import Join, Pending
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, WatchLabel
from pipeline.task.plan import Plan
from pipeline.task.record_queue import RecordQueue

MIN_MESSAGES = 8
"""Messages that are worth a look."""
MAX_MESSAGES = 1024
"""Messages that are looked at together: few enough to stay in the processor's cache."""

MAX_TIME = 2**62
"""As late as a compiled comparison takes."""


class MergedMessages(NamedTuple):
    """The next messages of both inputs, and how they follow one another."""

    interactions: list[Interaction]
    labels: list[WatchLabel]
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
    interactions: RecordQueue, labels: RecordQueue, join: Join, max_messages: int
) -> MergedMessages:
    """The messages that need not wait for others, up to one that cannot be used, before anything is overdue.

    Parameters
    ----------
    interactions, labels
        Nothing is taken from them.
    join
        Tells what will be overdue.
    most
        Messages, at most.
    """
    shown, interaction_times, more_interactions = _peek(interactions, max_messages)
    told, label_times, more_labels = _peek(labels, max_messages)
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
        shown[:n],
        told[:m],
        interaction_times[:n],
        label_times[:m],
        labels_before[:n],
        interactions_before[:m],
        time,
    )


def _peek(queue: RecordQueue, max_messages: int) -> tuple[list[Any], Integers, bool]:
    """Records up to one that cannot be used, their times, and whether there may be more messages."""
    ahead, records = queue.peek(max_messages)
    times = np.frombuffer(ahead, dtype=np.int64)
    more = len(records) < len(queue) or not queue.at_end
    if len(records) and times.min() == NO_TIMESTAMP:
        end = int(np.argmin(times))
        times, records, more = times[:end], records[:end], True
    return records, times, more


def try_plan(messages: MergedMessages, join: Join, predicted: int, folded: int) -> Plan | None:
    """What the messages come to, if every interaction is new and every label finds its prediction.

    Parameters
    ----------
    messages
        In which nothing becomes overdue.
    join
        Nothing changes in it.
    predicted, folded
        Predictions and outcomes planned before.

    Returns
    -------
    Plan or None
        Of its predictions, those wait that are not closed in it. None if something is unusual.
    """
    shown, told = messages.interactions, messages.labels
    n, m = len(shown), len(told)
    event_ids, label_event_ids = [each.event_id for each in shown], [each.event_id for each in told]
    rows_by_event = dict(zip(event_ids, range(n), strict=True))
    if (
        len(rows_by_event) < n
        or len(set(label_event_ids)) < m
        or not (join.has_room(n, m) and join.are_new(rows_by_event))
    ):
        return None
    found = _match_labels(label_event_ids, rows_by_event, join.pending)
    if found is None:
        return None
    rows, prior_predictions = found
    ratios = [each.watch_ratio for each in told]
    plan = Plan(
        first=predicted,
        folded=folded,
        event_ids=event_ids,
        users=[each.user_id for each in shown],
        videos=[each.video_id for each in shown],
        timestamps=messages.interaction_times.tolist(),
        versions=(folded + messages.labels_before).tolist(),
        watched=list(TARGET.positives(ratios)),
        watch_ratios=list(ratios),
        label_timestamps=list(messages.label_times.tolist()),
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
    label_event_ids: list[Id], rows_by_event: dict[Id, int], pending: dict[Id, Pending]
) -> tuple[Integers, list[Pending]] | None:
    """The predictions that labels are for; None if one is missing.

    They are numbered: first the new ones, by `rows_by_event`, and then those that wait, which are given as
    well.
    """
    n = len(rows_by_event)
    rows = np.array([rows_by_event.get(event_id, n) for event_id in label_event_ids], dtype=np.int64)
    before = rows == n
    try:
        prior_predictions = [pending[label_event_ids[number]] for number in np.flatnonzero(before).tolist()]
    except KeyError:
        return None
    rows[before] += np.arange(len(prior_predictions))
    return rows, prior_predictions


def _labels_match(rows: Integers, plan: Plan, messages: MergedMessages) -> bool:
    """Whether each label comes after its interaction, and is of the same user and video."""
    users = plan.users + [each.user_id for each in plan.prior_predictions]
    videos = plan.videos + [each.video_id for each in plan.prior_predictions]
    asked = rows.tolist()
    return (
        [users[row] for row in asked] == [each.user_id for each in messages.labels]
        and [videos[row] for row in asked] == [each.video_id for each in messages.labels]
        and bool(((rows < messages.interactions_before) | (rows >= len(plan.users))).all())
    )
