"""What other partitions may tell one, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from pipeline.records.fields import FEATURES_LENGTH
from pipeline.records.largest import MAX_SHARES_BYTES
from pipeline.records.outputs import EffectSums, EntityCounts, Example, Share
from pipeline.task.inbox import Inbox


class ReceivedShare(NamedTuple):
    """A share, after how many batches it is there, and how much room it is said to take."""

    share: Share
    batch: int
    size: int = 100


videos = st.integers(0, 4)
video_counts = st.builds(
    lambda video, labels, more, ratios: EntityCounts(video, labels + more, labels, ratios / 3),
    videos,
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
)
numbers = st.integers(-9, 9).map(lambda n: n / 7)
effect_sums = st.builds(EffectSums, numbers, numbers.map(abs), numbers, numbers.map(abs))
features = st.lists(
    st.integers(-20, 20).map(lambda n: n / 7), min_size=FEATURES_LENGTH, max_size=FEATURES_LENGTH
)
examples = st.builds(
    Example, st.integers(9, 12), videos, st.integers(0, 9), features, st.booleans(), st.just(0.3)
)


@st.composite
def received_shares(draw: st.DrawFn) -> list[ReceivedShare]:
    """Shares of partitions 1 and 2, each one's in their order, in that in which they come."""
    lengths = draw(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(0, 3)), max_size=8))
    ends, batch, received = {1: 0, 2: 0}, 0, []
    for partition, length, later in lengths:
        since, batch = ends[partition], batch + later
        ends[partition] = since + length
        counts = draw(st.lists(video_counts, max_size=4))
        taught = draw(st.lists(examples, max_size=3))
        sums = draw(st.none() | st.lists(effect_sums, min_size=len(counts), max_size=len(counts)))
        size = draw(st.sampled_from([100, MAX_SHARES_BYTES]))  # the latter fills an outcome
        received.append(
            ReceivedShare(Share(partition, since, ends[partition], counts, taught, sums), batch, size)
        )
    return received


def offer(inbox: Inbox, received: Sequence[ReceivedShare], batch: int) -> None:
    """Let a partition read what is there after so many batches, from the beginning."""
    for offset, each in enumerate(received):
        if each.batch <= batch:
            inbox.offer(each.share, offset, each.size)
