"""JSON on standard output, for scripts."""

from __future__ import annotations

import typer


def print_json(value: object) -> None:
    """Print a value as one line of JSON.

    Parameters
    ----------
    value
        A msgspec struct, a dataclass, or built-in objects.
    """
    from pipeline.records.encoding import encode_json

    typer.echo(encode_json(value))
