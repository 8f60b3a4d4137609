"""Create the topics, and check that they have the settings that the pipeline needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Final, NamedTuple, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicMetadata,
)

from pipeline.config.settings import Config
from pipeline.config.topics import LARGEST_BATCH, LARGEST_DEAD_LETTER, LEAST_OUTPUT, Topics
from pipeline.errors import TopicError
from pipeline.kafka.access.authorization import denied, is_denied, needing
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import BROKER_TIMEOUT, retry
from pipeline.kafka.access.rights import Resource, Right
from pipeline.kafka.offsets import PartitionId, low_watermarks
from pipeline.records.dead_letter import ADDED_BYTES, LEAST_ROOM
from pipeline.records.largest import MAX_SHARES_BYTES, LargestRecords

BATCH_OVERHEAD = 0.05
"""Share of a batch's limit that is left to its header, and to what does not get smaller when compressed."""

BROKER_DEFAULT = -1
"""Lets the brokers decide how many replicas a partition has."""
WANTED_REPLICAS = 3
"""Replicas of each partition, where there are as many brokers."""
LEAST_INPUT_RETENTION_MS = 3_600_000
"""Milliseconds for which the inputs have to be kept: shorter than a worker may be away."""

LEAST_COMPACTION_LAG_MS = 3_600_000
"""Below this, a restart may miss them."""


def table_partition(client: Consumer | Admin, topic: str, partition: int) -> int:
    """Return which partition of a table's topic a partition of the inputs reads.

    Parameters
    ----------
    client
        Asks the brokers.
    topic
        The topic's name.
    partition
        The number of the partition.

    Raises
    ------
    KafkaException
        No broker answers, or the one that does knows nothing of the topic, as one that has just started.
    """
    found = client.list_topics(topic, BROKER_TIMEOUT).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return 0 if len(found.partitions) == 1 else partition


class TopicDifference(NamedTuple):
    """A property of a topic that is not as the pipeline needs it."""

    topic: str
    what: str
    remedy: str
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.topic}: {self.what}; {self.remedy}"


def existing_topics(client: Admin, names: Iterable[str]) -> dict[str, TopicMetadata]:
    """Return those topics that exist.

    Parameters
    ----------
    client
        Asks the brokers.
    names
        The topics to ask for.

    Returns
    -------
    dict of str to TopicMetadata
        By name.

    Raises
    ------
    AuthorizationError
        The brokers do not tell this client whether a topic exists.
    KafkaException
        The brokers do not answer in time.
    """
    visible = client.list_topics(timeout=BROKER_TIMEOUT).topics
    existing = {name: visible[name] for name in names if name in visible}
    if unknown := [name for name in names if name not in existing]:
        # Metadata of all topics leave out those that the client may not describe.
        described = client.describe_topics(TopicCollection(unknown), request_timeout=BROKER_TIMEOUT)
        if hidden := [name for name, future in described.items() if not _is_missing(future)]:
            raise denied(client.kafka, [Right("Describe", Resource.TOPIC, name) for name in hidden])
    return existing


def create(client: Admin, topics: Topics, partitions: int, replication: int = BROKER_DEFAULT) -> list[str]:
    """Create the topics that are missing, and return their names once every partition answers.

    Parameters
    ----------
    client
        Creates them.
    topics
        The topics that are needed.
    partitions
        Partitions of each; a table that is not keyed like the inputs has one, which all partitions read.
    replication
        Replicas of each partition; by default as many as the brokers are set to.

    Returns
    -------
    list of str
        The names of the topics that were created.

    Raises
    ------
    TopicError
        The broker refuses to create one.
    """

    def count(name: str) -> int:
        return 1 if name in topics.tables and name not in topics.keyed_tables else partitions

    existing = existing_topics(client, topics.all)
    missing = [name for name in topics.all if name not in existing]
    futures = (
        client.create_topics(
            [NewTopic(name, count(name), replication, config=topics.settings(name)) for name in missing]
        )
        if missing
        else {}
    )
    created = []
    for name, future in futures.items():
        try:
            with needing(client.kafka, "Create", Resource.TOPIC, name):
                future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:  # somebody else was quicker
                continue
            raise TopicError(f"{name} cannot be created: {error.args[0].str()}") from error
        created.append(name)
    new = [PartitionId(name, number) for name in created for number in range(count(name))]
    low_watermarks(client, new)
    return created


Needs: TypeAlias = Callable[[int], Mapping[str, int]]
"""Returns the bytes of the largest record of outputs, by topic, given the number of partitions."""


