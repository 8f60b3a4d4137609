"""The topics: their names, the settings that they need, and a check of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicMetadata,
)

from pipeline.config.tree import Config
from pipeline.errors import BrokerError, TopicError
from pipeline.kafka.new_client import new_client
from pipeline.kafka.offsets import PartitionId, low_watermarks

LARGEST_DEAD_LETTER = 32 * 1024 * 1024
"""Bytes of a message that is written as a dead letter, at most."""
KEEP_FOREVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of a topic that is the log from which everything is derived again."""

SHARED_RETENTION_MS = 30 * 86_400_000
"""Milliseconds for which shared outcomes are kept: partitions write those that they learn as their own."""


@dataclass(frozen=True)
class Topics:
    """The topics of one pipeline.

    Examples
    --------
    >>> Topics("test-").labels
    'test-watch-labels'
    """

    prefix: str = ""
    requests_labels: bool = False
    """Whether labels are requested, which needs one more topic."""

    @property
    def interactions(self) -> str:
        return f"{self.prefix}interactions"

    @property
    def labels(self) -> str:
        return f"{self.prefix}watch-labels"

    @property
    def predictions(self) -> str:
        return f"{self.prefix}predictions"

    @property
    def outcomes(self) -> str:
        return f"{self.prefix}outcomes"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}dead-letters"

    @property
    def checkpoints(self) -> str:
        return f"{self.prefix}checkpoints"

    @property
    def shared(self) -> str:
        return f"{self.prefix}shared"

    @property
    def label_requests(self) -> str:
        return f"{self.prefix}label-requests"

    @property
    def inputs(self) -> tuple[str, str]:
        """The topics that workers read."""
        return self.interactions, self.labels

    @property
    def outputs(self) -> tuple[str, ...]:
        """The topics that workers write."""
        always = (self.predictions, self.outcomes, self.dead_letters, self.checkpoints, self.shared)
        return (*always, self.label_requests) if self.requests_labels else always

    @property
    def all(self) -> tuple[str, ...]:
        """All topics of the pipeline."""
        return (*self.inputs, *self.outputs)

    def settings(self, name: str) -> dict[str, str]:
        """Return the settings with which a topic is created."""
        if name == self.checkpoints:
            return {"cleanup.policy": "compact"}
        if name == self.shared:
            return {"cleanup.policy": "delete", "retention.ms": str(SHARED_RETENTION_MS)}
        if name == self.dead_letters:
            return KEEP_FOREVER | {"max.message.bytes": str(LARGEST_DEAD_LETTER)}
        return KEEP_FOREVER


def topics_of(config: Config) -> Topics:
    """Return the topics of a pipeline with this configuration."""
    return Topics(config.kafka.prefix, requests_labels=config.labels.policy != "all")


class TopicDifference(NamedTuple):
    """A property of a topic that is not as the pipeline needs it."""

    topic: str
    what: str
    remedy: str
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.topic}: {self.what}; {self.remedy}"


def admin(settings: dict[str, str | int | float | bool]) -> AdminClient:
    """Make an administrative client, and check that it reaches a broker.

    Parameters
    ----------
    settings
        The settings of every client: see `pipeline.kafka.clients.client_settings`.

    Returns
    -------
    AdminClient
        The client.

    Raises
    ------
    BrokerError
        No broker answers within five seconds.
    """
    client = new_client(AdminClient, {"log_level": 0, **settings})
    try:
        client.list_topics(timeout=5.0)
    except KafkaException as error:
        raise BrokerError(
            f"no Kafka answers at {settings['bootstrap.servers']}: {error.args[0].str()}. Start one with "
            "`forks broker start`, or name yours with --bootstrap or FORKS_KAFKA__BOOTSTRAP"
        ) from error
    return client


