"""`forks topics`: create the topics, and check their settings."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.command import Command
from pipeline.cli.options import ConfigOptions, Json, group_options, kafka_options
from pipeline.cli.output import print_json
from pipeline.errors import ConfigError, TopicError
from pipeline.kafka.access.rights import Role

if TYPE_CHECKING:
    from pipeline.config.settings import Config
    from pipeline.config.topics import Topics
    from pipeline.kafka.access.connection import Admin

app = typer.Typer(
    help="The topics: create them, check them, and say who may do what with them.", no_args_is_help=True
)


@app.command(
    cls=Command,
    epilog="Example: forks topics create --bootstrap 127.0.0.1:9092 --partitions 8 --replication 3",
)
@kafka_options
def create(
    options: ConfigOptions,
    partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of every topic. Each partition learns from its own users.")
    ] = 1,
    replication: Annotated[
        int | None, typer.Option(min=1, help="Replicas of every partition.", show_default="the brokers' own")
    ] = None,
    json: Json = False,
) -> None:
    """Create the topics that are missing, then check all of them."""
    from pipeline.config.topics import topics_of
    from pipeline.kafka.access.connection import Admin
    from pipeline.kafka.topics import BROKER_DEFAULT
    from pipeline.kafka.topics import create as create_missing

    settings = options.load()
    topics = topics_of(settings)
    client = Admin(settings.kafka)
    created = create_missing(client, topics, partitions, replication or BROKER_DEFAULT)
    if not json:
        for name in topics.all:
            typer.echo(f"{name}: {'created' if name in created else 'was there already'}")
        typer.echo(settings.sharing.describe(partitions))
    _report(client, settings, topics, json, created)


@app.command(cls=Command, epilog="Example: forks topics check --prefix prod. --json")
@kafka_options
def check(options: ConfigOptions, json: Json = False) -> None:
    """Show how the topics differ from what the pipeline needs; exit with 4 if it could not run with them."""
    from pipeline.config.topics import topics_of
    from pipeline.kafka.access.connection import Admin

    settings = options.load()
    _report(Admin(settings.kafka), settings, topics_of(settings), json, [])


@app.command(
    cls=Command,
    epilog="""
Examples:

    forks topics acls --principal User:forks --role worker

    forks topics acls --principal User:auditor --role auditor --create
""",
)
@group_options
def acls(
    *,
    principal: Annotated[str, typer.Option(help="Who gets the rights, as Kafka names it: User:forks.")],
    role: Annotated[Role, typer.Option(help="Role of the principal.")],
    options: ConfigOptions,
    create: Annotated[
        bool, typer.Option("--create", help="Grant them. Without it, nothing is connected to or changed.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the rights that a role needs on a cluster with ACLs, as commands of Kafka, or grant them."""
    from pipeline.config.topics import topics_of
    from pipeline.kafka.access.rights import acl_options, rights

    if not principal.startswith("User:") or principal == "User:":
        raise ConfigError(f"--principal {principal}: Kafka names principals with their type, like User:forks")
    settings = options.load()
    wanted = rights(role, settings, topics_of(settings))
    if create:
        from pipeline.kafka.access.authorization import grant
        from pipeline.kafka.access.connection import Admin

        grant(Admin(settings.kafka), principal, wanted)
    if json:
        print_json(
            {"principal": principal, "created": create, "rights": [right._asdict() for right in wanted]}
        )
    elif create:
        for right in wanted:
            typer.echo(f"{principal}: {right}")
    else:
        server = shlex.quote(settings.kafka.bootstrap)
        for words in acl_options(wanted):
            allow = shlex.join(["--allow-principal", principal, *words])
            typer.echo(f"kafka-acls.sh --bootstrap-server {server} --add {allow}")


def _report(client: Admin, config: Config, topics: Topics, json: bool, created: list[str]) -> None:
    from pipeline.kafka.topics import check as find_differences
    from pipeline.kafka.topics import needs_of

    differences = find_differences(client, topics, needs_of(config, topics))
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