def needs_of(config: Config, topics: Topics) -> Needs:
    """Return what a worker with this configuration may have to write."""

    def needs(partitions: int) -> Mapping[str, int]:
        interval = config.sharing.interval_for(partitions)
        largest = LargestRecords.of(config.stream, config.challengers, interval or 0)
        shares = MAX_SHARES_BYTES + largest.share if interval else 0
        found = {
            topics.predictions: largest.prediction,
            topics.outcomes: largest.outcome + shares,
            topics.label_requests: largest.label_request,
        }
        return found | ({topics.shared: largest.share} if interval else {})

    return needs


def partition_count(client: Admin, topics: Topics, needs: Needs | None = None) -> int:
    """Check all topics, and return how many partitions each of them has.

    Parameters
    ----------
    client
        Asks the brokers.
    topics
        The topics.
    needs
        What is written to the outputs; None where nothing is.

    Raises
    ------
    TopicError
        A topic is not as needed; the text names all differences.
    """
    fatal = [difference for difference in check(client, topics, needs) if difference.fatal]
    if fatal:
        raise TopicError("\n       ".join(str(difference) for difference in fatal))
    return len(client.list_topics(timeout=10.0).topics[topics.interactions].partitions)


class OutputLimits(NamedTuple):
    """How large what is written to the outputs may be, in bytes, however it compresses."""

    batch: int
    """A batch of several records, in any of them."""
    dead_letter: int
    """A dead letter."""


DEFAULT_LIMITS: Final = OutputLimits(1_000_000, 1_000_000)
"""Those of topics that nobody has set limits for, or less."""


def output_limits(client: Admin, topics: Topics) -> OutputLimits:
    """Return what the topics of outputs take, which exist."""
    limits = _limits(_settings(client, [*topics.outputs]))
    smallest = min(*limits.values(), LARGEST_BATCH)
    return OutputLimits(
        int(smallest * (1 - BATCH_OVERHEAD)), min(limits[topics.dead_letters], LARGEST_DEAD_LETTER)
    )


def oversized(client: Admin, topics: Topics) -> str:
    """Return what to do where an output refuses a record as too large."""
    limits = _limits(_settings(client, [*topics.outputs]))
    smallest = min(limits, key=limits.__getitem__)
    return (
        f"an output refuses a record as too large, and {smallest} takes the least, max.message.bytes of "
        f"{limits[smallest]}: set it to {LARGEST_BATCH} for all outputs, as `forks topics create` does"
    )


def check(client: Admin, topics: Topics, needs: Needs | None = None) -> list[TopicDifference]:
    """Return all differences between the topics and what the pipeline needs; see `partition_count`."""
    existing = existing_topics(client, topics.all)
    differences = [
        TopicDifference(name, "the topic does not exist", _creation(topics, name))
        for name in topics.all
        if name not in existing
    ]
    present = [name for name in topics.all if name in existing]
    differences += _partitions(topics, existing)
    if present:
        brokers = len(client.list_topics(timeout=BROKER_TIMEOUT).brokers)
        settings = _settings(client, present)
        for name in present:
            replicas = len(existing[name].partitions[0].replicas)
            differences += _policy(topics, name, settings[name])
            differences += _retention(topics, name, settings[name])
            differences += _durability(name, settings[name], replicas, brokers)
        differences += _sizes(topics, settings)
        if needs is not None and topics.interactions in existing:
            differences += _records(needs(len(existing[topics.interactions].partitions)), settings)
    return differences


def _is_missing(description: Future[object]) -> bool:
    """Return whether a topic does not exist or has just been created; false if that may not be known."""
    try:
        description.result()
    except KafkaException as error:
        if is_denied(error):
            return False
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
    return True


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
        if name in existing
        and (count := len(existing[name].partitions)) != wanted
        and not (name in topics.tables and (count == 1 or name in topics.keyed_tables))
    ] + [
        TopicDifference(
            name,
            f"it has {len(existing[name].partitions)} partitions where {topics.interactions} has {wanted}",
            "a table has as many, or a single one that all partitions read",
        )
        for name in topics.keyed_tables
        if name in existing and len(existing[name].partitions) not in {1, wanted}
    ]


def _settings(client: Admin, names: list[str]) -> dict[str, dict[str, str]]:
    """Return the settings of topics that exist; a broker that does not know a new one yet is asked again."""

    def request() -> dict[str, dict[str, str]]:
        futures = client.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
        settings = {}
        for resource, future in futures.items():
            with needing(client.kafka, "DescribeConfigs", Resource.TOPIC, resource.name):
                settings[resource.name] = {entry.name: entry.value for entry in future.result().values()}
        return settings

    return retry(request, {KafkaError.UNKNOWN_TOPIC_OR_PART}, BROKER_TIMEOUT)


