"""`forks redrive`: send dead letters back to their inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.failures import STOPPED
from pipeline.cli.options import ConfigOptions, Json, group_options
from pipeline.cli.output import print_json
from pipeline.errors import ConfigError
from pipeline.records.names import Fault

if TYPE_CHECKING:
    from pipeline.tools.redrive.redriving import Summary

EPILOG = """
Examples:

    forks redrive --reason future --dry-run

    forks redrive --reason invalid --since 2026-03-01T08:00Z --json
"""


@group_options
def redrive(
    *,
    options: ConfigOptions,
    reason: Annotated[
        list[Fault] | None, typer.Option(help="Send those with this fault only (repeatable).")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Send those written at this time or later, in ISO 8601 (UTC).")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Send those written before this time.")] = None,
    offsets: Annotated[
        str | None, typer.Option(help="Send those at these offsets of dead-letters, such as 120-180.")
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Send those of this partition only.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also those whose message was sent back before, and failed again.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them, and send nothing.")] = False,
    json: Json = False,
) -> None:
    """Send dead letters back to their input, after the cause was mended. Workers may run.

    Each dead letter is sent once, also if the command is killed and run again, or run with other options.
    Key, value, headers and time are those of the original; a header names the dead letter.
    """
    from threading import Event

    from pipeline.cli.signals import stop_on_signals
    from pipeline.tools.redrive.ledger import ENDLESS, Selection, parse_offsets
    from pipeline.tools.redrive.redriving import Redrive
    from pipeline.tools.terminal import progress

    begin, end = (0, ENDLESS) if offsets is None else parse_offsets(offsets)
    wanted = Selection(
        begin,
        end,
        tuple(sorted({fault.value for fault in reason or ()})),
        _time("--since", since),
        _time("--until", until),
        again,
    )
    settings = options.load()
    work = Redrive(settings, wanted, partition)
    stop = Event()
    with stop_on_signals(stop.set), progress("redrive", work.total) as update:
        summary = work.run(dry_run=dry_run, stopping=stop.is_set, progress=update)
    if json:
        print_json(summary)
    else:
        _print(summary)
    if not summary.complete:
        typer.echo("stopped; run the command again to continue", err=True)
        raise typer.Exit(STOPPED)


def _print(summary: Summary) -> None:
    for topic, counts in summary.counts.items():
        for fault, count in sorted(counts.items()):
            typer.echo(f"{topic}: {count:,} {fault}")
    verb = "would be sent back" if summary.dry_run else "sent back"
    typer.echo(f"{summary.redriven:,} {verb}")
    for count, why in (
        (summary.failed_again, "failed again after they were sent back (--again sends them once more)"),
        (summary.of_tables, "are rows of a table: load them again with `forks stream load`"),
        (summary.foreign, "name no message of these inputs"),
        (summary.lost, "are cut, and the original message is gone"),
    ):
        if count:
            typer.echo(f"{count:,} left out: they {why}")
    if summary.without_original:
        typer.echo(
            f"{summary.without_original:,} have the time of their dead letter: the original message is gone"
        )


def _time(option: str, text: str | None) -> int | None:
    from pipeline.tools.times import parse_instant

    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError:
        raise ConfigError(
            f"{option} {text}: accepted is a time like 2020-07-05 or 2020-07-05T08:00:00Z"
        ) from None
