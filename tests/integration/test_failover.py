"""Another broker takes over what a dead one coordinated."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from pipeline.config.settings import Config
from pipeline.kafka.access.errors import COORDINATOR_ERRORS, retry
from pipeline.kafka.clients import transactional_producer
from pipeline.kafka.deadline import BackgroundCall
from pipeline.kafka.producer import flush
from tests.integration.harness import TIMEOUT, Feed, Pipeline, assert_as_in_one_go, invented_events, until
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.slow]
PATIENCE = 120.0
"""Seconds for a transaction to go on. It takes about eleven, or for ever."""


def coordinated_by(cluster: Cluster, broker: int) -> str:
    """The name of a group that a broker coordinates."""
    names = (f"group-{number}" for number in range(100))
    return next(name for name in names if cluster.coordinator(name) == broker)


def committed_offset(cluster: Cluster, group: str) -> int:
    """What a group has committed; its coordinator may just have changed."""
    consumer = Consumer(cluster.client_settings() | {"group.id": group})
    wanted = [TopicPartition("coordinated", 0)]
    try:
        [found] = retry(lambda: consumer.committed(wanted, TIMEOUT), COORDINATOR_ERRORS, TIMEOUT)
    finally:
        consumer.close()
    return found.offset


def test_a_transaction_outlasts_the_broker_that_coordinates_it_and_its_group(cluster: Cluster) -> None:
    """librdkafka alone would wait for the dead broker for ever."""
    cluster.admin.create_topics([NewTopic("coordinated", 3)])["coordinated"].result(TIMEOUT)
    settings = {"bootstrap": cluster.bootstrap, "prefix": "failover-", "group": "group"}
    config = Config.model_validate({"kafka": settings, "worker": {"transaction_timeout": "120s"}})
    producer = transactional_producer(config.kafka, config.worker, "worker", 1_000_000)
    producer.init_transactions(TIMEOUT)
    assert committed_offset(cluster, "group") < 0  # nothing; but now groups have coordinators
    victim = cluster.transaction_coordinator("failover-group-worker")
    group = coordinated_by(cluster, victim)
    member = Consumer(cluster.client_settings() | {"group.id": group})

    def begin() -> None:
        producer.begin_transaction()
        for partition in range(3):
            producer.produce("coordinated", b"x", partition=partition)

    def commit(offset: int) -> None:
        flush(producer, PATIENCE)
        offsets = [TopicPartition("coordinated", 0, offset)]
        producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), PATIENCE)
        producer.commit_transaction(PATIENCE)

    begin()
    commit(1)
    begin()
    cluster.kill(victim)
    BackgroundCall(lambda: commit(2)).result(2 * PATIENCE)
    assert committed_offset(cluster, group) == 2
    member.close()
    cluster.start(victim)
    cluster.wait_until(cluster.in_sync, "all replicas to be in sync")


def test_a_worker_goes_on_after_the_deaths_of_those_who_coordinate_it(
    cluster: Cluster, topic_prefix: str, tmp_path: Path
) -> None:
    pipeline = Pipeline(cluster.bootstrap, topic_prefix, tmp_path, replication=3)
    pipeline.environment = {"FORKS_WORKER__BATCH": "50"}
    feed = Feed(pipeline, invented_events(tmp_path, 40_000))
    transactional_id = f"{topic_prefix}{pipeline.kafka.group}-worker"
    with pipeline.worker() as worker, pipeline.follow(pipeline.topics.outcomes) as follower:

        def outcomes(wanted: int) -> bool:
            feed.keep_ahead(follower)
            return follower.count >= wanted

        for find, name in (
            (cluster.transaction_coordinator, transactional_id),
            (cluster.coordinator, pipeline.kafka.group),
        ):
            wanted = follower.count + 500
            until(lambda: outcomes(wanted), "outcomes before a death", worker)  # noqa: B023 - at once
            victim = find(name)
            cluster.kill(victim)
            wanted = follower.count + 2_000  # more than there may be in transactions of 50 that are under way
            until(lambda: outcomes(wanted), "outcomes after a death", worker)  # noqa: B023 - at once
            cluster.start(victim)
            cluster.wait_until(cluster.in_sync, "all replicas to be in sync")
    feed.finish()
    assert_as_in_one_go(pipeline, feed.events)
