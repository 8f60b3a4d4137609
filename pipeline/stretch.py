"""Stretches of the merge in which nothing unusual happens, taken at once.

Nearly always an interaction is new and a label finds its prediction. Messages of which all that is true
come to the same whether `pipeline.task` takes one after the other or all of them at once, which costs less.
What may be otherwise (repetitions, early labels, messages that cannot be used, a table that is full, a
prediction about to expire) is left to the task.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipeline.inlet import FIRST, Inlet
from pipeline.join import Join, Pending
from pipeline.labels import WATCHED
from pipeline.merge import Integers, merge
from pipeline.plan import Closing
from pipeline.records import Id, Interaction, WatchLabel

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
    order: Integers
    """Turns: i for interaction i, ~i for label i."""
    labels_before: Integers
    """How many come before each interaction."""
    interactions_before: Integers
    """How many come before each label."""
    time: int
    """Stream time after them, if it was not ahead of them."""


class Stretch(NamedTuple):
    """What messages come to: see `pipeline.plan.Plan`, with numbers that begin at 0."""

    predictions: dict[Id, Pending]
    """By event."""
    closings: list[Closing]
    order: Integers


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
    order, labels_before, interactions_before = np.empty((3, most), dtype=np.int64)
    n, m, time = merge(
        shown_times,
        told_times,
        more_shown,
        more_told,
        join.window,
        min(join.quiet_until(), FAR),
        order,
        labels_before,
        interactions_before,
    )
    return Merged(
        shown[:n],
        told[:m],
        shown_times[:n],
        told_times[:m],
        order[: n + m],
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


def usual(messages: Merged, join: Join, predicted: int, folded: int) -> Stretch | None:
    """What the messages come to, if every interaction is new and every label finds its prediction.

    Parameters
    ----------
    messages
        In which nothing becomes overdue.
    join
        Nothing changes in it.
    predicted, folded
        Predictions made and outcomes planned before.
    """
    plays, answers = messages.interactions, messages.labels
    n, m = len(plays), len(answers)
    ids, answered = [play.event_id for play in plays], [answer.event_id for answer in answers]
    if not join.has_room(n, m) or not join.are_new(ids) or len(set(answered)) < m:
        return None
    predictions = map(
        Pending,
        ids,
        [play.user_id for play in plays],
        [play.video_id for play in plays],
        [play.timestamp for play in plays],
        (folded + messages.labels_before).tolist(),
        range(predicted, predicted + n),
    )
    opened = dict(zip(ids, predictions, strict=True))
    asked = _found(answered, join.pending, opened)
    if asked is None or not _fit(asked, messages, predicted):
        return None
    ratios = [answer.watch_ratio for answer in answers]
    closings = map(
        Closing,
        asked,
        [ratio > WATCHED for ratio in ratios],
        ratios,
        [answer.timestamp for answer in answers],
        range(folded, folded + m),
    )
    return Stretch(opened, list(closings), messages.order)


def _found(answered: list[Id], pending: dict[Id, Pending], opened: dict[Id, Pending]) -> list[Pending] | None:
    """The predictions that labels are for, of those that wait and of the new ones; None if one is missing."""
    try:
        return [pending.get(event_id) or opened[event_id] for event_id in answered]
    except KeyError:
        return None


def _fit(asked: list[Pending], messages: Merged, predicted: int) -> bool:
    """Whether each label comes after its interaction, and is of the same user and video."""
    answers = messages.labels
    numbers = np.array([prediction.sequence for prediction in asked], dtype=np.int64) - predicted
    return (
        [prediction.user_id for prediction in asked] == [answer.user_id for answer in answers]
        and [prediction.video_id for prediction in asked] == [answer.video_id for answer in answers]
        and bool((numbers < messages.interactions_before).all())
    )
