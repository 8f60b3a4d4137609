"""Capture which offsets an audit reads in every topic, while workers go on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import StateError
from pipeline.kafka.group import CommittedOffsets, ConsumerGroup
from pipeline.kafka.offsets import PartitionId
from pipeline.log.ranges import Watermarks

PAUSE: Final = 0.05
"""Seconds between two checks for open transactions."""
SLACK: Final = 20.0
"""Seconds to wait for the end of a transaction beyond its timeout: brokers look every 10 s."""


class View(NamedTuple):
    """The committed offsets of one moment.

    Attributes
    ----------
    partitions
        Number of partitions of each topic.
    records
        Number of records to read, at most.
    ranges
        Offsets to read, by partition of a topic. Everything that was committed with the group's offsets
        lies within.
    stable_offsets
        Offsets below which no record was written after the group's offsets, by partition of a topic.
    committed
        Committed offsets of the group, by number of the partition.
    """

    partitions: int
    records: int
    ranges: dict[PartitionId, range]
    stable_offsets: dict[PartitionId, int]
    committed: Mapping[int, CommittedOffsets]


def capture_view(config: Config) -> View:
    """Capture the committed offsets of all topics, while workers may go on.

    The last stable offsets are read first, then the group's offsets, then the high watermarks. So all
    records below the first belong to transactions that the group's offsets include, and all records that
    the group's offsets include lie below the high watermarks. Open transactions of workers are waited for;
    transactions of the producers of the inputs hide nothing that a worker has read.

    Parameters
    ----------
    config
        Whole configuration.

    Returns
    -------
    View
        Offsets to audit.

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
    outputs = {partition: end for partition, end in ends.items() if partition.topic in topics.outputs}
    _wait_for_transactions(watermarks, outputs, timeout)
    ranges = {partition: range(offsets.start, ends[partition]) for partition, offsets in first.items()}
    return View(
        partitions=group.partitions,
        records=sum(
            len(offsets) for partition, offsets in ranges.items() if partition.topic != topics.checkpoints
        ),
        ranges=ranges,
        stable_offsets={partition: offsets.stop for partition, offsets in first.items()},
        committed=committed,
    )


def _wait_for_transactions(watermarks: Watermarks, ends: dict[PartitionId, int], timeout: float) -> None:
    """Wait until every transaction with records below these offsets is committed or aborted."""
    begin = time.monotonic()
    while hidden := [
        partition
        for partition, offsets in watermarks.ranges().items()
        if offsets.stop < ends.get(partition, 0)
    ]:
        if time.monotonic() - begin > timeout:
            raise StateError(
                f"{hidden[0].topic}, partition {hidden[0].partition}: a transaction has been open for "
                f"{timeout:.0f} s, and hides the records after it. Wait until the broker has ended it, then "
                "run the audit again"
            )
        time.sleep(PAUSE)
