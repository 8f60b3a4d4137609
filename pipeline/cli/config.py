"""`forks config`: write a commented configuration, show the one in force, check a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.command import Command
from pipeline.cli.options import ConfigFile, ConfigOptions, Json, group_options
from pipeline.cli.output import print_json, write_new
from pipeline.errors import ConfigError, StorageError

app = typer.Typer(
    help="The configuration: write a file to begin with, show every setting in force, check a file.",
    no_args_is_help=True,
)


@app.command(cls=Command, epilog="Example: forks config init --out forks.toml")
def init(
    out: Annotated[
        Path | None, typer.Option(help="The file to write, which must not exist.", show_default="printed")
    ] = None,
) -> None:
    """Write a configuration file with the settings that are set most, a line each, all commented out."""
    from pipeline.tools.config.template import template

    if write_new(out, template(), StorageError):
        typer.echo(f"{out} is written", err=True)


@app.command(cls=Command, epilog="Example: forks config show --config forks.toml --json")
@group_options
def show(options: ConfigOptions, json: Json = False) -> None:
    """Show every setting that is in force, and where it comes from: flag, environment, file or default.

    Settings of clients are masked, since any may be a secret.
    """
    from pipeline.config.origins import Origins, effective
    from pipeline.tools.config.render import as_objects, render

    settings = effective(options.load(), Origins(options.file, options.flags))
    if json:
        print_json({"settings": as_objects(settings)})
    else:
        typer.echo(render(settings))


@app.command(cls=Command, epilog="Example: forks config check --config forks.toml")
def check(config: ConfigFile = None, json: Json = False) -> None:
    """Check a configuration as a worker does when it starts, without a broker; exit with 2 if refused."""
    from pipeline.config.loader import load
    from pipeline.config.origins import DEFAULT_FILE
    from pipeline.config.topics import topics_of
    from pipeline.kafka.registry import decoders_of
    from pipeline.model.cost import cost_warning
    from pipeline.model.factory import ModelFactory

    try:
        settings = load(config)
        decoders_of(topics_of(settings))
        warning = cost_warning(ModelFactory(settings).learners)
    except ConfigError as error:
        if json:
            print_json({"ok": False, "errors": str(error).split("\n       "), "warnings": []})
            raise typer.Exit(ConfigError.exit_code) from error
        raise
    if json:
        print_json({"ok": True, "errors": [], "warnings": [] if warning is None else [warning]})
    else:
        file = config or DEFAULT_FILE
        if warning is not None:
            typer.echo(f"warning: {warning}", err=True)
        typer.echo(f"{file} is as it should be" if file.is_file() else "there is no file: defaults are used")
