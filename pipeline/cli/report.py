"""`forks report`: sum up a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.options import Bootstrap, ConfigFile, Prefix
from pipeline.cli.output import print_json
from pipeline.extras import install_hint, is_installed, require

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
        str, typer.Option(help="A line below the picture, for example the source of the data.")
    ] = "",
    window: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Labelled events in a window of mistakes over time.",
            show_default="a hundredth of all",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="First items of slates that count in NDCG and hit rate.")
    ] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Sum up a run from its topics: counts of all cases, mistakes, AUC, and those of simpler methods.

    Every labelled event counts, from the first on. The command only reads, and a worker may run meanwhile.
    """
    from rich.console import Console

    from pipeline.config.loader import load
    from pipeline.tools.report import render, summarize

    if out is not None:
        require("to draw the picture of --out", "matplotlib")
        from pipeline.tools.report.picture import check_format, draw

        check_format(out)
    settings = load(config, {"kafka.bootstrap": bootstrap, "kafka.prefix": prefix})
    with _progress() as progress:
        found = summarize(
            settings.kafka,
            stream=settings.stream,
            registry=settings.registry,
            window=window,
            top=top,
            progress=progress,
        )
    if json:
        print_json(found)
    else:
        Console(highlight=False).print(render(found, settings.stream))
    if out is not None:
        if found.labelled:
            draw(found, out, note)
            typer.echo(f"the picture is in {out}", err=True)
        else:
            typer.echo(f"{out} was not drawn: there is no labelled event yet", err=True)
    elif not is_installed("matplotlib"):
        typer.echo(
            f"note: no pictures, since matplotlib is not installed. {install_hint('matplotlib')}", err=True
        )


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show how much of the topics has been read.

    Yields
    ------
    callable
        To be called with the numbers of records read and of all records.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        reading = bar.add_task("reading", total=None)
        yield lambda done, total: bar.update(reading, completed=done, total=total)
