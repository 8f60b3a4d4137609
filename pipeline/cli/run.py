"""`forks run`: a worker."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.options import Bootstrap, ConfigFile, Prefix
from pipeline.config import load
from pipeline.logs import configure
from pipeline.signals import stop_on_signals
from pipeline.worker import Worker

EPILOG = "Example: forks run --config forks.toml --instance worker-0"


def run(
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    group: Annotated[str | None, typer.Option(help="The consumer group.")] = None,
    instance: Annotated[
        str | None,
        typer.Option(help="A name of this worker that stays over restarts, so that it goes on at once."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Log as JSON, one object a line.")] = False,
) -> None:
    """Consume, predict, join and learn until SIGTERM or Ctrl-C; then commit, save the state, exit with 0."""
    configure(json=json)
    flags = {
        "kafka.bootstrap": bootstrap,
        "kafka.prefix": prefix,
        "kafka.group": group,
        "kafka.instance": instance,
    }
    worker = Worker(load(config, flags))
    with stop_on_signals(worker.stop):
        worker.run()
