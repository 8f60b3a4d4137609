"""`forks synth`: write invented data for tests and trying out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.output import print_json
from pipeline.extras import require
from pipeline.sources.synth.size import InventedStream, Size

SIZE = Size()

EPILOG = """
Examples:

    forks synth --out data

    forks synth --out large --events 1000000 --users 7000 --videos 10000 --days 63

    forks synth --out fashions --days 60 --drift 10

    forks synth --stream deliveries --out orders

Then: forks replay data, or for deliveries, with stream = "orders/deliveries.toml" in forks.toml, forks replay
orders/deliveries.jsonl
"""


def synth(
    *,
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    stream: Annotated[
        InventedStream,
        typer.Option(help="kuairec: plays of videos. deliveries: orders, and the minutes until they arrive."),
    ] = "kuairec",
    events: Annotated[int, typer.Option(min=1, help="Plays or orders.")] = SIZE.events,
    users: Annotated[int, typer.Option(min=1, help="Users, or couriers.")] = SIZE.users,
    videos: Annotated[int, typer.Option(min=1, help="Videos, or restaurants.")] = SIZE.videos,
    days: Annotated[
        int, typer.Option(min=1, max=3_650, help="Days, from 5 July 2020 or 1 March 2026 on.")
    ] = SIZE.days,
    seed: Annotated[
        int, typer.Option(min=0, help="The same seed and sizes give the same files.")
    ] = SIZE.seed,
    drift: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="How fast tastes, videos, couriers and restaurants change, in multiples of the default.",
        ),
    ] = SIZE.drift,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace files that this command wrote. Others are never replaced."),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Keep a folder with data, and exit with 0. Complete what a killed run left.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the rows of each file.")
    ] = False,
) -> None:
    """Invent users, videos and plays, and write them as KuaiRec's four files, in their columns.

    With --stream deliveries, invent orders that couriers bring from restaurants, one JSON object a line, and
    write them beside the definition of their stream: it predicts minutes.
    """
    require("to write CSV files", "polars")
    from pipeline.sources.synth.files import is_to_be_kept, write_files
    from pipeline.tools.terminal import waiting

    if keep and force:
        raise typer.BadParameter("--keep and --force exclude one another")
    if keep and is_to_be_kept(out, stream):
        typer.echo(f"{out} has data: nothing is written", err=True)
        if as_json:
            print_json({})
        return
    with waiting("") as status:
        rows = write_files(
            out,
            Size(events, users, videos, days, seed, drift),
            stream=stream,
            force=force or keep,
            progress=lambda name: status.update(f"Writing {out / name} ..."),
        )
    if as_json:
        print_json(rows)
        return
    for name, count in rows.items():
        typer.echo(f"{out / name}: {count:,} rows")
