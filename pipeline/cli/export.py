"""`forks export`: write predictions or outcomes as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pipeline.cli.failures import STOPPED
from pipeline.cli.options import ConfigOptions, Json, kafka_options
from pipeline.cli.output import print_json
from pipeline.extras import require

EPILOG = """
Examples:

    forks export outcomes --to outcomes

    duckdb -c "select day, avg(loss) from 'outcomes/**/*.parquet' group by day order by day"
"""


@kafka_options
def export(
    *,
    what: Annotated[
        Literal["predictions", "outcomes"], typer.Argument(help="Which records.", show_default=False)
    ],
    to: Annotated[Path, typer.Option(help="The folder; a former export there is continued.")],
    options: ConfigOptions,
    json: Json = False,
) -> None:
    """Write the committed records as Parquet files, by day of the event and partition, each record once.

    Run it again to add what was committed since, also after it was killed. Workers may run.
    """
    require("to write Parquet files", "polars")
    from threading import Event

    from pipeline.cli.signals import stop_on_signals
    from pipeline.tools.export.exporting import Export
    from pipeline.tools.terminal import progress

    settings = options.load()
    work = Export(settings, what, to)
    stop = Event()
    with stop_on_signals(stop.set), progress("export", work.total) as update:
        summary = work.run(stop.is_set, update)
    if json:
        print_json(summary)
    else:
        typer.echo(
            f"{summary.records:,} {what} exported to {to}, which has {summary.total:,} in "
            f"{summary.files:,} files"
        )
        if summary.deleted_offsets:
            typer.echo(f"{summary.deleted_offsets:,} offsets had been deleted before they were exported")
    if not summary.complete:
        typer.echo("stopped; run the command again to continue", err=True)
        raise typer.Exit(STOPPED)
