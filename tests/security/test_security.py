"""Each refusal is named within seconds, as refusals.md says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from pipeline.config.settings import Config
from pipeline.config.topics import Topics, topics_of
from pipeline.errors import AuthorizationError, BrokerError, ConfigError, DataError, StateError, TopicError
from pipeline.kafka.access.rights import Role
from pipeline.kafka.access.rights import rights as needed_rights
from tests.integration.harness import TIMEOUT
from tests.security import files, rights, trials
from tests.security.page import found, written
from tests.security.refusal import Endpoint, Refusal, refused, start
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.kafka, pytest.mark.slow]

LONGEST = 60.0
"""Seconds after which a refusal is taken to be an endless loop, also on a busy machine."""


def test_refusals_of_a_cluster_are_as_documented(cluster: Cluster, tmp_path: Path) -> None:
    tables = dict(trials.cluster_trials(cluster, tmp_path))
    for name, refusals in tables.items():
        assert found(refusals) == written(name)
        for refusal in refusals:
            assert "Traceback" not in refusal.message
            assert refusal.seconds < LONGEST, refusal
    assert {refusal.exit_code for refusal in tables["records"]} == {0}
    assert {refusal.exit_code for refusal in tables["connections"]} == {
        BrokerError.exit_code,
        ConfigError.exit_code,
    }
    for name in ("rights", "rights of a running worker"):
        assert {refusal.exit_code for refusal in tables[name]} == {AuthorizationError.exit_code}
    assert {refusal.exit_code for refusal in tables["states"]} == {StateError.exit_code}
    assert_every_right_is_needed(tables["rights"])


def test_refusals_of_files_are_as_documented(tmp_path: Path) -> None:
    refusals = list(files.refusals(tmp_path))
    assert found(refusals) == written("files")
    assert {refusal.exit_code for refusal in refusals} == {DataError.exit_code}
    assert all(refusal.seconds < LONGEST for refusal in refusals)


def test_topics_whose_settings_break_a_guarantee_are_reported(cluster: Cluster, tmp_path: Path) -> None:
    prefix = "weak-"
    topics = Topics(prefix)
    weak = {
        topics.interactions: {"retention.ms": "60000"},
        topics.labels: {"retention.ms": "864000000"},
        topics.predictions: {"min.insync.replicas": "1"},
        topics.outcomes: {"message.timestamp.type": "LogAppendTime"},
        topics.checkpoints: {"unclean.leader.election.enable": "true"},
    }
    new = [
        NewTopic(
            name, 1, 1 if name == topics.shared else 3, config=topics.settings(name) | weak.get(name, {})
        )
        for name in topics.all
    ]
    for created in cluster.admin.create_topics(new).values():
        created.result(TIMEOUT)
    log = tmp_path / "check.log"
    process = start(("topics", "check", "--json"), Endpoint(cluster.client_settings("admin"), prefix), log)
    assert process.wait(TIMEOUT) == TopicError.exit_code, log.read_text()
    answer = json.loads(log.read_text())
    assert not answer["usable"]
    differences = {(each["topic"], each["what"]): each["fatal"] for each in answer["differences"]}
    assert differences == {
        (topics.interactions, "retention.ms is 60000"): True,
        (topics.labels, "retention.ms is 864000000"): False,
        (topics.predictions, "min.insync.replicas is 1"): False,
        (topics.outcomes, "message.timestamp.type is LogAppendTime"): False,
        (topics.checkpoints, "unclean.leader.election.enable is true"): True,
        (topics.shared, "it has 1 of 3 replicas"): False,
    }


def test_topics_are_created_with_the_replicas_that_brokers_are_set_to(
    cluster: Cluster, tmp_path: Path
) -> None:
    endpoint = Endpoint(cluster.client_settings("admin"), "default-")
    assert refused("topics", ("topics", "create"), endpoint, tmp_path).exit_code == 0
    created = cluster.admin.list_topics(timeout=10.0).topics["default-outcomes"]
    assert len(created.partitions[0].replicas) == 3


def assert_every_right_is_needed(refusals: list[Refusal]) -> None:
    """Check that no role has a right without which all of its commands work."""
    for role, commands in rights.COMMANDS.items():
        for right in rights.needed(role):
            cases = [f"`forks {' '.join(command)}` without {right}" for command in commands]
            known = [case.replace(rights.PREFIX, "") for case in cases]
            assert any(refusal.case in known for refusal in refusals), right


def test_the_doctor_names_each_right_that_is_missing(cluster: Cluster, tmp_path: Path) -> None:
    prefix = "doctor-"
    endpoint = Endpoint(cluster.client_settings("admin"), prefix)
    assert refused("topics", ("topics", "create"), endpoint, tmp_path).exit_code == 0
    config = Config.model_validate({"kafka": {"prefix": prefix, "group": f"{prefix}forks"}})
    wanted = needed_rights(Role.WORKER, config, topics_of(config))
    lacking = [
        right
        for right in wanted
        if right.name in (f"{prefix}outcomes", f"{prefix}forks") and right.operation != "Write"
    ]  # a topic that may not even be described says nothing of DescribeConfigs
    assert len(lacking) == 3
    statuses = []
    for given in (wanted, [right for right in wanted if right not in lacking]):
        rights.give(cluster, given)
        log = tmp_path / "doctor.log"
        process = start(("doctor", "--json"), Endpoint(cluster.client_settings("worker"), prefix), log)
        code = process.wait(TIMEOUT)
        checks = {each["name"]: each for each in json.loads(log.read_text().splitlines()[-1])["checks"]}
        statuses.append((code, checks["rights"]["status"], checks["broker settings"]["status"]))
    assert statuses == [(0, "ok", "skipped"), (1, "failed", "skipped")]
    assert [str(right) for right in lacking if str(right) not in checks["rights"]["found"]] == []
