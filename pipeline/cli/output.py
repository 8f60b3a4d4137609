"""What a command has found, on standard output: JSON for scripts, or text for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from pipeline.errors import ConfigError, ForksError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

Found = TypeVar("Found")


def print_json(value: object) -> None:
    """Print a value as one line of JSON.

    Parameters
    ----------
    value
        A msgspec struct, a dataclass, or built-in objects.
    """
    from pipeline.records.encoding import encode_json

    typer.echo(encode_json(value))


def write_new(file: Path | None, text: str, unwritable: type[ForksError]) -> bool:
    """Write a text into a file, which must not exist; print it where none is named, and return False.

    `unwritable` is the error of a file that cannot be written.
    """
    if file is None:
        typer.echo(text, nl=False)
        return False
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise ConfigError(f"{file} exists already: name another file, or remove it") from None
    except OSError as error:
        raise unwritable(f"{file} cannot be written: {error.strerror}") from None
    return True


def print_found(found: Found, render: Callable[[Found], RenderableType], *, json: bool) -> None:
    """Print what was found as JSON, or rendered as text."""
    from pipeline.tools.terminal import show

    if json:
        print_json(found)
    else:
        show(render(found))
