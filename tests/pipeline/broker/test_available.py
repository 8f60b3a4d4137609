"""Which broker `available_broker` chooses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from testcontainers.core import container as testcontainers_container
from testcontainers.core.config import ConnectionMode

from pipeline.broker import available, container
from pipeline.broker.available import available_broker
from pipeline.broker.container import ApacheKafka
from pipeline.broker.settings import VERSION, container_environment
from pipeline.errors import ConfigError


class EngineStub:
    """The part of testcontainers' client that a container needs before its start."""

    def get_connection_mode(self) -> ConnectionMode:
        return ConnectionMode.docker_host

    def host(self) -> str:
        return "localhost"


@contextmanager
def embedded_stub() -> Iterator[str]:
    yield "embedded:1"


@pytest.fixture(autouse=True)
def no_address_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORKS_KAFKA__BOOTSTRAP", raising=False)
    monkeypatch.delenv("FORKS_KAFKA__BOOTSTRAP_FILE", raising=False)
    monkeypatch.setattr(available, "temporary_broker", embedded_stub)


def test_the_address_in_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKS_KAFKA__BOOTSTRAP", "kafka.example:9092")

    with available_broker() as bootstrap:
        assert bootstrap == "kafka.example:9092"


def test_the_address_may_be_in_a_file_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bootstrap").write_text("kafka.example:9092\n")
    monkeypatch.setenv("FORKS_KAFKA__BOOTSTRAP_FILE", str(tmp_path / "bootstrap"))

    with available_broker() as bootstrap:
        assert bootstrap == "kafka.example:9092"

    monkeypatch.setenv("FORKS_KAFKA__BOOTSTRAP", "other.example:9092")
    with pytest.raises(ConfigError, match="both FORKS_KAFKA__BOOTSTRAP and"), available_broker():
        pass


def test_docker_is_used_when_its_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    def start(kafka: ApacheKafka) -> ApacheKafka:
        steps.append("start")
        return kafka

    monkeypatch.setattr(available, "docker_answers", lambda: True)
    monkeypatch.setattr(testcontainers_container, "DockerClient", EngineStub)
    monkeypatch.setattr(ApacheKafka, "start", start)
    monkeypatch.setattr(ApacheKafka, "stop", lambda _: steps.append("stop"))

    with available_broker() as bootstrap:
        assert bootstrap.startswith("localhost:")
        steps.append("use")
    assert steps == ["start", "use", "stop"]


def test_without_an_engine_one_log_line_says_why_the_embedded_broker_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")

    with capture_logs() as lines, available_broker() as bootstrap:
        assert bootstrap == "embedded:1"
    [line] = lines
    assert line["event"] == "no Docker engine is at hand, and none is needed: using the embedded broker"
    assert "DockerException" in line["reason"]


def test_the_container_has_our_settings_and_the_same_port_inside_and_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(testcontainers_container, "DockerClient", EngineStub)
    monkeypatch.setattr(container, "free_ports", lambda count: [40_001][:count])

    kafka = ApacheKafka()

    assert kafka.image == f"apache/kafka:{VERSION}"
    assert kafka.bootstrap == "localhost:40001"
    assert kafka.env == container_environment("localhost", 40_001)
    assert kafka.ports == {"40001": 40_001}
