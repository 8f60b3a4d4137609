"""Golden replays through the pure core and the writer of transactions, without a broker."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

from confluent_kafka import Producer

from pipeline.config.settings import Config
from pipeline.config.topics import Topics
from pipeline.features.feature_set import FeatureSet
from pipeline.model.factory import ModelFactory
from pipeline.model.label_policy import label_policy
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.records.output_types import OutputTypes
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.sharing import SharingSettings
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from pipeline.worker.transaction import InFlightCommit, PartitionCommit, TransactionWriter
from tests.golden.recorder import Recorder
from tests.golden.scenarios import Scenario
from tests.support.entries import entries, queued

LATEST: Final = 2**53
"""No timestamp is in the future."""
PATIENCE: Final = 60.0
"""Seconds that nothing here takes."""


def replay(scenario: Scenario, *, batch: int, snapshot_every: int) -> dict[str, str]:
    """Digests of all that a worker hands to its producer.

    Parameters
    ----------
    scenario
        What is replayed.
    batch
        Steps of each partition in a transaction.
    snapshot_every
        Transactions from one snapshot to the next.
    """
    config, recorder, topics = scenario.config, Recorder(), Topics()
    factory = ModelFactory(config)
    settings = factory.settings(scenario.partitions)
    tasks = [_task(config, factory, scenario, number) for number in range(scenario.partitions)]
    encoders = [RecordEncoder(OutputTypes.of(config.stream)) for _ in tasks]
    producer = cast(Producer, recorder)
    writer, commits = TransactionWriter(producer, topics, settings, PATIENCE), InFlightCommit(producer)
    number = 0
    while True:
        number += 1
        parts = [
            PartitionCommit(task, task.advance(batch), encoder, number % snapshot_every == 0)
            for task, encoder in zip(tasks, encoders, strict=True)
        ]
        if all(part.batch.empty for part in parts):
            parts = [part._replace(snapshot=True) for part in parts]
        commits.begin(partial(writer.commit, parts, None))
        commits.end()
        for part in parts:
            _share(tasks, part, recorder)
        if all(part.batch.empty for part in parts):
            return recorder.hexdigests() | {
                "counters": repr([sorted(task.counters.items()) for task in tasks])
            }


def _task(config: Config, factory: ModelFactory, scenario: Scenario, number: int) -> Task:
    """Return a partition's task with all of its messages."""
    topics, partitions = Topics(), scenario.partitions
    interval = config.sharing.interval_for(partitions)
    task = Task(
        number,
        factory.new_model(),
        config.join,
        Position(0),
        Position(0),
        policy=label_policy(config.labels),
        sharing=None
        if interval is None
        else SharingSettings(
            partitions,
            interval,
            FeatureSet.of(config.stream, config.features.kind),
            OutputTypes.of(config.stream),
        ),
    )
    decoders = InputDecoders.of(config.stream)
    _feed(task.interactions, scenario, topics.interactions, number, decoders.interactions)
    _feed(task.labels, scenario, topics.labels, number, decoders.labels)
    return task


def _feed(queue: RecordQueue, scenario: Scenario, topic: str, number: int, decoder: Any) -> None:
    given = scenario.of_partition(topic, number)
    sources = [RawMessage(topic, number, offset, each.key, each.value) for offset, each in enumerate(given)]
    queue.feed(queued(entries(sources, decoder, LATEST)))
    queue.at_end = True


def _share(tasks: list[Task], part: PartitionCommit, recorder: Recorder) -> None:
    """Offer what a partition has shared to the others, at the offsets at which it was written."""
    shares = part.batch.shares
    first = recorder.last.get((Topics().shared, part.task.partition), 0) - len(shares)
    for task in tasks:
        for row, share in enumerate(shares):
            task.inbox.offer(share, first + row, 1_000)
