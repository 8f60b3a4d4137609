"""Rights that a principal lacks, before a command starts and while a worker runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.kafka.access.authorization import OPERATIONS, RESOURCE_TYPES, grant
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER
from pipeline.kafka.access.rights import Resource, Right, Role, rights
from pipeline.kafka.committed import committed_offsets
from pipeline.kafka.offsets import PartitionId
from pipeline.records.encoding import encode
from pipeline.records.kuairec import KuaiRecInteraction
from tests.integration.followers import answers
from tests.integration.harness import TIMEOUT, input_producer, until
from tests.security.refusal import FOLLOWER_PORT, Endpoint, Refusal, outcome, refused, start
from tests.support import cluster as clusters
from tests.support.acls import Acl, acls_at

PREFIX: Final = "rights-"
PARTITIONS: Final = 2
USER: Final = "worker"
COMMANDS: Final[dict[Role, tuple[tuple[str, ...], ...]]] = {
    Role.WORKER: (("run",),),
    Role.READER: (("report",), ("inspect", "outcomes"), ("inspect", "predictions"), ("inspect", "shared")),
    Role.AUDITOR: (("audit",),),
    Role.FOLLOWER: (("serve",),),
    Role.REDRIVER: (("redrive",),),
}
"""Commands of each role."""
WHILE_RUNNING: Final = (
    ("Read", Resource.TOPIC, "interactions"),
    ("Write", Resource.TOPIC, "predictions"),
    ("Write", Resource.TOPIC, "checkpoints"),
    ("Read", Resource.GROUP, "forks"),
    ("Write", Resource.TRANSACTIONAL_ID, ""),
)
"""Rights that are taken from a running worker."""


def needed(role: Role) -> list[Right]:
    """Return the rights of a role."""
    config = Config.model_validate({"kafka": {"prefix": PREFIX, "group": f"{PREFIX}forks"}})
    return rights(role, config, topics_of(config))


def give(cluster: clusters.Cluster, wanted: Sequence[Right], user: str = USER) -> None:
    """Let a user have these rights and no others."""
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]  # its stub forgets that None stands for any
        ResourcePatternType.ANY,
        f"User:{user}",
        None,  # type: ignore[arg-type]  # as above
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    for deleted in cluster.admin.delete_acls([everything]).values():
        deleted.result()
    if wanted:
        grant(cluster.admin, f"User:{user}", wanted)
    expected = {_acl(right) for right in wanted}
    _wait_for_brokers(cluster, user, lambda known: known == expected)


def take_away(cluster: clusters.Cluster, right: Right) -> None:
    """Take a right from the user, who keeps all others meanwhile."""
    binding = AclBindingFilter(
        RESOURCE_TYPES[right.resource],
        right.name,
        ResourcePatternType.PREFIXED if right.prefixed else ResourcePatternType.LITERAL,
        f"User:{USER}",
        None,  # type: ignore[arg-type]  # as above
        OPERATIONS[right.operation],
        AclPermissionType.ANY,
    )
    for deleted in cluster.admin.delete_acls([binding]).values():
        assert len(deleted.result()) == 1
    _wait_for_brokers(cluster, USER, lambda known: _acl(right) not in known)


def _acl(right: Right) -> Acl:
    """Return the ACL of a right."""
    pattern = ResourcePatternType.PREFIXED if right.prefixed else ResourcePatternType.LITERAL
    numbers = RESOURCE_TYPES[right.resource].value, pattern.value, OPERATIONS[right.operation].value
    return Acl(numbers[0], right.name, *numbers[1:])


def _wait_for_brokers(cluster: clusters.Cluster, user: str, condition: Callable[[set[Acl]], bool]) -> None:
    """Wait until all brokers know what a user may do."""
    ports = [cluster.port(broker) for broker in cluster.brokers]
    cluster.wait_until(
        lambda: all(condition(acls_at(port, f"User:{user}")) for port in ports), "the brokers to know"
    )


def connection(cluster: clusters.Cluster, user: str = USER) -> Endpoint:
    """Return how the user reaches the cluster."""
    return Endpoint(cluster.client_settings(user), PREFIX)


def set_up(cluster: clusters.Cluster, folder: Path) -> Iterator[Refusal]:
    """Create the topics as an operator, and fill them as a producer."""
    data = str(folder / "data")
    yield refused("data", ("synth", "--out", data, "--events", "300"), connection(cluster), folder)
    for role, command in (
        (Role.OPERATOR, ("topics", "create", "--partitions", str(PARTITIONS))),
        (Role.PRODUCER, ("replay", data)),
    ):
        give(cluster, needed(role))
        yield refused(str(role), command, connection(cluster), folder)


def work(cluster: clusters.Cluster, folder: Path) -> None:
    """Let a worker process what there is."""
    give(cluster, needed(Role.WORKER))
    endpoint, log = connection(cluster), folder / "worker.log"
    group = {"group.id": endpoint.environment()["FORKS_KAFKA__GROUP"]}
    consumer = Consumer(cluster.client_settings() | group, logger=LIBRDKAFKA_LOGGER)
    inputs = [PartitionId(f"{PREFIX}interactions", number) for number in range(PARTITIONS)]

    def committed() -> bool:
        found = committed_offsets(consumer, inputs)
        return all(each.metadata for by_topic in found.values() for each in by_topic.values())

    worker = start(["run"], endpoint, log)
    try:
        until(committed, "commits", worker)
        worker.terminate()
        assert worker.wait(TIMEOUT) == 0
    finally:
        worker.kill()
        worker.wait()
        consumer.close()


def allowed(cluster: clusters.Cluster, folder: Path) -> Iterator[Refusal]:
    """Run commands of each role with all of its rights.

    Some ask that the group has no member. A worker without rights on the group cannot leave it, and counts as
    one until its session is over.
    """
    group = f"{PREFIX}forks"
    until(
        lambda: not cluster.admin.describe_consumer_groups([group])[group].result().members, "an empty group"
    )
    install = ("rebuild", "--install", "--set", "learner.budget=90")
    back = ("rebuild", "--install")
    commands = COMMANDS | {
        Role.WORKER: (),
        Role.FOLLOWER: (),
        Role.OPERATOR: (("checkpoint", "recover"), install, back),
    }
    for role, of_role in commands.items():
        give(cluster, needed(role))
        for command in of_role:
            yield refused(f"`forks {' '.join(command)}`", command, connection(cluster), folder)


def follow(cluster: clusters.Cluster, folder: Path) -> None:
    """Let a follower answer with its rights."""
    give(cluster, needed(Role.FOLLOWER))
    [command] = COMMANDS[Role.FOLLOWER]
    follower = start(command, connection(cluster), folder / "follower.log")
    try:
        until(lambda: answers(f"http://127.0.0.1:{FOLLOWER_PORT}"), "a follower that is ready", follower)
        follower.terminate()
        assert follower.wait(TIMEOUT) == 0
    finally:
        follower.kill()
        follower.wait()


def refusals(cluster: clusters.Cluster, folder: Path) -> Iterator[Refusal]:
    """Take each right away from each role, and run the role's commands; each role is a user of its own."""

    def of_role(role: Role) -> list[Refusal]:
        own = folder / f"rights of a {role}"
        own.mkdir()
        return list(_refusals_of(role, cluster, own))

    with ThreadPoolExecutor(len(COMMANDS)) as pool:
        for found in pool.map(of_role, COMMANDS):
            yield from found


