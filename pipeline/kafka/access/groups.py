"""Ask the coordinator of a consumer group about it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from pipeline.config.settings import Kafka
from pipeline.kafka.access.errors import timed_out
from pipeline.kafka.access.new_client import client_settings, new_client

MARGIN: Final = 60.0
"""Seconds by which the client would wait longer than this module does."""


def describe_group(
    kafka: Kafka, group: str, timeout: float, *, authorized_operations: bool = False
) -> ConsumerGroupDescription:
    """Return what the coordinator knows about a group.

    After a request to a coordinator that ran out of time in the client, librdkafka 2.16 ends the process (an
    assertion in ``rd_kafka_enq_once_del_source_return``) as soon as the connection changes. So a client is
    made for each request, its own timeout never comes, and it is thrown away before anything else happens.

    Parameters
    ----------
    kafka
        Where the brokers are, and how to speak to them.
    group
        Name of the group.
    timeout
        Seconds to wait for the answer.
    authorized_operations
        Whether to ask which operations the brokers allow on the group.

    Returns
    -------
    ConsumerGroupDescription
        The group.

    Raises
    ------
    KafkaException
        The coordinator refuses to answer, or does not answer in time.
    """
    client = new_client(AdminClient, client_settings(kafka) | {"log_level": 0})
    options: dict[str, Any] = {
        "include_authorized_operations": authorized_operations,
        "request_timeout": timeout + MARGIN,
    }
    future: Future[ConsumerGroupDescription] = client.describe_consumer_groups([group], **options)[group]
    try:
        return future.result(timeout)
    except TimeoutError:
        pass
    finally:
        del client  # also where an error keeps this function's variables
    raise timed_out(f"the coordinator of group {group} does not answer")
