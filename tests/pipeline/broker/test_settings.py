"""The settings of the broker, embedded and in Docker."""

from __future__ import annotations

import re

import pytest

from pipeline.broker.settings import SETTINGS, container_environment, environment_name, server_properties


def properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_the_container_has_every_setting_of_the_embedded_broker() -> None:
    embedded = properties(server_properties(40_001, 40_002))
    environment = container_environment("localhost", 40_001)

    differing = {name for name, value in embedded.items() if environment.get(environment_name(name)) != value}
    # The addresses differ, and the image has its own folder for data.
    assert differing == {"listeners", "advertised.listeners", "controller.quorum.voters", "log.dirs"}
    assert SETTINGS.keys() <= embedded.keys()
    assert environment.keys() <= {environment_name(name) for name in embedded}


def test_the_container_advertises_the_outer_address() -> None:
    environment = container_environment("docker.example", 40_001)

    assert environment["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://docker.example:40001"
    assert environment["KAFKA_LISTENERS"].startswith("PLAINTEXT://0.0.0.0:40001,")


def test_the_embedded_broker_listens_on_this_machine_only() -> None:
    listeners = properties(server_properties(40_001, 40_002))["listeners"]

    assert re.findall(r"://([^:]*):(\d+)", listeners) == [("127.0.0.1", "40001"), ("127.0.0.1", "40002")]


@pytest.mark.parametrize("topic", ["offsets.topic", "transaction.state.log", "share.coordinator.state.topic"])
def test_internal_topics_fit_on_one_node(topic: str) -> None:
    assert SETTINGS[f"{topic}.replication.factor"] == "1"
    assert int(SETTINGS[f"{topic}.num.partitions"]) < 10
    assert SETTINGS.get(f"{topic}.min.isr", "1") == "1"
