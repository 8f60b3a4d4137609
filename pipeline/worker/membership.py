"""A worker's place in the group: whether it is still its own."""

from __future__ import annotations

import time

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from pipeline.config.tree import Kafka
from pipeline.kafka.clients import client_settings
from pipeline.kafka.committed import TIMEOUT

JOIN_TIMEOUT = 5.0
"""Seconds within which a worker that has fenced an older one is in the group."""


class Membership:
    """What the group knows a worker by.

    Parameters
    ----------
    kafka
        Where the group is, its name, and the worker's if it has one.
    consumer
        The worker's.
    """

    def __init__(self, kafka: Kafka, consumer: Consumer) -> None:
        self._kafka = kafka
        self._consumer = consumer
        self._own_ids: set[str] = set()

    def note(self) -> None:
        """Remember the id that the group gives this worker now: it changes whenever it joins anew."""
        self._own_ids.add(self._consumer.memberid() or "")

    def replaced(self) -> bool:
        """Whether another worker is in the group by this one's name, or comes to be within a moment.

        A transaction that outlasts its time is fenced too, by nobody: a broker that was away does that. A
        worker of the same name fences first, and is in the group a moment later.

        Raises
        ------
        KafkaException
            If the group's coordinator does not tell.
        """
        name, group = self._kafka.instance, self._kafka.group
        if name is None:
            return False
        client = AdminClient(
            {"log_level": 0, **client_settings(self._kafka)}
        )  # answers come as long as it is there
        end, other_ids = time.monotonic() + JOIN_TIMEOUT, set[str]()
        while other_ids or time.monotonic() < end:  # who is there is looked at again, however late it is
            described = client.describe_consumer_groups([group], request_timeout=TIMEOUT)[group].result()
            holders = {member.member_id for member in described.members if member.group_instance_id == name}
            self.note()
            holders -= self._own_ids
            if other_ids & holders:
                return True
            other_ids = holders  # once may be this one, that has joined anew and does not know its id yet
            time.sleep(JOIN_TIMEOUT / 10)
        return False
