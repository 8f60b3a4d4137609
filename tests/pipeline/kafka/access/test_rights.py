"""The rights of each role, and how they are printed."""

from __future__ import annotations

import json
import shlex

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import ConfigError
from pipeline.kafka.access.rights import Resource, Right, Role, acl_options, rights
from tests.support.live_tables import STREAM


def needed(role: Role, **sections: object) -> list[Right]:
    config = Config.model_validate(sections)
    return rights(role, config, topics_of(config))


@pytest.mark.parametrize("role", Role)
def test_no_right_is_named_twice(role: Role) -> None:
    found = needed(role, sharing={"interval": 5}, labels={"policy": "margin"})
    assert len(found) == len(set(found))


def test_a_worker_reads_and_writes_what_its_settings_ask_for() -> None:
    shared, requests = (
        Right("Read", Resource.TOPIC, "shared"),
        Right("Write", Resource.TOPIC, "label-requests"),
    )
    config = Config()
    assert not {shared, requests} & set(needed(Role.WORKER, sharing={"interval": "off"}))
    assert shared in needed(Role.WORKER)
    assert shared in needed(Role.WORKER, sharing={"interval": 5})
    one, two = (rights(Role.WORKER, config, topics_of(config), partitions) for partitions in (1, 2))
    assert shared not in one
    assert shared in two
    assert requests in needed(Role.WORKER, labels={"policy": "random"})


def test_only_workers_and_operators_write_outputs() -> None:
    written = Right("Write", Resource.TOPIC, "outcomes")
    assert {role for role in Role if written in needed(role)} == {Role.WORKER, Role.OPERATOR}


def test_a_follower_reads_state_records_outcomes_and_live_tables_and_writes_nothing() -> None:
    config = Config(stream=STREAM)
    topics = topics_of(config)
    found = rights(Role.FOLLOWER, config, topics)
    assert {right.operation for right in found} == {"Read", "Describe", "DescribeConfigs"}
    read = {right.name for right in found if right.operation == "Read"}
    assert read == {topics.outcomes, topics.checkpoints, *topics.tables}
    assert topics.tables


def test_options_of_one_resource_are_together() -> None:
    topic = Right("Read", Resource.TOPIC, "a"), Right("Write", Resource.TOPIC, "a")
    prefixed = Right("Write", Resource.TRANSACTIONAL_ID, "x-", prefixed=True)
    assert acl_options([topic[0], prefixed, topic[1]]) == [
        ["--operation", "Read", "--operation", "Write", "--topic", "a"],
        ["--operation", "Write", "--transactional-id", "x-", "--resource-pattern-type", "prefixed"],
    ]


def test_commands_are_printed_without_a_broker() -> None:
    command = ["topics", "acls", "--principal", "User:forks", "--role", "worker", "--prefix", "p."]
    lines = CliRunner().invoke(app, command).stdout.splitlines()
    assert all(line.startswith("kafka-acls.sh --bootstrap-server 127.0.0.1:9092 --add") for line in lines)
    assert all("User:forks" in shlex.split(line) for line in lines)
    listed = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert not listed["created"]
    found = [Right(**right) for right in listed["rights"]]
    assert found == needed(Role.WORKER, kafka={"prefix": "p."})


def test_a_principal_without_its_type_is_refused() -> None:
    found = CliRunner().invoke(app, ["topics", "acls", "--principal", "forks", "--role", "reader"])
    assert isinstance(found.exception, ConfigError)
    assert "User:forks" in str(found.exception)
