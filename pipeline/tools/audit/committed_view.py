"""What is committed at one moment, though workers go on: how far an audit has to look, in every topic."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.group import CommittedOffsets, ConsumerGroup
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.topics import topics_of
from pipeline.kafka.watermarks import Watermarks

PAUSE: Final = 0.05
"""Seconds between two looks at open transactions."""
SLACK: Final = 20.0
"""Seconds beyond a transaction's timeout to wait for its end: brokers look for such every ten."""


class View(NamedTuple):
    """Offsets of one moment.

    Attributes
    ----------
    partitions
        Of each topic.
    records
        To look at, at most.
    ranges
        In each place, from the first record left to behind the last one to look at. All that was
        committed with the group's offsets lies in it.
    covered
        In each place, below which offset no record was written after the group's offsets were.
    committed
        By partition and input, what the group has committed.
    """

    partitions: int
    records: int
    ranges: dict[PartitionId, range]
    stable_offset: dict[PartitionId, int]
    committed: Mapping[int, CommittedOffsets]


def capture_view(config: Config) -> View:
    """Look, while workers may go on.

    The ends of what is committed are taken first, then the group's offsets, then the ends of all that
    was written, committed or not. So what lies before the first ends was in a transaction that the
    offsets cover, and all that the offsets cover lies before the last ends. Open transactions of workers
    are waited for; those of whoever writes the inputs hide nothing that a worker has read.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        Topics are missing or not as needed.
    StateError
        A transaction stays open.
    """
    topics = topics_of(config)
    timeout = config.worker.transaction_timeout / 1000 + SLACK
    with ConsumerGroup(config, topics) as group:
        watermarks = Watermarks(config.kafka, topics.all)
        first = watermarks.ranges()
        committed = group.committed_offsets(range(group.partitions), timeout)
    ends = watermarks.high_watermarks()
    outputs = {partition: end for partition, end in ends.items() if partition.topic not in topics.inputs}
    _wait_for_transactions(watermarks, outputs, timeout)
    ranges = {partition: range(found.start, ends[partition]) for partition, found in first.items()}
    return View(
        partitions=group.partitions,
        records=sum(
            len(offsets) for partition, offsets in ranges.items() if partition.topic != topics.checkpoints
        ),
        ranges=ranges,
        stable_offset={partition: offsets.stop for partition, offsets in first.items()},
        committed=committed,
    )


def _wait_for_transactions(watermarks: Watermarks, ends: dict[PartitionId, int], timeout: float) -> None:
    """Wait until all that was written before these ends is committed or taken back."""
    begin = time.monotonic()
    while hidden := [
        topic_partition
        for topic_partition, found in watermarks.ranges().items()
        if found.stop < ends.get(topic_partition, 0)
    ]:
        if time.monotonic() - begin > timeout:
            raise StateError(
                f"{hidden[0].topic}, partition {hidden[0].partition}: a transaction has been open for "
                f"{timeout:.0f} s, and hides what comes after it. Wait until the broker ends it, then "
                "audit again"
            )
        time.sleep(PAUSE)
