"""A cluster of Apache Kafka: one controller, and brokers that tests kill, stop, suspend and start again.

Every broker has listeners with and without TLS and passwords, and some whose certificates are bad. The users
of passwords and of certificates may do nothing until they are allowed to. The listener `PLAINTEXT` is for the
brokers and the tests themselves, who may do everything, as may the users of listeners with a proxy.
"""

from __future__ import annotations

import base64
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from pipeline.broker.launch import free_ports, log_file, prepare, start_failure
from pipeline.errors import BrokerError
from tests.support import cleaner
from tests.support.certificates import EXPIRED_DAYS, OTHER_HOSTS, Certificates

LISTENERS: Final[Mapping[str, str]] = {
    "PLAINTEXT": "PLAINTEXT",  # for the brokers and the tests themselves
    "SASL_SSL": "SASL_SSL",  # with passwords: SCRAM-SHA-512
    "SSL": "SSL",  # with certificates of clients
    "EXPIRED": "SASL_SSL",  # the same as SASL_SSL, but the server's certificate has expired
    "OTHER_HOST": "SASL_SSL",  # the same, but the server's certificate is for another host
}
"""Listeners of each broker, and their security protocols."""
PASSWORDS: Final[Mapping[str, str]] = {
    "admin": "admin-secret",
    "guest": "guest-secret",
    **{role: f"{role}-secret" for role in ("worker", "reader", "auditor", "follower", "redriver")},
}
"""Users of the listeners with passwords. Only `admin` may do everything."""
HEAP: Final = "320m"
CONTROLLER: Final = 100
"""The controller's node number. Brokers are numbered from 1."""
INTERNAL_PARTITIONS: Final = 4
"""Partitions of each internal topic."""
PRODUCER_EXPIRATION: Final = 7 * 86_400_000
"""Milliseconds after whose last record, by its timestamp, brokers forget an idempotent producer."""
TIMEOUT: Final = 120.0
"""Seconds for whatever is waited for."""


