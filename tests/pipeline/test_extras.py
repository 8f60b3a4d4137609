"""Optional packages: which extra brings them, and what happens without them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import ConfigError
from pipeline.extras import EXTRA_OF_PACKAGE, require
from pipeline.features.tables import Tables
from tests.support.small_install import forks_without_extras

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[\w-]+", requirement) for requirement in requirements)
    return {match[0] for match in found if match}


def test_every_package_of_an_extra_is_known_by_the_extra() -> None:
    core = names(PROJECT["dependencies"])  # some have extras of their own
    by_project = {
        package: extra for extra in EXTRAS if extra != "all" for package in names(EXTRAS[extra]) - core
    }
    assert by_project == EXTRA_OF_PACKAGE


def test_the_extra_all_is_all_other_extras() -> None:
    [requirement] = EXTRAS["all"]
    name, extras = requirement.rstrip("]").split("[")
    assert name == PROJECT["name"]
    assert sorted(extras.split(",")) == sorted(EXTRAS.keys() - {"all"})


def test_the_core_needs_no_package_of_an_extra() -> None:
    assert names(PROJECT["dependencies"]).isdisjoint(EXTRA_OF_PACKAGE)


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigError) as raised:
        require("to read tables", "polars", "numpy", alternative="Or do without tables.")
    assert str(raised.value) == (
        "polars is not installed, but needed to read tables. "
        'Install it with: pip install "forks-stream[tables]". Or do without tables.'
    )


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["demo"], "polars and matplotlib are", "report,tables"),
        (["synth", "--out", "data"], "polars is", "tables"),
        (["replay", "data"], "polars is", "tables"),
        (["evaluate", "data"], "polars is", "tables"),
        (["report", "--out", "run.svg"], "matplotlib is", "report"),
        (["broker", "start"], "psutil is", "broker"),
        (["broker", "stop"], "psutil is", "broker"),
        (["broker", "status"], "psutil is", "broker"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(
    arguments: list[str], package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for optional in EXTRA_OF_PACKAGE:
        monkeypatch.setitem(sys.modules, optional, None)
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, ConfigError)
    assert f"{package} not installed" in str(error)
    assert f'pip install "forks-stream[{extra}]"' in str(error)


def test_a_table_needs_polars_and_no_table_needs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    assert Tables().columns == 0
    with pytest.raises(ConfigError, match=r"read the table .*users\.csv\..*forks-stream\[tables\]"):
        Tables(users=tmp_path / "users.csv")


def test_the_error_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        forks_without_extras("replay", "data"), capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == ConfigError.exit_code
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("error: polars is not installed, but")


def test_rivers_adapter_names_its_extra() -> None:
    code = "import sys; sys.modules['river'] = None; import forks.adapters.river"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "forks-stream[river]"' in done.stderr.splitlines()[-1]