def _refusals_of(role: Role, cluster: clusters.Cluster, folder: Path) -> Iterator[Refusal]:
    wanted = needed(role)
    for right in wanted:
        give(cluster, [each for each in wanted if each != right], str(role))
        for command in COMMANDS[role]:
            case = f"`forks {' '.join(command)}` without {right}".replace(PREFIX, "")
            found = refused(case, command, connection(cluster, str(role)), folder)
            if found.exit_code != 0:
                yield found


def refusals_while_running(cluster: clusters.Cluster, folder: Path) -> Iterator[Refusal]:
    """Take rights away from a worker that predicts."""
    wanted, log = needed(Role.WORKER), folder / "worker.log"
    for operation, resource, name in WHILE_RUNNING:
        give(cluster, wanted)
        process = start(["run"], connection(cluster), log)
        try:
            while log.read_bytes().count(b"restored") < PARTITIONS and process.poll() is None:
                time.sleep(0.05)
            [lost] = [
                right
                for right in wanted
                if (right.operation, right.resource) == (operation, resource) and right.name.endswith(name)
            ]
            begin = time.monotonic()
            take_away(cluster, lost)
            send_plays(cluster)
            case = f"a running worker loses {lost}".replace(PREFIX, "")
            yield outcome(case, process, begin, connection(cluster), log)
        finally:
            process.kill()
            process.wait()


def send_plays(cluster: clusters.Cluster) -> None:
    """Write some plays, as of the present."""
    now = round(time.time() * 1000)
    producer = input_producer(cluster.bootstrap)
    for number in range(100):
        play = KuaiRecInteraction(f"{now}-{number}", number, 7, now, 10_000)
        producer.produce(f"{PREFIX}interactions", encode(play), str(number), timestamp=now)
    assert producer.flush(30.0) == 0
