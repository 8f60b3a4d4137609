"""The library as a distribution of its own, `library/pyproject.toml`, and its dependencies."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import forks

ROOT = Path(forks.__file__).parents[1]
CLIENT = {"httpx2", "msgspec"}
OPTIONAL = {
    "forks/adapters/river.py": {"river"},
    "forks/adapters/sklearn.py": {"sklearn"},
    "forks/client/answers.py": CLIENT,
    "forks/client/client.py": CLIENT,
}
NOT_LOADED = {
    "pipeline",
    "research",
    "confluent_kafka",
    "msgspec",
    "pydantic",
    "polars",
    "structlog",
    "river",
    "httpx2",
}


def project(file: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / file).read_text())["project"]
    return found


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", requirement, maxsplit=1)[0] for requirement in requirements}


def imported(file: Path) -> set[str]:
    """Return the top-level packages that a file imports from outside of forks and the standard library."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"forks"}


def test_its_dependencies_are_what_forks_imports() -> None:
    needed: set[str] = set()
    for file in (ROOT / "forks").rglob("*.py"):
        needed |= imported(file) - OPTIONAL.get(file.relative_to(ROOT).as_posix(), set())
    assert names(project("library/pyproject.toml")["dependencies"]) == needed


def test_the_extra_of_the_client_is_what_the_client_imports() -> None:
    needed: set[str] = set()
    for file in (ROOT / "forks/client").glob("*.py"):
        needed |= imported(file)
    assert names(project("library/pyproject.toml")["optional-dependencies"]["client"]) == needed


def test_it_agrees_with_the_component_on_version_and_dependencies() -> None:
    library, component = project("library/pyproject.toml"), project("pyproject.toml")
    assert library["version"] == component["version"]
    assert library["requires-python"] == component["requires-python"]
    assert set(library["dependencies"]) <= set(component["dependencies"])


@pytest.mark.slow
def test_it_loads_nothing_of_the_component() -> None:
    code = "import sys, forks, forks.rivals, forks.validation, forks.adapters.sklearn; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {name.partition(".")[0] for name in done.stdout.split()} & NOT_LOADED
