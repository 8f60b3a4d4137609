"""The rights that each role needs on a cluster with access control."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pipeline.config.settings import Config, Kafka
    from pipeline.config.topics import Topics


class Role(StrEnum):
    """What a principal is for."""

    WORKER = "worker"
    """`forks run`."""
    PRODUCER = "producer"
    """`forks replay`, or your own producer of the inputs."""
    READER = "reader"
    """`forks inspect` and `forks report`."""
    AUDITOR = "auditor"
    """`forks audit`, and all that a reader may."""
    FOLLOWER = "follower"
    """`forks serve`."""
    REDRIVER = "redriver"
    """`forks redrive`."""
    OPERATOR = "operator"
    """`forks topics`, `checkpoint`, `rebuild` and `promote`, and all that an auditor may."""


class Resource(StrEnum):
    """What a right is about, as ``kafka-acls.sh`` names it."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"


class Right(NamedTuple):
    """A right to do something with a resource.

    Examples
    --------
    >>> str(Right("Write", Resource.TRANSACTIONAL_ID, "forks-", prefixed=True))
    'Write on every transactional-id that begins with forks-'
    """

    operation: str
    """As ``kafka-acls.sh`` names it. `Read` and `Write` imply `Describe`."""
    resource: Resource
    name: str
    prefixed: bool = False
    """Whether the right is about all resources whose names begin with `name`."""

    def __str__(self) -> str:
        if self.prefixed:
            return f"{self.operation} on every {self.resource} that begins with {self.name}"
        return f"{self.operation} on {self.resource} {self.name}"


def acl_options(wanted: Iterable[Right]) -> list[list[str]]:
    """Return the options of ``kafka-acls.sh`` that name these rights, a list for each resource.

    Examples
    --------
    >>> acl_options([Right("Read", Resource.GROUP, "forks"), Right("Write", Resource.TOPIC, "outcomes")])
    [['--operation', 'Read', '--group', 'forks'], ['--operation', 'Write', '--topic', 'outcomes']]
    """
    by_resource: dict[tuple[Resource, str, bool], list[str]] = {}
    for operation, resource, name, prefixed in wanted:
        by_resource.setdefault((resource, name, prefixed), []).extend(["--operation", operation])
    return [
        [*operations, f"--{resource}", name, *(["--resource-pattern-type", "prefixed"] if prefixed else [])]
        for (resource, name, prefixed), operations in by_resource.items()
    ]


def rights(role: Role, config: Config, topics: Topics, partitions: int | None = None) -> list[Right]:
    """Return the rights that a role needs.

    Parameters
    ----------
    role
        What the principal is for.
    config
        The whole configuration: the names of group and topics, and what the pipeline does.
    topics
        The topics of this configuration.
    partitions
        How many partitions there are; None for the rights that any number needs.

    Returns
    -------
    list of Right
        Without duplicates, topics first.
    """
    group = config.kafka.group
    inputs, outputs, every = topics.inputs, topics.outputs, topics.all
    read_back = [topics.predictions, topics.outcomes, topics.checkpoints]
    shares = config.sharing.interval != "off"
    if shares if partitions is None else config.sharing.interval_for(partitions) is not None:
        read_back.append(topics.shared)
    transactions = Right(
        "Write", Resource.TRANSACTIONAL_ID, transactional_id(config.kafka, ""), prefixed=True
    )
    if role is Role.WORKER:
        return [
            *_on_topics("Read", [*inputs, *topics.tables, *read_back]),
            *_on_topics("Write", outputs),
            *_on_topics("DescribeConfigs", every),
            Right("Read", Resource.GROUP, group),
            transactions,
        ]
    if role is Role.PRODUCER:
        written = (*inputs, *topics.tables)
        return _on_topics("Read", written) + _on_topics("Write", written)
    if role is Role.READER:
        return _on_topics("Read", outputs)
    if role is Role.REDRIVER:
        return [
            *_on_topics("Read", [*inputs, topics.dead_letters]),
            *_on_topics("Write", inputs),
            Right("Read", Resource.GROUP, redrive_group(group)),
            Right("Write", Resource.TRANSACTIONAL_ID, transactional_id(config.kafka, REDRIVE)),
        ]
    if role is Role.FOLLOWER:
        read = [*topics.tables, topics.outcomes, topics.checkpoints]
        return [
            *_on_topics("Read", read),
            *_on_topics("Describe", [name for name in every if name not in read]),
            *_on_topics("DescribeConfigs", every),
            Right("Describe", Resource.GROUP, group),
        ]
    audited = [*_on_topics("Read", every), *_on_topics("DescribeConfigs", every)]
    if role is Role.AUDITOR:
        more = [Right("Describe", Resource.GROUP, group)]
    else:
        more = [
            *_on_topics("Write", outputs),
            *_on_topics("Create", every),
            Right("Read", Resource.GROUP, group),
            transactions,
        ]
    return audited + more


REDRIVE: Final = "redrive"
"""Ends the names of the group and of the transactional id of `forks redrive`."""


def redrive_group(group: str) -> str:
    """Return the group whose offsets say which dead letters of another group were redriven.

    Examples
    --------
    >>> redrive_group("forks")
    'forks-redrive'
    """
    return f"{group}-{REDRIVE}"


def transactional_id(kafka: Kafka, instance: str) -> str:
    """Return the transactional id of a worker with this name.

    Examples
    --------
    >>> from pipeline.config.settings import Kafka
    >>> transactional_id(Kafka(prefix="prod.", group="learners"), "worker-0")
    'prod.learners-worker-0'
    """
    return f"{kafka.prefix}{kafka.group}-{instance}"


def _on_topics(operation: str, names: Iterable[str]) -> list[Right]:
    return [Right(operation, Resource.TOPIC, name) for name in names]
