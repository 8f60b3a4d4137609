"""`forks report`: a run summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pipeline.cli.options import Bootstrap, ConfigFile, Prefix
from pipeline.config.loader import load

EPILOG = """
Examples:

    forks report --prefix prod. --out mistakes.svg

    forks report --json | jq .mistakes
"""


def report(
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    out: Annotated[
        Path | None, typer.Option(help="Draw mistakes over events into this .svg or .png file.")
    ] = None,
    note: Annotated[
        str, typer.Option(help="A line below the picture, say on where the data come from.")
    ] = "",
    window: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Labelled events in a window of mistakes over time.",
            show_default="a hundredth of all",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Sum up a run from its topics: every case, mistakes, AUC, and what simpler methods would have done.

    Counts every labelled event from the first on. It only reads, and a worker may run meanwhile.
    """
    from pipeline.tools.report import check_format, draw, render, summarize  # noqa: PLC0415 - see below

    # matplotlib and scipy.stats take a second to load: only this command is to wait for them.
    if out is not None:
        check_format(out)
    settings = load(config, {"kafka.bootstrap": bootstrap, "kafka.prefix": prefix})
    with _progress() as progress:
        found = summarize(settings.kafka, window=window, progress=progress)
    if json:
        typer.echo(msgspec.json.encode(found))
    else:
        Console(highlight=False).print(render(found))
    if out is not None:
        if found.labelled:
            draw(found, out, note)
            typer.echo(f"the picture is in {out}", err=True)
        else:
            typer.echo(f"{out} was not drawn: there is no labelled event yet", err=True)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show how much of the topics has been read."""
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        reading = bar.add_task("reading", total=None)
        yield lambda done, total: bar.update(reading, completed=done, total=total)
