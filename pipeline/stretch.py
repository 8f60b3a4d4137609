"""Stretches of the merge in which nothing unusual happens, taken at once.

Nearly always an interaction is new and a label finds its prediction. Messages of which all that is true
come to the same whether `pipeline.task` takes one after the other or all of them at once, which costs less.
What may be otherwise (repetitions, early labels, messages that cannot be used, a table that is full, a
prediction about to expire) is left to the task.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.batch import Closing
from pipeline.inlet import FIRST, Inlet
from pipeline.join import Join, Pending
from pipeline.labels import WATCHED
from pipeline.records import Interaction, WatchLabel

SHORTEST = 8
"""Messages that are worth a look."""
LONGEST = 1024
"""Messages that are looked at together: few enough to stay in the processor's cache."""

Integers: TypeAlias = NDArray[np.int64]


class Merged(NamedTuple):
    """The next messages of both inputs, and their places in the merge."""

    interactions: list[Interaction]
    labels: list[WatchLabel]
    interaction_places: Integers
    label_places: Integers
    time: int
    """Stream time after them, if it was not ahead of them."""


class Stretch(NamedTuple):
    """What messages come to: see `pipeline.batch.Plan`, with numbers that begin at 0."""

    predictions: list[Pending]
    closings: list[Closing]
    order: list[int]


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
    # No message of an input goes before an earlier one of it.
    shown_keys, told_keys = np.maximum.accumulate(shown_times), np.maximum.accumulate(told_times)
    shown_places = np.arange(len(shown)) + np.searchsorted(told_keys, shown_keys, "right")
    told_places = np.arange(len(told)) + np.searchsorted(shown_keys, told_keys, "left")
    quiet = join.quiet_until()
    if len(shown):
        quiet = min(quiet, int(shown_times.min()) + join.window)
    shown_count, told_count = (
        np.searchsorted(shown_keys, quiet, "right"),
        np.searchsorted(told_keys, quiet, "right"),
    )
    if more_shown:
        last = shown_keys[-1] if len(shown) else FIRST
        told_count = min(told_count, np.searchsorted(told_keys, last, "right"))
    if more_told:
        last = told_keys[-1] if len(told) else FIRST
        shown_count = min(shown_count, np.searchsorted(shown_keys, last, "left"))
    end = min([most, *shown_places[shown_count:][:1], *told_places[told_count:][:1]])
    n, m = np.searchsorted(shown_places, end), np.searchsorted(told_places, end)
    time = max([FIRST, *shown_keys[:n][-1:].tolist(), *told_keys[:m][-1:].tolist()])
    return Merged(shown[:n], told[:m], shown_places[:n], told_places[:m], time)


def _ahead(inlet: Inlet, most: int) -> tuple[list[Any], Integers, bool]:
    """Records up to one that cannot be used, their times, and whether there may be more messages."""
    times, records = inlet.peek(most)
    more = len(records) < len(inlet) or not inlet.at_end
    if FIRST in times:
        end = times.index(FIRST)
        times, records, more = times[:end], records[:end], True
    return records, np.array(times, dtype=np.int64), more


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
    before = messages.interaction_places - np.arange(n)
    predictions = list(
        map(
            Pending,
            ids,
            [play.user_id for play in plays],
            [play.video_id for play in plays],
            [play.timestamp for play in plays],
            (folded + before).tolist(),
            range(predicted, predicted + n),
        )
    )
    opened, pending = dict(zip(ids, predictions, strict=True)), join.pending
    found = [pending.get(event_id) or opened.get(event_id) for event_id in answered]
    asked = [each for each in found if each is not None]
    if len(asked) < m or not _fit(asked, messages, predicted):
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
    order = np.empty(n + m, dtype=np.int64)
    order[messages.interaction_places], order[messages.label_places] = np.arange(n), ~np.arange(m)
    return Stretch(predictions, list(closings), order.tolist())


def _fit(asked: list[Pending], messages: Merged, predicted: int) -> bool:
    """Whether each label comes after its interaction, and is of the same user and video."""
    answers = messages.labels
    sequences = np.array([prediction.sequence for prediction in asked], dtype=np.int64)
    now = sequences >= predicted
    shown_at = messages.interaction_places[sequences[now] - predicted]
    return (
        [prediction.user_id for prediction in asked] == [answer.user_id for answer in answers]
        and [prediction.video_id for prediction in asked] == [answer.video_id for answer in answers]
        and bool((shown_at < messages.label_places[now]).all())
    )
