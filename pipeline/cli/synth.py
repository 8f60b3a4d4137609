"""`forks synth`: write invented data for tests and trying out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.output import print_json
from pipeline.extras import require
from pipeline.sources.synth.size import Size

SIZE = Size()

EPILOG = """
Examples:

    forks synth --out data

    forks synth --out large --events 1000000 --users 7000 --videos 10000 --days 63

    forks synth --out fashions --days 60 --drift 10

Then: forks replay data
"""


def synth(
    *,
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    events: Annotated[int, typer.Option(min=1, help="Rows of small_matrix.csv.")] = SIZE.events,
    users: Annotated[int, typer.Option(min=1, help="Users.")] = SIZE.users,
    videos: Annotated[int, typer.Option(min=1, help="Videos.")] = SIZE.videos,
    days: Annotated[int, typer.Option(min=1, max=3_650, help="Days from 5 July 2020 on.")] = SIZE.days,
    seed: Annotated[
        int, typer.Option(min=0, help="The same seed and sizes give the same files.")
    ] = SIZE.seed,
    drift: Annotated[
        float, typer.Option(min=0.0, help="How fast tastes and videos change, in multiples of the default.")
    ] = SIZE.drift,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the rows of each file.")
    ] = False,
) -> None:
    """Invent users, videos and plays, and write them as KuaiRec's four files, in their columns."""
    require("to write CSV files", "polars")
    from rich.console import Console

    from pipeline.sources.synth.files import write_files

    with Console(stderr=True).status("") as status:
        rows = write_files(
            out,
            Size(events, users, videos, days, seed, drift),
            force=force,
            progress=lambda name: status.update(f"Writing {out / name} ..."),
        )
    if as_json:
        print_json(rows)
        return
    for name, count in rows.items():
        typer.echo(f"{out / name}: {count:,} rows")
