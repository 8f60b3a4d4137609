"""What is committed at one moment, though workers go on: how far an audit has to look, in every topic."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pipeline.config.tree import Config
from pipeline.errors import StateError
from pipeline.kafka.clients import common, group_consumer
from pipeline.kafka.offsets import TIMEOUT, Place
from pipeline.kafka.topics import admin, partition_count, topics_of
from pipeline.kafka.watermarks import Extents

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
    ranges: dict[Place, range]
    covered: dict[Place, int]
    committed: dict[int, dict[str, TopicPartition]]


def take_view(config: Config) -> View:
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
    client = admin(common(config.kafka))
    partitions = partition_count(client, topics)
    extents = Extents(config.kafka, topics.all)
    first = extents.ranges()
    patience = config.worker.transaction_timeout / 1000 + SLACK
    inputs = [place for place in extents.places if place.topic in topics.inputs]
    committed = _committed(config, inputs, patience)
    ends = _written(client, extents.places)
    outputs = {place: end for place, end in ends.items() if place.topic not in topics.inputs}
    _wait_for_transactions(extents, outputs, patience)
    ranges = {place: range(found.start, ends[place]) for place, found in first.items()}
    records = sum(len(found) for place, found in ranges.items() if place.topic != topics.checkpoints)
    return View(partitions, records, ranges, {place: at.stop for place, at in first.items()}, committed)


def _committed(config: Config, places: list[Place], patience: float) -> dict[int, dict[str, TopicPartition]]:
    """What the group has committed, once no transaction is about to change it."""
    found: dict[int, dict[str, TopicPartition]] = defaultdict(dict)
    consumer = group_consumer(config)
    try:
        for place in consumer.committed([TopicPartition(*place) for place in places], patience):
            if place.error is not None:
                raise KafkaException(place.error)
            found[place.partition][place.topic] = place
    finally:
        consumer.close()
    return found


def _wait_for_transactions(extents: Extents, ends: dict[Place, int], patience: float) -> None:
    """Wait until all that was written before these ends is committed or taken back."""
    begin = time.monotonic()
    while hidden := [place for place, found in extents.ranges().items() if found.stop < ends.get(place, 0)]:
        if time.monotonic() - begin > patience:
            raise StateError(
                f"{hidden[0].topic}, partition {hidden[0].partition}: a transaction has been open for "
                f"{patience:.0f} s, and hides what comes after it. Wait until the broker ends it, then "
                "audit again"
            )
        time.sleep(PAUSE)


def _written(client: AdminClient, places: list[Place]) -> dict[Place, int]:
    """Where the records of each place end, those of open transactions included."""
    spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # lacks its types
    futures = client.list_offsets(
        {TopicPartition(*place): spec for place in places},
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        request_timeout=TIMEOUT,
    )
    return {Place(at.topic, at.partition): found.result().offset for at, found in futures.items()}
