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
    from pipeline.config.feature_layout import FeatureLayout
    from pipeline.config.topics import topics_of
    from pipeline.tools import terminal
    from pipeline.tools.inspect.objects import as_object, parser_of
    from pipeline.tools.inspect.reading import read
    from pipeline.tools.inspect.record_text import show
    from pipeline.tools.inspect.start import Last, parse_start

    begin = parse_start(start) if start is not None else Last(limit or DEFAULT_COUNT)
    settings = options.load()
    topics = topics_of(settings)
    parse = parser_of(what, topics)
    features = FeatureLayout.of(settings.stream, settings.features.kind).names
    messages = read(settings.kafka, topics, what.topic(topics), begin, partition, follow=follow)
    none = True
    for message in islice(messages, limit):
        none = False
        record = as_object(what, message, parse)
        if json:
            print_json(record)
        else:
            terminal.show(show(record, detail=detail, features=features))
    if none:
        typer.echo("no such record is committed", err=True)
