"""The cluster that other tests run on is what it says."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourceType

from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER
from tests.chaos.network import Network
from tests.chaos.schedule import BROKERS, NETWORK_FAULTS, Fault
from tests.integration.harness import TIMEOUT, until
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.slow]


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    cluster.admin.create_topics([NewTopic("plays", 3)])["plays"].result(TIMEOUT)
    return "plays"


def brokers_seen(settings: dict[str, Any], timeout: float = TIMEOUT) -> set[int]:
    return set(AdminClient(settings, logger=LIBRDKAFKA_LOGGER).list_topics(timeout=timeout).brokers)


def assert_not_let_in(settings: dict[str, Any]) -> None:
    with pytest.raises(KafkaException):
        brokers_seen(settings, timeout=2.0)


def write(settings: dict[str, Any], topic: str) -> str:
    """Write a record; return the name of the error."""
    errors: list[str] = []
    producer = Producer(settings | {"message.timeout.ms": 30_000}, logger=LIBRDKAFKA_LOGGER)
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error.name() if error else ""))
    assert producer.flush(TIMEOUT) == 0
    return errors[0]


def test_clients_get_in_with_a_password_or_a_certificate(cluster: Cluster) -> None:
    for listener in ("SASL_SSL", "SSL"):
        assert brokers_seen(cluster.client_settings("worker", listener)) == {1, 2, 3}


@pytest.mark.parametrize("listener", ["EXPIRED", "OTHER_HOST"])
def test_clients_refuse_a_bad_certificate(cluster: Cluster, listener: str) -> None:
    assert_not_let_in(cluster.client_settings("worker", listener))


def test_clients_refuse_an_unknown_authority(cluster: Cluster) -> None:
    other = {"ssl.ca.location": str(cluster.certificates.other_authority)}
    assert_not_let_in(cluster.client_settings("worker") | other)


def test_a_wrong_password_and_an_expired_certificate_do_not_get_in(cluster: Cluster) -> None:
    certificate, key = cluster.certificates.client("worker", days=-1)
    expired = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    for settings in (
        cluster.client_settings("worker") | {"sasl.password": "wrong"},
        cluster.client_settings("worker", "SSL") | expired,
    ):
        assert_not_let_in(settings)


def test_users_may_do_what_they_are_allowed_to(cluster: Cluster, topic: str) -> None:
    for listener in ("SASL_SSL", "SSL"):
        assert write(cluster.client_settings("guest", listener), topic) == "TOPIC_AUTHORIZATION_FAILED"
    cluster.allow("guest", ResourceType.TOPIC, topic, AclOperation.WRITE, AclOperation.DESCRIBE)
    for listener in ("SASL_SSL", "SSL"):
        settings = cluster.client_settings("guest", listener)
        until(lambda: write(settings, topic) == "", "the permission")  # noqa: B023 - called at once


def test_a_failing_network_parts_one_worker_from_brokers_that_live(
    cluster: Cluster, network: Network
) -> None:
    proxies = [cluster.bootstrap_of(network.listener(worker)) for worker in (0, 1)]
    struck, spared = ({"bootstrap.servers": addresses} for addresses in proxies)
    client = AdminClient({"bootstrap.servers": proxies[0]}, logger=LIBRDKAFKA_LOGGER)
    brokers = client.list_topics(timeout=TIMEOUT).brokers.values()
    assert {f"{broker.host}:{broker.port}" for broker in brokers} == set(proxies[0].split(","))
    for fault in NETWORK_FAULTS:
        network.fail(fault, workers=[0], brokers=BROKERS)
        assert_not_let_in(struck)
        assert brokers_seen(spared) == brokers_seen(cluster.client_settings()) == {1, 2, 3}
        network.heal()
        assert brokers_seen(struck) == {1, 2, 3}


def test_nothing_is_left_of_a_cluster_whose_process_is_killed() -> None:
    program = (
        "from tests.support.cluster import running_cluster\n"
        "with running_cluster(brokers=1) as cluster:\n"
        "    print(cluster.certificates.authority, flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip()).parent
        assert folder.parent == Path(tempfile.gettempdir()).resolve()
        assert folder.exists()
        process.kill()
    until(lambda: not folder.exists(), "the end of the cluster")


ASK = """
import sys
from confluent_kafka import KafkaException
from pipeline.config.settings import Kafka
from pipeline.kafka.access.groups import describe_group
for line in sys.stdin:
    try:
        print(describe_group(Kafka(bootstrap=sys.argv[1]), "readers", 0.5).group_id, flush=True)
    except KafkaException as error:
        print(error.args[0].name(), flush=True)
"""
"""Asks for a group at each line of input, and says who answers."""


MOVING = ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")
"""What brokers answer while a partition of the groups moves from one to another."""


def test_a_process_outlives_the_silence_of_a_group_s_coordinator(cluster: Cluster, network: Network) -> None:
    command = [sys.executable, "-c", ASK, cluster.bootstrap_of(network.listener(0))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout

        def ask() -> str:
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        until(lambda: ask() != "_TIMED_OUT", "an answer", None)
        for number in range(9):
            network.fail(Fault.SILENCE, workers=[0], brokers=[BROKERS[number % 3]])
            answers = {ask() for _ in range(2)}
            network.heal()
            assert answers <= {"_TIMED_OUT", "readers", "GROUP_ID_NOT_FOUND", *MOVING}
        until(lambda: ask() != "_TIMED_OUT", "an answer after the silence", None)
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0
