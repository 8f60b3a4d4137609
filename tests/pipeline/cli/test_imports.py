"""Help and completion import little, so that they answer at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from pipeline.cli import app
from pipeline.cli.command import Command

HEAVY = {
    *("confluent_kafka", "llvmlite", "matplotlib", "msgspec", "numba", "numpy", "orjson", "polars", "psutil"),
    *("pydantic_settings", "safetensors", "scipy", "structlog"),
}
"""Pydantic is not among them: Typer uses it. The settings would bring pydantic_settings."""
PROGRAM = """
import json, sys
from pipeline.cli import app
for arguments in json.loads(sys.argv[1]):
    try:
        app(arguments, prog_name="forks")
    except SystemExit as end:
        assert not end.code
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""
"""Runs command lines one after the other, and then says what was imported."""


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group by the words that call it."""
    yield path, command
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from commands(child, *path, name)


ALL = dict(commands(get_command(app)))


def imported_by(*command_lines: list[str], **environment: str) -> tuple[str, set[str]]:
    """What `forks` prints, and the packages that it imports."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(command_lines)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    output, packages = imported_by(*([*path, "--help"] for path in ALL))
    assert output.count("Usage: forks") == len(ALL)
    assert packages & HEAVY == set()


def test_completion_imports_nothing_heavy() -> None:
    output, packages = imported_by([], _FORKS_COMPLETE="complete_bash", COMP_WORDS="forks re", COMP_CWORD="1")
    assert output.split() == ["replay", "report", "rebuild", "redrive"]
    assert packages & HEAVY == set()


def test_every_command_sets_up_logging_when_it_runs() -> None:
    for path, command in ALL.items():
        assert isinstance(command, TyperGroup | Command), path


@pytest.mark.parametrize("path", [path for path, command in ALL.items() if isinstance(command, Command)])
def test_every_help_has_an_example(path: tuple[str, ...]) -> None:
    assert f"forks {' '.join(path)}" in (ALL[path].epilog or "")
