"""A worker's membership in the group, and how it is lost."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException

from pipeline.config.settings import Kafka, Worker
from pipeline.kafka.access.errors import COORDINATOR_TIMEOUT
from pipeline.kafka.access.groups import describe_group
from pipeline.kafka.clients import heartbeat_interval
from pipeline.worker.partition import Partition

JOIN_TIMEOUT = 5.0
"""Seconds within which a worker that has fenced an older one is in the group."""
HEARTBEAT_GRACE = 5.0
"""Seconds within which the group answers a heartbeat, which tells a worker of a rebalance that it missed."""


class Membership:
    """What the group knows a worker by.

    Parameters
    ----------
    kafka
        Where the group is, its name, and the worker's if it has one.
    worker
        Its heartbeats.
    consumer
        The worker's consumer.
    """

    def __init__(self, kafka: Kafka, worker: Worker, consumer: Consumer) -> None:
        self._kafka = kafka
        self._heartbeat = heartbeat_interval(worker) / 1000
        self._consumer = consumer
        self._own_ids: set[str] = set()
        self.metadata: object = None
        """The membership at the last assignment, which brokers check when offsets are committed."""

    def note_assignment(self) -> None:
        """Remember the membership under which partitions were assigned."""
        self._note_id()
        self.metadata = self._consumer.consumer_group_metadata()

    def await_revocation(self, partition: Partition, poll: Callable[[], None]) -> None:
        """Poll until the group has taken away a partition that another worker has advanced.

        Parameters
        ----------
        partition
            The partition, which is being restored.
        poll
            Polls the consumer.

        Raises
        ------
        KafkaException
            The group does not take it away within a heartbeat.
        """
        end = time.monotonic() + self._heartbeat + HEARTBEAT_GRACE
        while partition.restoring:
            if time.monotonic() > end:
                raise KafkaException(
                    KafkaError(
                        KafkaError.ILLEGAL_GENERATION,
                        f"another worker advanced partition {partition.number} while it was restored here",
                    )
                )
            poll()

    def replaced(self) -> bool:
        """Return whether another worker is in the group under this one's name, or joins it within seconds.

        A broker also fences a transaction that outlasts its timeout; then there is no other worker. A worker
        of the same name fences first, and is in the group a moment later.

        Returns
        -------
        bool
            False too if the worker has no name.

        Raises
        ------
        KafkaException
            The group's coordinator does not answer.
        """
        name, group = self._kafka.instance, self._kafka.group
        if name is None:
            return False
        end, other_ids = time.monotonic() + JOIN_TIMEOUT, set[str]()
        while other_ids or time.monotonic() < end:  # an id that was seen late is looked for once more
            described = describe_group(self._kafka, group, COORDINATOR_TIMEOUT)
            holders = {member.member_id for member in described.members if member.group_instance_id == name}
            self._note_id()
            holders -= self._own_ids
            if other_ids & holders:
                return True
            other_ids = holders  # once may be this one, that has joined anew and does not know its id yet
            time.sleep(JOIN_TIMEOUT / 10)
        return False

    def _note_id(self) -> None:
        """Remember the id that the group gives this worker now: it changes whenever the worker joins."""
        self._own_ids.add(self._consumer.memberid() or "")
