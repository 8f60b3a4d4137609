"""What the brokers are set to, and the newest times of records."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

from pipeline.kafka.access.authorization import is_denied
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import BROKER_TIMEOUT
from pipeline.kafka.topics import existing_topics


def broker_settings(client: Admin) -> dict[str, str] | None:
    """Return the settings of one broker; None if this client may not see them.

    Parameters
    ----------
    client
        Asks the brokers.

    Returns
    -------
    dict of str to str, or None
        By the names that brokers have for them.

    Raises
    ------
    KafkaException
        The broker does not answer in time.
    """
    number = min(client.list_topics(timeout=BROKER_TIMEOUT).brokers)
    resource = ConfigResource(ResourceType.BROKER, str(number))
    future = client.describe_configs([resource], request_timeout=BROKER_TIMEOUT)[resource]
    try:
        return {entry.name: entry.value or "" for entry in future.result().values()}
    except KafkaException as error:
        if is_denied(error):
            return None
        raise


def topic_settings(client: Admin, name: str) -> dict[str, str]:
    """Return the settings of a topic that exists.

    Raises
    ------
    KafkaException
        The brokers deny it, or do not answer in time.
    """
    resource = ConfigResource(ResourceType.TOPIC, name)
    future = client.describe_configs([resource], request_timeout=BROKER_TIMEOUT)[resource]
    return {entry.name: entry.value or "" for entry in future.result().values()}


def newest_timestamp(client: Admin, names: Iterable[str]) -> int | None:
    """Return the newest timestamp of the records in some topics; None if they have none.

    Parameters
    ----------
    client
        Asks the brokers.
    names
        Topics; those that do not exist have no records.

    Returns
    -------
    int or None
        In milliseconds.

    Raises
    ------
    KafkaException
        The brokers deny it, or do not answer in time.
    """
    wanted = {
        TopicPartition(name, number): OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]  # the client's stubs lack it
        for name, topic in existing_topics(client, names).items()
        for number in topic.partitions
    }
    if not wanted:
        return None
    futures = client.list_offsets(wanted, request_timeout=BROKER_TIMEOUT)
    times = [future.result().timestamp for future in futures.values()]
    return max((time for time in times if time >= 0), default=None)
