"""What a command has found, on standard output: JSON for scripts, or text for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
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


def print_found(found: Found, render: Callable[[Found], RenderableType], *, json: bool) -> None:
    """Print what was found as JSON, or rendered as text."""
    from pipeline.tools.terminal import show

    if json:
        print_json(found)
    else:
        show(render(found))