class Node:
    """A Kafka process that can be started and ended several times.

    Parameters
    ----------
    number
        The node's number.
    folder
        For its data; it is made.
    """

    def __init__(self, number: int, folder: Path) -> None:
        self.number = number
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended since. A suspended one runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that was started last."""
        assert self._process is not None, f"node {self.number} was not started"
        return self._process

    def start(self, command: Sequence[str]) -> None:
        """Start it, and return before it is ready."""
        assert not self.running, f"node {self.number} runs"
        with log_file(self.folder).open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests
            )

    def reap(self) -> None:
        """Wait for the end of a process that was killed, if there is one."""
        if self._process is not None:
            self._process.wait(TIMEOUT)

    def check_alive(self) -> None:
        """Raise BrokerError if it has ended."""
        if (code := self.process.poll()) is not None:
            raise BrokerError(start_failure(self.folder, code))


class Cluster:
    """Brokers, and the controller that elects leaders among them. Made by `running_cluster`.

    Parameters
    ----------
    folder
        For everything that the nodes and their clients need.
    brokers
        How many brokers.
    session_timeout
        Seconds after which the controller takes a silent broker's partitions from it.
    proxied
        Further listeners without TLS, by name: the port that each broker advertises, by its number.
    """

    def __init__(
        self,
        folder: Path,
        brokers: int,
        session_timeout: float,
        proxied: Mapping[str, Mapping[int, int]] = MappingProxyType({}),
    ) -> None:
        self.certificates = Certificates(folder)
        self._key_stores = {
            "EXPIRED": self.certificates.server("expired", days=EXPIRED_DAYS),
            "OTHER_HOST": self.certificates.server("other-host", hosts=OTHER_HOSTS),
        }
        self._default_key_store = self.certificates.server()
        self._cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._session_timeout = session_timeout
        self._controller = Node(CONTROLLER, folder / "controller")
        self._nodes = {number: Node(number, folder / f"broker-{number}") for number in range(1, brokers + 1)}
        self._proxied = proxied
        self._listeners = {**LISTENERS, **dict.fromkeys(proxied, "PLAINTEXT")}
        [self._controller_port, *ports] = free_ports(1 + brokers * len(self._listeners))
        places = [(number, listener) for number in self._nodes for listener in self._listeners]
        self._ports = dict(zip(places, ports, strict=True))

    @property
    def brokers(self) -> list[int]:
        """The numbers of all brokers."""
        return list(self._nodes)

    @property
    def bootstrap(self) -> str:
        """The addresses of the listeners for the tests themselves."""
        return self.bootstrap_of("PLAINTEXT")

    def bootstrap_of(self, listener: str) -> str:
        """Return the addresses at which clients reach a listener of all brokers."""
        return ",".join(self.address(number, listener) for number in self._nodes)

    def address(self, broker: int, listener: str = "PLAINTEXT") -> str:
        """Return the address that a broker advertises for a listener: that of the proxy, if it has one."""
        if listener in self._proxied:
            return f"localhost:{self._proxied[listener][broker]}"
        return f"localhost:{self.port(broker, listener)}"

    def port(self, broker: int, listener: str = "PLAINTEXT") -> int:
        """Return the port on which a broker itself listens."""
        return self._ports[broker, listener]

    def client_settings(self, user: str | None = None, listener: str = "SASL_SSL") -> dict[str, Any]:
        """Return the settings of a client.

        Parameters
        ----------
        user
            A user of `PASSWORDS`, or the name in a client's certificate for the listener `SSL`. Without one
            the client uses the listener `PLAINTEXT`.
        listener
            Which listener the user connects to.
        """
        if user is None:
            return {"bootstrap.servers": self.bootstrap}
        settings = {
            "bootstrap.servers": self.bootstrap_of(listener),
            "security.protocol": LISTENERS[listener],
            "ssl.ca.location": str(self.certificates.authority),
        }
        if listener == "SSL":
            certificate, key = self.certificates.client(user)
            return settings | {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
        return settings | {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": PASSWORDS.get(user, "nobody's password"),
        }

    @cached_property
    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return AdminClient({"log_level": 0, **self.client_settings()})

    def allow(
        self,
        user: str,
        resource: ResourceType,
        name: str,
        *operations: AclOperation,
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> None:
        """Allow a user, of either kind of listener, some operations; brokers know it a moment later."""
        rules = [
            AclBinding(resource, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
            for operation in operations
        ]
        for made in self.admin.create_acls(rules).values():
            made.result(TIMEOUT)

    def leader(self, topic: str, partition: int) -> int:
        """Return the number of the broker that leads a partition, -1 if there is none.

        A broker learns of a new topic a moment after it was created, so one that knows none is asked again.
        """
        end = time.monotonic() + TIMEOUT
        while True:
            partitions = self.admin.list_topics(topic, timeout=10.0).topics[topic].partitions
            if partition in partitions or time.monotonic() > end:
                return partitions[partition].leader
            time.sleep(0.1)

    def coordinator(self, group: str) -> int:
        """Return the number of the broker that coordinates a group, once a member has joined."""
        return self.leader("__consumer_offsets", internal_partition(group))

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the number of the broker that coordinates transactions, once there was one."""
        return self.leader("__transaction_state", internal_partition(transactional_id))

    def in_sync(self) -> bool:
        """Return whether every replica of every partition is in sync."""
        topics = self.admin.list_topics(timeout=10.0).topics.values()
        partitions = [partition for topic in topics for partition in topic.partitions.values()]
        return all(len(partition.isrs) == len(partition.replicas) for partition in partitions)

    def running(self, broker: int) -> bool:
        """Return whether a broker was started and has not ended since. A suspended one runs."""
        return self._nodes[broker].running

    def kill(self, *brokers: int) -> None:
        """SIGKILL brokers."""
        for number in brokers:
            self._nodes[number].process.kill()
        for number in brokers:
            self._nodes[number].process.wait(TIMEOUT)

    def stop(self, broker: int, wait: bool = True) -> None:
        """Stop a broker, which first hands over what it leads; wait until it has ended, or do not."""
        process = self._nodes[broker].process
        process.send_signal(signal.SIGTERM)
        if wait:
            process.wait(TIMEOUT)

    def pause(self, broker: int) -> None:
        """Suspend a broker: its connections stay, but nothing is answered."""
        self._nodes[broker].process.send_signal(signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        """Let a suspended broker go on."""
        self._nodes[broker].process.send_signal(signal.SIGCONT)

    def start(self, broker: int, wait: bool = True) -> None:
        """Start a broker that has ended.

        Parameters
        ----------
        broker
            Its number.
        wait
            Whether to wait until the cluster knows it.
        """
        self._launch(self._nodes[broker], self._broker_settings(broker), [])
        if wait:
            self.wait_for(broker)

    def start_all(self) -> None:
        """Start the controller and all brokers at the same time, and wait for them."""
        users = [f"--add-scram=SCRAM-SHA-512=[name={user},password={PASSWORDS[user]}]" for user in PASSWORDS]
        address = f"CONTROLLER://localhost:{self._controller_port}"
        roles = {"process.roles": "controller", "listeners": address, "advertised.listeners": address}
        self._launch(self._controller, roles, users)
        for number in self._nodes:
            self.start(number, wait=False)
        self.wait_for(*self._nodes)

    def wait_for(self, *brokers: int) -> None:
        """Wait until clients are told of these brokers."""
        nodes = [self._controller, *(self._nodes[number] for number in brokers)]

        def known() -> bool:
            for node in nodes:
                node.check_alive()
            try:
                return set(brokers) <= set(self.admin.list_topics(timeout=1.0).brokers)
            except KafkaException:
                return False

        self.wait_until(known, f"the brokers {brokers} to be known")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition.

        Raises
        ------
        TimeoutError
            It does not come true.
        """
        end = time.monotonic() + TIMEOUT
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"waited {TIMEOUT:.0f} s for {what}")
            time.sleep(0.05)

    def reap(self) -> None:
        """Wait for all processes, which somebody has killed."""
        for node in (self._controller, *self._nodes.values()):
            node.reap()

    def _launch(self, node: Node, settings: Mapping[str, str], format_options: Sequence[str]) -> None:
        """Write a node's files and start it. With options for it, Kafka's tool formats its storage."""
        if not format_options:
            _write_identity(node, self._cluster_id)
        launch = prepare(node.folder, heap=HEAP)
        with (node.folder / "server.properties").open("a") as properties:  # what is said last counts
            for name, value in {**self._common_settings(node.number), **settings}.items():
                properties.write(f"{name}={value}\n")
        for command in launch.commands[:-1]:
            cluster = [
                f"--cluster-id={self._cluster_id}" if "--cluster-id" in part else part for part in command
            ]
            subprocess.run([*cluster, *format_options], cwd=node.folder, check=True, capture_output=True)
        node.start(launch.commands[-1])

    def _common_settings(self, number: int) -> dict[str, str]:
        copies = min(3, len(self._nodes))
        in_sync = max(1, copies - 1)
        factor, least = "replication.factor", "min.isr"
        return {
            "node.id": str(number),
            "controller.quorum.voters": f"{CONTROLLER}@localhost:{self._controller_port}",
            "broker.session.timeout.ms": str(round(self._session_timeout * 1000)),
            "broker.heartbeat.interval.ms": str(round(self._session_timeout * 1000 / 4.5)),
            "producer.id.expiration.ms": str(PRODUCER_EXPIRATION),
            "default.replication.factor": str(copies),
            "min.insync.replicas": str(in_sync),
            f"offsets.topic.{factor}": str(copies),
            f"transaction.state.log.{factor}": str(copies),
            f"transaction.state.log.{least}": str(in_sync),
            f"share.coordinator.state.topic.{factor}": str(copies),
            f"share.coordinator.state.topic.{least}": str(in_sync),
            "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
            "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}"
                for name, protocol in {"CONTROLLER": "PLAINTEXT", **self._listeners}.items()
            ),
        }

    def _broker_settings(self, number: int) -> dict[str, str]:
        settings = {
            "process.roles": "broker",
            "listeners": ",".join(
                f"{name}://localhost:{self.port(number, name)}" for name in self._listeners
            ),
            "advertised.listeners": ",".join(
                f"{name}://{self.address(number, name)}" for name in self._listeners
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._default_key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.authority),
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/,DEFAULT",
            "listener.name.ssl.ssl.client.auth": "required",
        }
        for name, protocol in LISTENERS.items():
            if protocol == "SASL_SSL":
                own = f"listener.name.{name.lower()}.scram-sha-512"
                settings[f"{own}.sasl.jaas.config"] = (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                )
        for name, key_store in self._key_stores.items():
            settings[f"listener.name.{name.lower()}.ssl.keystore.type"] = "PEM"
            settings[f"listener.name.{name.lower()}.ssl.keystore.location"] = str(key_store)
        return settings


@contextmanager
def running_cluster(
    brokers: int = 3,
    session_timeout: float = 9.0,
    proxied: Mapping[str, Mapping[int, int]] = MappingProxyType({}),
) -> Iterator[Cluster]:
    """Run a cluster inside the block.

    At the end of the block its processes are ended and its files deleted, also if this process is killed.

    Parameters
    ----------
    brokers
        How many brokers. With three, each record has three copies, and two have to be in sync.
    session_timeout
        Seconds after which the controller takes a silent broker's partitions from it; Kafka's default.
    proxied
        Further listeners without TLS, by name: the port that each broker advertises, by its number.
        Something has to listen there and lead to `Cluster.port`.

    Yields
    ------
    Cluster
        The cluster, ready.
    """
    folder = Path(tempfile.mkdtemp(prefix="forks-cluster-")).resolve()
    clean = subprocess.Popen(
        [sys.executable, "-P", cleaner.__file__, str(folder)], stdin=subprocess.PIPE, start_new_session=True
    )
    cluster = None
    try:
        cluster = Cluster(folder, brokers, session_timeout, proxied)
        cluster.start_all()
        yield cluster
    finally:
        clean.communicate()  # close the pipe, and wait for the cleaner to end
        if cluster is not None:
            cluster.reap()


def internal_partition(name: str) -> int:
    """Return the partition of an internal topic that a group or a transactional id belongs to.

    >>> internal_partition("hello")
    2
    """
    number = 0
    for character in name:  # Java's hash of a string
        number = (31 * number + ord(character)) & 0xFFFFFFFF
    return (number & 0x7FFFFFFF) % INTERNAL_PARTITIONS


def _write_identity(node: Node, cluster_id: str) -> None:
    """Format a broker's storage, as Kafka's own tool does in a second more."""
    folder = node.folder / "kafka"
    if folder.exists():
        return
    folder.mkdir()
    directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    identity = {"version": 1, "cluster.id": cluster_id, "node.id": node.number, "directory.id": directory}
    (folder / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in identity.items()))
