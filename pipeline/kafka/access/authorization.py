"""What the brokers allow: name a right that was denied, and grant rights."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from pipeline.config.settings import Kafka
from pipeline.errors import AuthorizationError
from pipeline.kafka.access.errors import BROKER_TIMEOUT
from pipeline.kafka.access.rights import Resource, Right, Role, acl_options

RESOURCES: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Resource.TOPIC,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Resource.GROUP,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Resource.TRANSACTIONAL_ID,
}
"""The kinds of resources that brokers' denials are about, by their codes."""
AUTHORIZATION_ERRORS: Final = frozenset({*RESOURCES, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
"""Codes with which brokers deny a right."""

OPERATIONS: Final = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}
"""The client's operations, by the names of ``kafka-acls.sh``."""

RESOURCE_TYPES: Final = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}
"""The client's types of resources."""


def is_denied(error: KafkaException) -> bool:
    """Return whether the brokers have denied a right."""
    return error.args[0].code() in AUTHORIZATION_ERRORS


def may_be_denied(error: KafkaException) -> bool:
    """Return whether a transaction failed because a record was refused, perhaps for a right that is missing.

    For the records behind the refused one, the client says only that it has given them up.
    """
    return is_denied(error) or error.args[0].code() in (KafkaError._PURGE_QUEUE, KafkaError._STATE)


def rights_of_code(error: KafkaException, wanted: Iterable[Right]) -> list[Right]:
    """Return those rights that an error may be about.

    Parameters
    ----------
    error
        The brokers' denial, which does not name a resource.
    wanted
        The rights that are needed.

    Returns
    -------
    list of Right
        Those on the kind of resource that the error's code is about; all if it is about the cluster.
    """
    kind = RESOURCES.get(error.args[0].code())
    return [right for right in wanted if kind in (None, right.resource)]


def principal(kafka: Kafka) -> str | None:
    """Return the principal that brokers know this client by; None if only they know it.

    Examples
    --------
    >>> principal(Kafka(client={"sasl.username": "forks"}))
    'User:forks'
    >>> principal(Kafka()) is None
    True
    """
    user = kafka.client.get("sasl.username")
    return None if user is None else f"User:{user.get_secret_value()}"


def denied(kafka: Kafka, missing: Sequence[Right], role: Role | None = None) -> AuthorizationError:
    """Make the error that names the rights that are missing, and how they are granted.

    Parameters
    ----------
    kafka
        The connection that lacks them.
    missing
        The rights, at least one.
    role
        The role that needs them, if it is known.
    """
    who, denials = principal(kafka), defaultdict[tuple[str, Resource, bool], list[str]](list)
    for operation, resource, name, prefixed in missing:
        denials[operation, resource, prefixed].append(f"{name}*" if prefixed else name)
    listed = "; ".join(
        f"{operation} on {resource} {', '.join(names)}" for (operation, resource, _), names in denials.items()
    )
    grant = shlex.join(acl_options(missing[:1])[0])
    return AuthorizationError(
        f"{kafka.bootstrap} denies {who or 'this client'}: {listed}. Grant it with "
        f"`kafka-acls.sh --add --allow-principal {who or 'User:NAME'} {grant}`"
        f"{' and so on' if len(missing) > 1 else ''}, or grant all that a role needs with `forks topics acls "
        f"--principal {who or 'User:NAME'} --role {role or 'ROLE'} --create`"
    )


@contextmanager
def needing(kafka: Kafka, operation: str, resource: Resource, name: str) -> Iterator[None]:
    """Name the right that a block needs, if the brokers deny it.

    Parameters
    ----------
    kafka
        The connection.
    operation
        The operation, such as ``Read``.
    resource
        The kind of resource.
    name
        The resource's name.

    Raises
    ------
    AuthorizationError
        The brokers deny the right.
    """
    try:
        yield
    except KafkaException as error:
        if not is_denied(error):
            raise
        raise denied(kafka, [Right(operation, resource, name)]) from error


def grant(client: AdminClient, who: str, wanted: Iterable[Right]) -> None:
    """Allow a principal some rights, from any host.

    Parameters
    ----------
    client
        An administrator's client.
    who
        The principal, such as ``User:forks``.
    wanted
        The rights.

    Raises
    ------
    KafkaException
        The brokers refuse to create an ACL.
    """
    bindings = [
        AclBinding(
            RESOURCE_TYPES[right.resource],
            right.name,
            ResourcePatternType.PREFIXED if right.prefixed else ResourcePatternType.LITERAL,
            who,
            "*",
            OPERATIONS[right.operation],
            AclPermissionType.ALLOW,
        )
        for right in wanted
    ]
    for created in client.create_acls(bindings, request_timeout=BROKER_TIMEOUT).values():
        created.result()
