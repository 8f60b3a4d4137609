"""`forks replay`: send the interactions and labels of a file to Kafka in the order of their time."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.failures import STOPPED
from pipeline.cli.logs import configure
from pipeline.cli.options import ConfigOptions, Labels, kafka_options
from pipeline.cli.output import print_json
from pipeline.cli.signals import stop_on_signals
from pipeline.errors import ConfigError
from pipeline.extras import require
from pipeline.sources.kuairec_files import DEFAULT_MATRIX

if TYPE_CHECKING:
    from pipeline.sources.replay import Summary

EPILOG = """
Examples:

    forks replay data

    forks replay KuaiRec/data --matrix big_matrix.csv --limit 100000 --prefix test-

    forks replay data --speed 60

    forks replay deliveries.parquet --config deliveries.toml --label-delay 30m

    forks replay data --resume
"""

DEFAULT_DELAY = "10s"
"""How long after its event a label comes, where a table lacks its time."""


def parse_speed(text: str) -> float | None:
    """Parse a speed.

    Parameters
    ----------
    text
        A multiple of real time, or "max".

    Returns
    -------
    float or None
        The multiple; None for "max".

    Raises
    ------
    typer.BadParameter
        The text is neither.

    Examples
    --------
    >>> parse_speed("60"), parse_speed("max")
    (60.0, None)
    """
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise typer.BadParameter(f"{text!r} is neither a number above 0, such as 60, nor max")
    return speed


def parse_delay(text: str) -> int:
    """Parse a duration; return milliseconds.

    Raises
    ------
    typer.BadParameter
        The text is no duration.

    Examples
    --------
    >>> parse_delay("90s")
    90000
    """
    from pipeline.config.durations import milliseconds

    try:
        return milliseconds(text)
    except ValueError as error:
        raise typer.BadParameter(f"--label-delay {text!r}: {error}") from error


@kafka_options
def replay(
    *,
    path: Annotated[
        Path,
        typer.Argument(
            help="A CSV in KuaiRec's columns, or a folder that holds one. With a definition of another "
            "stream, a table of its events: text, JSON or Parquet.",
            show_default=False,
        ),
    ],
    matrix: Annotated[str, typer.Option(help="The CSV to read if PATH is a folder.")] = DEFAULT_MATRIX,
    label_delay: Annotated[
        str,
        typer.Option(help="How long after its interaction a label comes, where a table lacks its time."),
    ] = DEFAULT_DELAY,
    labels: Labels = None,
    speed: Annotated[str, typer.Option(help="Multiple of real time, such as 60; or max.")] = "max",
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of events, with their labels.", show_default="all"),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue after the records of this replay that the topics hold already."
        ),
    ] = False,
    patience: Annotated[
        float,
        typer.Option(min=1, help="Seconds without any acknowledgement by Kafka until it fails."),
    ] = 120.0,
    options: ConfigOptions,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Send interactions at their time, and each one's label when its play has ended, in the order of time.

    Ctrl-C stops the replay once all records that were sent are acknowledged. With --resume it continues
    where it stopped, also after a crash.
    """
    configure()
    multiple, delay = parse_speed(speed), parse_delay(label_delay)
    require("to read the events to replay", "polars")

    from pipeline.kafka.registry import registry_of
    from pipeline.sources.kuairec import read_events
    from pipeline.sources.replay import Replay
    from pipeline.sources.rows import read_rows
    from pipeline.tools.terminal import notice, progress, waiting

    settings = options.load()
    kafka, stream = settings.kafka, settings.stream
    registry = registry_of(settings.registry) if stream.needs_registry else None
    with waiting(f"Reading {path} ..."):
        if stream.is_kuairec:
            refuse_labels(labels)
            events = read_events(path, matrix)
        else:
            events = read_rows(path, stream, delay, labels)
        if events.taken_for:
            notice(f"note: {events.taken_for}")
        run = Replay(
            events.first(limit), kafka, stream=stream, registry=registry, resume=resume, ack_timeout=patience
        )
    if run.there_before and not resume:
        typer.echo(
            f"note: the topics hold {run.there_before:,} records already; --resume continues after them",
            err=True,
        )
    stop = Event()
    with stop_on_signals(stop.set), progress("replay", len(run.order)) as update:
        summary = run.run(multiple, stop, update)
    if not json:
        typer.echo(describe(summary))
    if not summary.complete:
        typer.echo(f"stopped; continue with: {shlex.join(command_to_resume())}", err=True)
    if json:
        print_json(summary)
    if not summary.complete:
        raise typer.Exit(STOPPED)


def refuse_labels(labels: Path | None) -> None:
    """Refuse a table of labels where KuaiRec's own files are read, whose rows have them."""
    if labels is not None:
        raise ConfigError(
            f"--labels {labels}: rows of KuaiRec have their labels, and no definition says where"
        )


def describe(summary: Summary) -> str:
    """Return the summary as text of several lines."""
    lines = [
        describe_rows(summary.rows, summary.skipped),
        f"there before   {summary.there_before:,} records",
        f"sent           {summary.interactions:,} interactions and {summary.labels:,} labels "
        f"of {summary.events:,} events",
        f"time           {summary.seconds:.1f} s, {summary.events_per_s:,.0f} events/s",
    ]
    return "\n".join(lines)


def describe_rows(rows: int, skipped: Mapping[str, int]) -> str:
    """Return two lines on how many rows a table has, and how many of them cannot be used.

    Examples
    --------
    >>> print(describe_rows(5_000, {"no_time": 2}))
    rows read      5,000
    rows skipped   2 (2 no time)
    """
    from pipeline.sources.kuairec import describe_skipped

    reasons = describe_skipped(skipped)
    total = f"{sum(skipped.values()):,}" + (f" ({reasons})" if reasons else "")
    return f"rows read      {rows:,}\nrows skipped   {total}"


def command_to_resume() -> list[str]:
    """Return the words of the command that continues where this one was stopped."""
    given = sys.argv[1:]
    return ["forks", *given, *([] if "--resume" in given else ["--resume"])]
