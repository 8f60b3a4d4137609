"""`forks export`: write predictions or outcomes as Parquet files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.options import Bootstrap, ConfigFile, Json, Prefix
from pipeline.cli.output import print_json
from pipeline.extras import require

STOPPED = 130
"""The exit code after Ctrl-C."""

EPILOG = """
Examples:

    forks export outcomes --to outcomes

    duckdb -c "select day, avg(loss) from 'outcomes/**/*.parquet' group by day order by day"
"""


class Exported(StrEnum):
    """What can be exported."""

    PREDICTIONS = "predictions"
    OUTCOMES = "outcomes"


def export(
    what: Annotated[Exported, typer.Argument(help="Which records.", show_default=False)],
    to: Annotated[Path, typer.Option(help="The folder; a former export there is continued.")],
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """Write the committed records as Parquet files, by day of the event and partition, each record once.

    Run it again to add what was committed since, also after it was killed. Workers may run.
    """
    require("to write Parquet files", "polars")
    from threading import Event

    from pipeline.cli.progress import progress
    from pipeline.cli.signals import stop_on_signals
    from pipeline.config.loader import load
    from pipeline.tools.export.exporting import Export

    settings = load(config, {"kafka.bootstrap": bootstrap, "kafka.prefix": prefix})
    work = Export(settings, what.value, to)
    stop = Event()
    with stop_on_signals(stop.set), progress("export", work.total) as update:
        summary = work.run(stop.is_set, update)
    if json:
        print_json(summary)
    else:
        typer.echo(
            f"{summary.records:,} {what.value} exported to {to}, which has {summary.total:,} in "
            f"{summary.files:,} files"
        )
        if summary.deleted_offsets:
            typer.echo(f"{summary.deleted_offsets:,} offsets had been deleted before they were exported")
    if not summary.complete:
        typer.echo("stopped; run the command again to continue", err=True)
        raise typer.Exit(STOPPED)