def create(client: AdminClient, topics: Topics, partitions: int, replication: int) -> list[str]:
    """Create the topics that are missing, and return their names once every partition answers.

    Parameters
    ----------
    client
        Creates them.
    topics
        The topics that are needed.
    partitions
        Partitions of each.
    replication
        Replicas of each partition.

    Returns
    -------
    list of str
        The names of the topics that were created.

    Raises
    ------
    TopicError
        The broker refuses to create one.
    """
    existing = client.list_topics(timeout=10.0).topics
    missing = [name for name in topics.all if name not in existing]
    futures = (
        client.create_topics(
            [NewTopic(name, partitions, replication, config=topics.settings(name)) for name in missing]
        )
        if missing
        else {}
    )
    created = []
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:  # somebody else was quicker
                continue
            raise TopicError(f"{name} cannot be created: {error.args[0].str()}") from error
        created.append(name)
    new = [PartitionId(name, number) for name in created for number in range(partitions)]
    low_watermarks(client, new)
    return created


def partition_count(client: AdminClient, topics: Topics) -> int:
    """Check all topics, and return how many partitions each of them has.

    Raises
    ------
    TopicError
        A topic is not as needed; the text names all differences.
    """
    fatal = [difference for difference in check(client, topics) if difference.fatal]
    if fatal:
        raise TopicError("\n       ".join(str(difference) for difference in fatal))
    return len(client.list_topics(timeout=10.0).topics[topics.interactions].partitions)


def check(client: AdminClient, topics: Topics) -> list[TopicDifference]:
    """Return all differences between the topics and what the pipeline needs."""
    existing = client.list_topics(timeout=10.0).topics
    differences = [
        TopicDifference(name, "the topic does not exist", _creation(topics, name))
        for name in topics.all
        if name not in existing
    ]
    present = [name for name in topics.all if name in existing]
    differences += _partitions(topics, existing)
    if present:
        settings = _settings(client, present)
        differences += [found for name in present for found in _policy(topics, name, settings[name])]
        differences += _sizes(topics, settings)
    return differences


def _creation(topics: Topics, name: str) -> str:
    command = "create it with `forks topics create`"
    return f"labels.policy needs it: {command}" if name == topics.label_requests else command


def _partitions(topics: Topics, existing: dict[str, TopicMetadata]) -> list[TopicDifference]:
    if topics.interactions not in existing:
        return []
    wanted = len(existing[topics.interactions].partitions)
    return [
        TopicDifference(
            name,
            f"it has {count} partitions where {topics.interactions} has {wanted}",
            "all topics of a pipeline need the same number: create it anew with that many",
        )
        for name in topics.all
        if name in existing and (count := len(existing[name].partitions)) != wanted
    ]


def _settings(client: AdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    futures = client.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
    return {
        resource.name: {entry.name: entry.value for entry in future.result().values()}
        for resource, future in futures.items()
    }


def _policy(topics: Topics, name: str, settings: dict[str, str]) -> list[TopicDifference]:
    policy = settings["cleanup.policy"]
    wanted = topics.settings(name)["cleanup.policy"]
    if policy != wanted:
        return [TopicDifference(name, f"cleanup.policy is {policy}", f"set it to {wanted}")]
    if name in (topics.predictions, topics.outcomes) and settings["retention.ms"] != "-1":
        return [
            TopicDifference(
                name,
                f"retention.ms is {settings['retention.ms']}",
                "deleted records cannot be derived again; set it to -1 to keep everything",
                fatal=False,
            )
        ]
    return []


def _sizes(topics: Topics, settings: dict[str, dict[str, str]]) -> list[TopicDifference]:
    if topics.dead_letters not in settings:
        return []
    room = int(settings[topics.dead_letters]["max.message.bytes"])
    largest = max(
        (int(settings[name]["max.message.bytes"]) for name in topics.inputs if name in settings), default=0
    )
    if room >= largest:
        return []
    return [
        TopicDifference(
            topics.dead_letters,
            f"max.message.bytes is {room}, an input's is {largest}",
            "a message that cannot be used has to fit into it: set it to at least as much",
        )
    ]
