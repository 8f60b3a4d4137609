"""Random inputs of a partition, with all that can go wrong in them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from hypothesis import strategies as st

from pipeline.config.settings import Labels
from pipeline.model.label_policy import LabelPolicy
from tests.support.builders import Inputs, Message, inputs, interaction, join_settings, label


@dataclass(frozen=True)
class Event:
    """An interaction, and what comes of it. Times are in milliseconds, counted from the event before."""

    event_id: int
    user_id: int
    video_id: int
    after: int
    disorder: int
    copies: int
    labels: list[tuple[int, float, int]]
    """Delay, watch ratio and user, who should be `user_id`."""


labels_of_an_event = st.lists(
    st.tuples(
        st.sampled_from([-40, -20, 0, 1, 5, 50, 99, 100, 101, 150, 400]),
        st.sampled_from([0.0, 0.75, 0.76, 3.5]),
        st.just(0) | st.integers(0, 1),
    ),
    max_size=3,
)
events = st.builds(
    Event,
    event_id=st.integers(0, 40),
    user_id=st.integers(0, 3),
    video_id=st.integers(0, 3),
    after=st.sampled_from([0, 1, 7, 30, 31, 90, 250]),
    disorder=st.just(0) | st.integers(-120, 40),
    copies=st.sampled_from([0, 1, 1, 1, 1, 1, 2]),
    labels=labels_of_an_event,
)
tight = st.builds(
    join_settings,
    max_pending=st.sampled_from([1, 3, 500_000]),
    max_closed=st.sampled_from([1, 3, 1_000_000]),
    corrections=st.sampled_from(["off", "off", "add", "replace"]),
)
"""Settings of which some leave little room."""


class Impatient(LabelPolicy):
    """Does not ask for all of a short stream."""

    warm_up_predictions = 2


policies: st.SearchStrategy[LabelPolicy | None] = st.none() | st.builds(
    Impatient,
    st.builds(
        Labels,
        policy=st.sampled_from(["random", "margin", "adaptive"]),
        rate=st.sampled_from([0.1, 0.5]),
        learn_unasked=st.booleans(),
        seed=st.integers(0, 3),
    ),
)
"""Which labels are asked for; all, mostly."""
garbage = st.sampled_from([None, b"", b"{}", b"{"])


@st.composite
def streams(draw: st.DrawFn, jumps: bool = True, size: int = 40) -> Inputs:
    """Two inputs with all that can go wrong: disorder, repeats, gaps, mismatches, garbage, wrong clocks."""
    drawn = draw(st.lists(events, max_size=size))
    interactions: list[tuple[int, Message]] = []
    labels: list[tuple[int, Message]] = []
    for event, time in zip(drawn, accumulate((event.after for event in drawn), initial=1_000), strict=False):
        at = max(0, time + event.disorder)
        record = interaction(event.event_id, at, event.user_id, event.video_id)
        interactions += [(time, record)] * event.copies
        for delay, ratio, other in event.labels:
            known = max(0, at + delay)
            about = label(event.event_id, known, ratio, event.user_id + other, event.video_id)
            labels.append((time + delay, about))
    wrong = draw(st.lists(st.tuples(st.integers(0, 5_000), garbage, st.booleans()), max_size=4))
    for time, value, first in wrong:
        (interactions if first else labels).append((time, value))
    if jumps:
        for time, ahead in draw(
            st.lists(st.tuples(st.integers(1_000, 4_000), st.integers(-4_000, 5_000)), max_size=3)
        ):
            at = max(0, time + ahead)
            interactions.append((time, interaction(9_000 + ahead, at)))
            labels.append((time, label(9_000 + ahead, at + 5)))
    return inputs(*([record for _, record in sorted(topic, key=_time)] for topic in (interactions, labels)))


def _time(timed: tuple[int, object]) -> int:
    return timed[0]
