"""`forks stream`: draft a definition, check it against messages, describe outputs, fill tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.command import Command
from pipeline.cli.failures import STOPPED
from pipeline.cli.options import ConfigFile, ConfigOptions, Json, kafka_options
from pipeline.cli.output import print_found, print_json, write_new
from pipeline.errors import ConfigError
from pipeline.extras import require

DEFAULT_COUNT = 300
DOES_NOT_FIT = 1
"""The exit code if something does not fit."""
app = typer.Typer(
    help="The definition of the stream: draft it, check it against messages, describe its outputs, fill its "
    "tables.",
    no_args_is_help=True,
)


@app.command(cls=Command, epilog="Example: forks stream init log.csv --out kuairand.toml")
def init(
    path: Annotated[
        Path,
        typer.Argument(
            help="A table of events: text with any separator, JSON or Parquet.", show_default=False
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="The stream's name.", show_default="the name of the file")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of labels.", show_default="guessed")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the events' times.", show_default="guessed"),
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="How these are written, such as '%d.%m.%Y %H:%M'.", show_default="guessed"
        ),
    ] = None,
    event_id: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the events' ids.", show_default="guessed"),
    ] = None,
    entities: Annotated[
        list[str] | None,
        typer.Option(
            "--entity",
            metavar="COLUMN",
            help="A column of ids of users or items (repeatable).",
            show_default="guessed",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write, which must not exist.", show_default="printed")
    ] = None,
) -> None:
    """Draft a definition from a table of events: to look through, edit, and check.

    What a column means is guessed from its name and values; comments say what else it may be.
    """
    require("to read a table of events", "polars")
    from pipeline.tools.stream.draft_guess import Known
    from pipeline.tools.stream.drafting import draft

    words = re.sub(r"[^a-z0-9_]+", "_", (name or path.stem).lower()).strip("_")
    known = Known(label, time, event_id, entities or (), time_format)
    text = draft(path, words if words[:1].isalpha() else f"s_{words}", known)
    if write_new(out, text, ConfigError):
        typer.echo(
            f'{out} is written. Look through it, and put stream = "{out}" into forks.toml. Then '
            f"`forks evaluate {path}` says how well its labels are predicted, without Kafka",
            err=True,
        )


@app.command(cls=Command, epilog="Example: forks stream check --config deliveries.toml --messages 1000")
@kafka_options
def check(
    *,
    messages: Annotated[
        int, typer.Option(min=1, max=100_000, help="Number of messages to read from the end of each input.")
    ] = DEFAULT_COUNT,
    options: ConfigOptions,
    json: Json = False,
) -> None:
    """Read the last messages of inputs and tables, and say what fits the definition and what does not.

    Exits with 1 if a message cannot be used, or if something does not look right.
    """
    import time

    from pipeline.config.topics import topics_of
    from pipeline.kafka.registry import decoders_of
    from pipeline.records.inputs import RawMessage
    from pipeline.tools.inspect.reading import read
    from pipeline.tools.inspect.start import Last
    from pipeline.tools.stream import Sample, render
    from pipeline.tools.stream import check as check_sample

    settings = options.load()
    topics = topics_of(settings)
    interactions, labels = (
        [RawMessage.of(message) for message in read(settings.kafka, topics, topic, Last(messages))]
        for topic in topics.inputs
    )
    tables = {
        name: [
            RawMessage.of(each) for each in read(settings.kafka, topics, topics.table(name), Last(messages))
        ]
        for name in settings.stream.tables
    }
    latest = int(time.time() * 1000) + settings.join.max_ahead
    found = check_sample(
        settings.stream,
        decoders_of(topics),
        Sample(interactions, labels, tables),
        topics.inputs,
        latest,
        join=settings.join,
    )
    print_found(found, render, json=json)
    if not found.fits:
        raise typer.Exit(DOES_NOT_FIT)


@app.command(cls=Command, epilog="Example: forks stream schema --config deliveries.toml --out schemas")
def schema(
    config: ConfigFile = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write a file for each output to.", show_default="printed"),
    ] = None,
) -> None:
    """Write the JSON Schemas of the outputs, with the stream's names of ids, labels and features."""
    import orjson

    from pipeline.config.loader import load
    from pipeline.tools.stream import schemas_of

    schemas = schemas_of(load(config).stream)
    if out is None:
        typer.echo(orjson.dumps(schemas, option=orjson.OPT_INDENT_2))
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in schemas.items():
            (out / f"{name}.schema.json").write_bytes(orjson.dumps(text, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise ConfigError(f"{out} cannot be written to: {error.strerror}") from None
    typer.echo(f"{len(schemas)} schemas are written to {out}", err=True)


@app.command(cls=Command, epilog="Example: forks stream load places places.csv --config deliveries.toml")
@kafka_options
def load(
    *,
    table: Annotated[
        str, typer.Argument(help="A table of the definition: [tables.NAME].", show_default=False)
    ],
    path: Annotated[Path, typer.Argument(help="Its rows: .csv, .parquet or .jsonl.", show_default=False)],
    options: ConfigOptions,
    json: Json = False,
) -> None:
    """Send the rows of a file to the topic of a live table, each as the newest record of its id.

    Where the definition of the table names no time, rows hold from the beginning of the stream. Exits with 1
    if a row cannot be used; the others are sent.
    """
    require("to read the rows of a table", "polars")
    from threading import Event

    from pipeline.cli.signals import stop_on_signals
    from pipeline.sources import table_rows
    from pipeline.tools.terminal import progress

    settings = options.load()
    rows = table_rows.TableRows(path, settings.stream, table)
    stop = Event()
    with stop_on_signals(stop.set), progress("load", len(rows)) as update:
        summary = table_rows.load(rows, settings.kafka, stop, update)
    if json:
        print_json(summary)
    else:
        typer.echo(f"rows read  {summary.rows:,}\nsent       {summary.sent:,}")
        for reason, count in summary.skipped.items():
            typer.echo(f"skipped    {count:,} {reason.replace('_', ' ')}")
    if summary.example is not None:
        typer.echo(f"{path}, {summary.example}", err=True)
    if not summary.complete:
        typer.echo("stopped; run the command again: a row that comes twice changes nothing", err=True)
        raise typer.Exit(STOPPED)
    if summary.skipped:
        raise typer.Exit(DOES_NOT_FIT)
