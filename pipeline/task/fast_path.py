"""Stretches of the merge in which nothing unusual happens, taken at once.

Nearly always an interaction is new and a label finds its prediction. Messages of which all that is true
come to the same whether `pipeline.task.task` takes one after the other or all of them at once, which costs less.
What may be otherwise (repetitions, early labels, messages that cannot be used, a table that is full, a
prediction about to expire) is left to the task.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np

from pipeline.features.target import WATCHED
from pipeline.join.merge import Integers, merge
from pipeline.join.tables import Join, Pending
from pipeline.records.decoding import FIRST
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, WatchLabel
from pipeline.task.plan import Plan
from pipeline.task.record_queue import Inlet

SHORTEST = 8
"""Messages that are worth a look."""
LONGEST = 1024
"""Messages that are looked at together: few enough to stay in the processor's cache."""

FAR = 2**62
"""As late as a compiled comparison takes."""


class Merged(NamedTuple):
    """The next messages of both inputs, and how they follow one another."""

    interactions: list[Interaction]
    labels: list[WatchLabel]
    shown_times: Integers
    """Those of the interactions."""
    told_times: Integers
    """Those of the labels."""
    labels_before: Integers
    """How many come before each interaction."""
    interactions_before: Integers
    """How many come before each label."""
    time: int
    """Stream time after them, if it was not ahead of them."""


def merged(interactions: Inlet, labels: Inlet, join: Join, most: int) -> Merged:
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
    shown, shown_times, more_shown = _ahead(interactions, most)
    told, told_times, more_told = _ahead(labels, most)
    labels_before, interactions_before = np.empty((2, most), dtype=np.int64)
    n, m, time = merge(
        shown_times,
        told_times,
        more_shown,
        more_told,
        join.window,
        min(join.quiet_until(), FAR),
        most,
        labels_before,
        interactions_before,
    )
    return Merged(
        shown[:n],
        told[:m],
        shown_times[:n],
        told_times[:m],
        labels_before[:n],
        interactions_before[:m],
        time,
    )


def _ahead(inlet: Inlet, most: int) -> tuple[list[Any], Integers, bool]:
    """Records up to one that cannot be used, their times, and whether there may be more messages."""
    ahead, records = inlet.peek(most)
    times = np.frombuffer(ahead, dtype=np.int64)
    more = len(records) < len(inlet) or not inlet.at_end
    if len(records) and times.min() == FIRST:
        end = int(np.argmin(times))
        times, records, more = times[:end], records[:end], True
    return records, times, more


def usual(messages: Merged, join: Join, predicted: int, folded: int) -> Plan | None:
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
    event_ids, answered = [each.event_id for each in shown], [each.event_id for each in told]
    opened = dict(zip(event_ids, range(n), strict=True))
    if len(opened) < n or len(set(answered)) < m or not (join.has_room(n, m) and join.are_new(opened)):
        return None
    found = _found(answered, opened, join.pending)
    if found is None:
        return None
    rows, carried = found
    ratios = [each.watch_ratio for each in told]
    plan = Plan(
        first=predicted,
        folded=folded,
        event_ids=event_ids,
        users=[each.user_id for each in shown],
        videos=[each.video_id for each in shown],
        timestamps=messages.shown_times.tolist(),
        versions=(folded + messages.labels_before).tolist(),
        watched=[ratio > WATCHED for ratio in ratios],
        watch_ratios=list(ratios),
        label_timestamps=list(messages.told_times.tolist()),
        carried=carried,
        steps=n + m,
    )
    if not _fit(rows, plan, messages):
        return None
    sequences = np.array([*range(predicted, predicted + n), *(each.sequence for each in carried)], np.int64)
    plan.closed = array("q", sequences[rows].tobytes())
    left = np.ones(len(sequences), dtype=np.bool_)
    left[rows] = False
    plan.waiting = plan.pending(np.flatnonzero(left).tolist())
    return plan


def _found(
    answered: list[Id], opened: dict[Id, int], pending: dict[Id, Pending]
) -> tuple[Integers, list[Pending]] | None:
    """The predictions that labels are for; None if one is missing.

    They are numbered: first the new ones, by `opened`, and then those that wait, which are given as well.
    """
    n = len(opened)
    rows = np.array([opened.get(event_id, n) for event_id in answered], dtype=np.int64)
    before = rows == n
    try:
        carried = [pending[answered[number]] for number in np.flatnonzero(before).tolist()]
    except KeyError:
        return None
    rows[before] += np.arange(len(carried))
    return rows, carried


def _fit(rows: Integers, plan: Plan, messages: Merged) -> bool:
    """Whether each label comes after its interaction, and is of the same user and video."""
    users = plan.users + [each.user_id for each in plan.carried]
    videos = plan.videos + [each.video_id for each in plan.carried]
    asked = rows.tolist()
    return (
        [users[row] for row in asked] == [each.user_id for each in messages.labels]
        and [videos[row] for row in asked] == [each.video_id for each in messages.labels]
        and bool(((rows < messages.interactions_before) | (rows >= len(plan.users))).all())
    )