def _policy(topics: Topics, name: str, settings: dict[str, str]) -> list[TopicDifference]:
    policy = settings["cleanup.policy"]
    wanted = topics.settings(name)["cleanup.policy"]
    if policy != wanted:
        return [TopicDifference(name, f"cleanup.policy is {policy}", f"set it to {wanted}")]
    if name in topics.outputs and settings["message.timestamp.type"] == "LogAppendTime":
        return [
            TopicDifference(
                name,
                "message.timestamp.type is LogAppendTime",
                "records have the time of writing, so that `forks inspect --since` does not find them by the "
                "time of their events; set it to CreateTime",
                fatal=False,
            )
        ]
    return []


def _retention(topics: Topics, name: str, settings: dict[str, str]) -> list[TopicDifference]:
    """Report records that are deleted while something still depends on them."""
    if name in topics.tables and (lag := int(settings["min.compaction.lag.ms"])) < LEAST_COMPACTION_LAG_MS:
        remedy = (
            "compaction may take away versions that a restart or an audit needs; set it to longer than all "
            "workers are ever away"
        )
        return [TopicDifference(name, f"min.compaction.lag.ms is {lag}", remedy, fatal=False)]
    kept = int(settings["retention.ms"])
    if name in (topics.predictions, topics.outcomes) and kept != -1:
        remedy = "deleted records cannot be derived again; set it to -1 to keep everything"
        return [TopicDifference(name, f"retention.ms is {kept}", remedy, fatal=False)]
    if name in topics.inputs and kept != -1:
        remedy = (
            "Kafka counts from the time of the event, and what it deletes before a worker has read it is "
            "lost; set it to -1, or at least to the longest time for which all workers may be away"
        )
        return [
            TopicDifference(name, f"retention.ms is {kept}", remedy, fatal=kept < LEAST_INPUT_RETENTION_MS)
        ]
    return []


def _durability(name: str, settings: dict[str, str], replicas: int, brokers: int) -> list[TopicDifference]:
    """Report what lets the loss of a broker lose committed records."""
    wanted = min(WANTED_REPLICAS, brokers)
    found = []
    if replicas < wanted:
        remedy = f"the loss of one broker loses its records; add replicas, best {wanted} in all"
        found.append(TopicDifference(name, f"it has {replicas} of {wanted} replicas", remedy, fatal=False))
    in_sync = int(settings["min.insync.replicas"])
    if replicas > 1 and in_sync < 2:
        remedy = "records count as written that only one broker has; set it to 2"
        found.append(TopicDifference(name, f"min.insync.replicas is {in_sync}", remedy, fatal=False))
    if replicas > 1 and settings["unclean.leader.election.enable"] == "true":
        remedy = "a broker that lacks committed records may become leader and delete them; set it to false"
        found.append(TopicDifference(name, "unclean.leader.election.enable is true", remedy))
    return found


def _limits(settings: dict[str, dict[str, str]]) -> dict[str, int]:
    """Return the bytes of a batch of records that topics take, given their settings."""
    return {name: int(each["max.message.bytes"]) for name, each in settings.items()}


def _records(needs: Mapping[str, int], settings: dict[str, dict[str, str]]) -> list[TopicDifference]:
    """Report outputs that do not take each record that messages may make."""
    limits = _limits(settings)
    return [
        TopicDifference(
            name,
            f"max.message.bytes is {limits[name]}, a record may have {most}",
            f"set it to {most} or more, or lower what the definition and sharing.interval allow",
        )
        for name, most in needs.items()
        if limits.get(name, most) < most
    ]


def _sizes(topics: Topics, settings: dict[str, dict[str, str]]) -> list[TopicDifference]:
    """Report outputs that do not take what may have to be written."""
    limits, name = _limits(settings), topics.dead_letters
    found = [
        TopicDifference(each, f"max.message.bytes is {limits[each]}", f"{why}: set it to {least} or more")
        for each, least, why in (
            (topics.checkpoints, LEAST_OUTPUT, "snapshots do not fit"),
            (name, LEAST_ROOM, "no dead letter fits"),
        )
        if limits.get(each, least) < least
    ]
    largest = max((limits[each] for each in (*topics.inputs, *topics.tables) if each in limits), default=0)
    if LEAST_ROOM <= limits.get(name, 0) < largest + ADDED_BYTES:
        what = f"max.message.bytes is {limits[name]}, an input's is {largest}"
        remedy = (
            "a message that cannot be used is cut where it does not fit with the headers of a dead letter: "
            f"set it to {largest + ADDED_BYTES} or more"
        )
        found.append(TopicDifference(name, what, remedy, fatal=False))
    return found
