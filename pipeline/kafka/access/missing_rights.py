"""Find the rights that a client lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaException, TopicCollection

from pipeline.kafka.access.authorization import OPERATIONS, is_denied
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import BROKER_TIMEOUT
from pipeline.kafka.access.groups import describe_group
from pipeline.kafka.access.rights import Resource, Right


def missing_rights(client: Admin, wanted: Iterable[Right]) -> list[Right]:
    """Return those rights on topics and groups that the client lacks.

    Brokers tell which operations they allow on a topic or group, but not on a transactional id.

    Parameters
    ----------
    client
        Asks the brokers.
    wanted
        The rights that are needed.

    Returns
    -------
    list of Right
        Those that are denied; a resource that does not exist denies nothing.
    """
    by_resource: dict[tuple[Resource, str], list[Right]] = defaultdict(list)
    for right in wanted:
        if right.resource is not Resource.TRANSACTIONAL_ID and not right.prefixed:
            by_resource[right.resource, right.name].append(right)
    missing = []
    for (resource, name), needed in by_resource.items():
        allowed = _allowed_operations(client, resource, name)
        missing += [right for right in needed if allowed is not None and right.operation not in allowed]
    return missing


def _allowed_operations(client: Admin, resource: Resource, name: str) -> set[str] | None:
    """Return the operations that the brokers allow; None if they do not tell."""
    try:
        if resource is Resource.TOPIC:
            topics = TopicCollection([name])
            options: dict[str, Any] = {"request_timeout": BROKER_TIMEOUT}
            future = client.describe_topics(topics, include_authorized_operations=True, **options)[name]
            operations = future.result().authorized_operations
        else:
            group = describe_group(client.kafka, name, BROKER_TIMEOUT, authorized_operations=True)
            operations = group.authorized_operations
    except KafkaException as error:
        # Nothing is allowed that implies Describe; of the rest nothing is known.
        return set(OPERATIONS) - {"Read", "Write", "Describe"} if is_denied(error) else None
    if not operations:
        return None
    return {name for name, operation in OPERATIONS.items() if operation in operations}
