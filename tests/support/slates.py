"""Slates of KuaiRec's videos: messages, tasks, and random inputs with all that can go wrong in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.join.spill import SpilledPredictions
from pipeline.model.label_policy import LabelPolicy
from pipeline.records.fields import Id
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.records.output_types import OutputTypes
from pipeline.task.task import Task
from tests.support.builders import (
    ALL,
    CHALLENGERS,
    LATEST,
    Inputs,
    Written,
    feed_all,
    new_model,
    new_task,
)
from tests.support.entries import Entry, entries
from tests.support.streams import labels_of_an_event

SLATES = Stream.model_validate(
    KUAIREC.model_dump()
    | {
        "interactions": KUAIREC.interactions.model_dump()
        | {"items": "/items", "item_fields": ("video_id", "video_duration"), "max_items": 5}
    }
)
"""KuaiRec's stream, but for lists of videos that are shown together."""
TYPES = OutputTypes.of(SLATES)


def slate(event_id: Id, at: int, videos: Sequence[Id], user_id: Id = 1) -> bytes:
    """Return an interaction."""
    items = [{"video_id": video, "video_duration": 10_000.0} for video in videos]
    return _message(event_id=event_id, user_id=user_id, timestamp=at, items=items)


def label(event_id: Id, at: int, video_id: Id, ratio: float = 1.0, user_id: Id = 1) -> bytes:
    """Return the label of an item."""
    found = {"event_id": event_id, "user_id": user_id, "video_id": video_id, "timestamp": at}
    return _message(**found, play_duration=ratio * 10_000.0, watch_ratio=ratio)


def _message(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def inputs(interactions: Sequence[bytes], labels: Sequence[bytes]) -> Inputs:
    """Return messages with every second offset, decoded."""
    decoders = InputDecoders.of(SLATES)
    return Inputs(
        _entries("interactions", interactions, decoders.interactions),
        _entries("watch-labels", labels, decoders.labels),
    )


def _entries(topic: str, messages: Sequence[bytes], decoder: Any) -> list[Entry]:
    sources = [
        RawMessage(topic, 0, 2 * number, _key(value), value, []) for number, value in enumerate(messages)
    ]
    return entries(sources, decoder, LATEST)


def _key(value: bytes) -> bytes:
    try:
        return str(json.loads(value)["user_id"]).encode()
    except (ValueError, KeyError, TypeError):
        return b"1"


def slate_task(
    join: JoinSettings | None = None,
    *,
    challengers: bool = False,
    policy: LabelPolicy | None = None,
    spilled: SpilledPredictions | None = None,
) -> Task:
    """Return a new task."""
    model = new_model(features=FeatureSet.of(SLATES), challengers=CHALLENGERS if challengers else {})
    return new_task(join, model=model, policy=policy, spilled=spilled)


def run(
    given: Inputs,
    join: JoinSettings | None = None,
    *,
    challengers: bool = False,
    policy: LabelPolicy | None = None,
) -> tuple[Task, Written]:
    """Everything in one go."""
    task = slate_task(join, challengers=challengers, policy=policy)
    feed_all(task, given)
    return task, Written.of([task.advance(ALL)], SLATES)


@dataclass(frozen=True)
class ShownSlate:
    """A slate, and what comes of it. Times are in milliseconds, counted from the slate before."""

    event_id: int
    user_id: int
    videos: list[int]
    after: int
    disorder: int
    copies: int
    labels: list[list[tuple[int, float, int]]]
    """Of each item: delay, watch ratio and 1 for a label of another user."""


shown = st.builds(
    ShownSlate,
    event_id=st.integers(0, 20),
    user_id=st.integers(0, 2),
    videos=st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True)
    | st.lists(st.integers(0, 1), max_size=6),
    after=st.sampled_from([0, 1, 7, 30, 31, 90, 250]),
    disorder=st.just(0) | st.integers(-120, 40),
    copies=st.sampled_from([1, 1, 1, 2]),
    labels=st.lists(labels_of_an_event, min_size=4, max_size=6),
)


@st.composite
def slates(draw: st.DrawFn, size: int = 20) -> Inputs:
    """Two inputs with disorder, repeats, gaps, mismatches, labels of items not shown, and garbage."""
    drawn = draw(st.lists(shown, max_size=size))
    interactions: list[tuple[int, bytes]] = []
    labels: list[tuple[int, bytes]] = []
    for each, time in zip(drawn, accumulate((each.after for each in drawn), initial=1_000), strict=False):
        at = max(0, time + each.disorder)
        message = slate(each.event_id, at, each.videos, each.user_id)
        interactions += [(time, message)] * each.copies
        for video, of_item in zip([*each.videos, 77], each.labels, strict=False):
            for delay, ratio, other in of_item:
                known = max(0, at + delay)
                said = label(each.event_id, known, video, ratio, each.user_id + other)
                labels.append((time + delay, said))
    for time, value, first in draw(
        st.lists(st.tuples(st.integers(0, 3_000), st.sampled_from([b"{}", b"{"]), st.booleans()), max_size=3)
    ):
        (interactions if first else labels).append((time, value))
    return inputs(*([value for _, value in sorted(topic, key=_time)] for topic in (interactions, labels)))


def _time(timed: tuple[int, bytes]) -> int:
    return timed[0]
