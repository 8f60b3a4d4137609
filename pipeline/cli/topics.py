"""`forks topics`: create the topics, and check their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.command import Command
from pipeline.cli.options import Bootstrap, ConfigFile, Json, Prefix
from pipeline.cli.output import print_json
from pipeline.errors import TopicError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from pipeline.kafka.topics import Topics

app = typer.Typer(help="The topics: create them, check them.", no_args_is_help=True)


@app.command(
    cls=Command,
    epilog="Example: forks topics create --bootstrap 127.0.0.1:9092 --partitions 8 --replication 3",
)
def create(
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of every topic. Each partition learns from its own users.")
    ] = 1,
    replication: Annotated[int, typer.Option(min=1, help="Replicas of every partition.")] = 1,
    json: Json = False,
) -> None:
    """Create the topics that are missing, then check all of them."""
    from pipeline.config.loader import load
    from pipeline.kafka.clients import client_settings
    from pipeline.kafka.topics import admin, topics_of
    from pipeline.kafka.topics import create as create_missing

    settings = load(config, {"kafka.bootstrap": bootstrap, "kafka.prefix": prefix})
    topics = topics_of(settings)
    client = admin(client_settings(settings.kafka))
    created = create_missing(client, topics, partitions, replication)
    if not json:
        for name in topics.all:
            typer.echo(f"{name}: {'created' if name in created else 'was there already'}")
    _report(client, topics, json, created)


@app.command(cls=Command, epilog="Example: forks topics check --prefix prod. --json")
def check(
    config: ConfigFile = None, bootstrap: Bootstrap = None, prefix: Prefix = None, json: Json = False
) -> None:
    """Show how the topics differ from what the pipeline needs; exit with 4 if it could not run with them."""
    from pipeline.config.loader import load
    from pipeline.kafka.clients import client_settings
    from pipeline.kafka.topics import admin, topics_of

    settings = load(config, {"kafka.bootstrap": bootstrap, "kafka.prefix": prefix})
    _report(admin(client_settings(settings.kafka)), topics_of(settings), json, [])


def _report(client: AdminClient, topics: Topics, json: bool, created: list[str]) -> None:
    from pipeline.kafka.topics import check as find_differences

    differences = find_differences(client, topics)
    fatal = any(difference.fatal for difference in differences)
    if json:
        listed = [difference._asdict() for difference in differences]
        answer = {"topics": topics.all, "created": created, "differences": listed, "usable": not fatal}
        print_json(answer)
    elif differences:
        for difference in differences:
            typer.echo(f"{'wrong' if difference.fatal else 'note'}: {difference}")
    else:
        typer.echo(f"all {len(topics.all)} topics are as they should be")
    if fatal:
        raise typer.Exit(TopicError.exit_code)
