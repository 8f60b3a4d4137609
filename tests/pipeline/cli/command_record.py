"""Description of all commands, to compare with one that was recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from pipeline.cli import app
from pipeline.errors import ForksError


def describe() -> Iterator[dict[str, Any]]:
    """Yield help texts, examples and parameters of all commands, and exit codes by error."""
    yield from _commands(typer.main.get_command(app), "forks")
    yield from _exit_codes(ForksError)


def _commands(command: Any, name: str) -> Iterator[dict[str, Any]]:
    yield {"name": name, "help": command.help}
    yield {"name": name, "epilog": command.epilog}
    for parameter in command.params:
        if parameter.name != "help":
            options = " ".join([*parameter.opts, *parameter.secondary_opts])
            yield {"name": f"{name} {options}", **_parameter(parameter)}
    for part, child in getattr(command, "commands", {}).items():
        yield from _commands(child, f"{name} {part}")


def _parameter(parameter: Any) -> dict[str, Any]:
    default = parameter.default
    plain = default if isinstance(default, str | int | float | None) else str(default)
    return {
        "help": getattr(parameter, "help", None),
        "type": _type_name(parameter.type_descriptor.annotation),
        "default": None if callable(default) else plain,
        "required": parameter.required,
        "repeatable": parameter.multiple,
    }


def _type_name(annotation: Any) -> str:
    """Return a name without modules, which may change."""
    return annotation.__name__ if isinstance(annotation, type) else re.sub(r"\w+\.", "", str(annotation))


def _exit_codes(error: type[ForksError]) -> Iterator[dict[str, Any]]:
    yield {"name": error.__name__, "exit_code": error.exit_code}
    for each in error.__subclasses__():
        if each.__module__ == ForksError.__module__:  # others are there only where they were imported
            yield from _exit_codes(each)
