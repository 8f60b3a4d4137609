"""A batch's records as they go into the topics, written all at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress, count, repeat
from typing import Final, NamedTuple, TypeVar

import msgspec
import numpy as np

from pipeline.model.label_policy import Policy
from pipeline.model.model import Judgements, Model, Plays
from pipeline.records import decimals
from pipeline.records.encoding import encode, encode_all
from pipeline.records.fields import Id
from pipeline.records.outcome_encoder import (
    PLAIN,
    Ending,
    conclusion,
    encode_endings,
    end_of_opening,
    plain_ends,
)
from pipeline.records.outputs import LabelRequest, Prediction, Share
from pipeline.task.plan import Lessons, Plan


class Lines(NamedTuple):
    """Records of a partition as they go into a topic, in the order of their sequences."""

    first: int
    """The sequence of the first."""
    values: list[bytes]
    users: list[Id]
    """Whose they are."""
    timestamps: list[int]
    """Event times, in milliseconds."""

    def then(self, later: Lines) -> Lines:
        """These and the next ones."""
        if not (self.values and later.values):
            return self if self.values else later
        return Lines(
            self.first,
            self.values + later.values,
            self.users + later.users,
            self.timestamps + later.timestamps,
        )


Value = TypeVar("Value")
NOTHING: Final = Lines(0, [], [], [])


class Said(NamedTuple):
    """What was said of plays, column by column."""

    plays: Plays
    scores: list[float]
    texts: list[bytes]
    """What their outcomes begin with, up to the places in the next column: see `pipeline.records.outcome_encoder.opening`."""
    ends: list[int | None]
    conclusions: list[bytes]
    """What their outcomes end with: see `pipeline.records.outcome_encoder.conclusion`."""


def requested(
    plan: Plan, judged: Judgements, policy: Policy, counters: Counter[str]
) -> tuple[list[bool], Lines]:
    """Decide of which predictions the label is asked for, and write that down."""
    first, asked, values = counters["asked"], list[bool](), []
    columns = (plan.event_ids, plan.users, plan.videos, plan.timestamps, judged.scores)
    for sequence, features, play in zip(
        count(plan.first), judged.features.tolist(), zip(*columns, strict=True), strict=False
    ):
        event_id, *_, score = play
        wanted = policy.asks(event_id, score, features, predicted=sequence, asked=counters["asked"])
        asked.append(wanted)
        if wanted:
            values.append(encode(LabelRequest(*play, sequence, counters["asked"])))
            counters["asked"] += 1
    users, timestamps = list(compress(plan.users, asked)), list(compress(plan.timestamps, asked))
    return asked, Lines(first, values, users, timestamps)


def predicted(plan: Plan, judged: Judgements, asked: list[bool] | None) -> Lines:
    """Predictions, and what was said of them."""
    if not plan.event_ids:
        return NOTHING
    values = encode_all(
        map(
            Prediction,
            plan.event_ids,
            plan.users,
            plan.videos,
            plan.timestamps,
            judged.scores,
            judged.probabilities,
            [score > 0.0 for score in judged.scores],
            map(msgspec.Raw, decimals.encode_rows(judged.features)),
            plan.versions,
            count(plan.first),
            judged.challengers,
            repeat(None) if asked is None else asked,
        )
    )
    return Lines(plan.first, values, plan.users, plan.timestamps)


def said(plan: Plan, plays: Plays, judged: Judgements, written: Lines, asked: list[bool] | None) -> Said:
    """What was said of a plan's plays, before and now."""
    carried, values = plan.carried, written.values
    if asked is None and not any(judged.challengers[:1]):
        ends, conclusions = plain_ends(plan.first, len(values)), [PLAIN] * len(values)
    else:
        ends, conclusions = list(map(end_of_opening, values)), list(map(conclusion, values))
    return Said(
        plays,
        [each.score for each in carried] + judged.scores,
        [each.opening for each in carried] + values,
        [None] * len(carried) + ends,
        [each.conclusion for each in carried] + conclusions,
    )


def closed(plan: Plan, lessons: Lessons, said: Said, shared: list[Share] | None, model: Model) -> Lines:
    """Predictions joined with their labels, and the losses of those that were learned.

    Parameters
    ----------
    plan
        Its closings.
    lessons
        What these teach.
    said
        Of the plays.
    shared
        What was taken over right before the first closing.
    model
        Whose losses they are.
    """
    if not plan.closed:
        return NOTHING
    places: list[int] = lessons.places.tolist()
    scores = np.array(_chosen(said.scores, places))
    losses: list[float | None] = [*model.losses(scores, lessons.labels, lessons.ratios)]
    correct: list[bool | None] = ((scores > 0.0) == lessons.labels).tolist()
    for number in np.flatnonzero(~lessons.taught).tolist():
        losses[number] = correct[number] = None
    endings = encode_endings(
        map(
            Ending,
            plan.closed,
            plan.watch_ratios,
            plan.watched,
            plan.label_timestamps,
            correct,
            losses,
            ["expired" if moment is None else "labelled" for moment in plan.label_timestamps],
            count(plan.folded),
            chain([shared], repeat(None)),
        )
    )
    texts, ends = _chosen(said.texts, places), _chosen(said.ends, places)
    values = [text[:end] + ending for text, end, ending in zip(texts, ends, endings, strict=True)]
    if said.conclusions.count(PLAIN) < len(said.conclusions):
        values = [value[:-1] + said.conclusions[place] for value, place in zip(values, places, strict=True)]
    return Lines(
        plan.folded,
        values,
        _chosen(said.plays.users, places),
        _chosen(said.plays.timestamps, places),
    )


def _chosen(column: Sequence[Value], places: list[int]) -> list[Value]:
    return [column[place] for place in places]
