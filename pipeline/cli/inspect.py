"""`forks inspect`: print records in readable form."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from pipeline.cli.options import ConfigOptions, kafka_options
from pipeline.cli.output import print_json
from pipeline.tools.inspect.kinds import Kind

DEFAULT_COUNT = 20

EPILOG = """
Examples:

    forks inspect dead-letters

    forks inspect outcomes --from 2020-07-05T08:00Z --limit 5 --detail

    forks inspect predictions --follow --json | jq .value.probability
"""


@kafka_options
def inspect(
    what: Annotated[Kind, typer.Argument(help="Which records.", show_default=False)],
    *,
    options: ConfigOptions,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help='An offset, -N for the last N, "beginning", or a time in ISO 8601 (UTC).',
            show_default=f"-{DEFAULT_COUNT}",
        ),
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Show this partition only.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of records, from the end without --from.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new records, until Ctrl-C.")
    ] = False,
    detail: Annotated[
        bool,
        typer.Option("--detail", "-d", help="Every field of messages, predictions, outcomes; all of shares."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Show the records that workers have written and committed, and the messages of the inputs.

    The time is the record's timestamp in Kafka: for predictions and outcomes, when the interaction happened.
    """
    from rich.console import Console

    from pipeline.config.topics import topics_of
    from pipeline.kafka.registry import decoders_of
    from pipeline.tools.inspect.objects import as_object
    from pipeline.tools.inspect.reading import read
    from pipeline.tools.inspect.start import Last, parse_start
    from pipeline.tools.inspect.text import Format, heading, show

    begin = parse_start(start) if start is not None else Last(limit or DEFAULT_COUNT)
    settings = options.load()
    topics = topics_of(settings)
    topic = what.topic(topics)
    inputs = decoders_of(topics) if what in (Kind.INTERACTIONS, Kind.LABELS) else None
    how = Format.of(settings.stream, settings.features.kind, inputs)
    parse = how.inputs.labels.parse if what is Kind.LABELS else how.inputs.interactions.parse
    found = read(settings.kafka, topics, topic, begin, partition, follow=follow)
    messages = islice(found, limit)
    console = Console(soft_wrap=True, highlight=False)
    count = 0
    for message in messages:
        if json:
            print_json(as_object(what, message, parse))
        else:
            if not count:
                console.print(heading(what, how))
            console.print(show(what, message, detail=detail, how=how))
        count += 1
    if not count:
        typer.echo("no such record is committed", err=True)
