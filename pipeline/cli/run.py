"""`forks run`: a worker, or several."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from pipeline.cli.failures import report_failures
from pipeline.cli.logs import configure
from pipeline.cli.options import Bootstrap, ConfigFile, Prefix
from pipeline.cli.signals import stop_on_signals
from pipeline.config.loader import load
from pipeline.config.tree import Config
from pipeline.worker.supervisor import RegisterStop, Supervisor
from pipeline.worker.worker import Worker

Flags: TypeAlias = dict[str, str | None]
"""What the command line sets, by dotted name."""

EPILOG = """
Examples:

    forks run --config forks.toml --instance worker-0

    forks run --workers 4 --instance node-a --json
"""


def run(
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    group: Annotated[str | None, typer.Option(help="The consumer group.")] = None,
    instance: Annotated[
        str | None,
        typer.Option(help="A name of this worker that stays over restarts, so that it goes on at once."),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Processes that share the partitions; each has a number added to its name, and to the port "
            "of metrics.address. If one fails, all stop.",
        ),
    ] = 1,
    json: Annotated[bool, typer.Option("--json", help="Log as JSON, one object a line.")] = False,
) -> None:
    """Consume, predict, join and learn until SIGTERM or Ctrl-C; then commit, save the state, exit with 0."""
    configure(json=json)
    flags: Flags = {
        "kafka.bootstrap": bootstrap,
        "kafka.prefix": prefix,
        "kafka.group": group,
        "kafka.instance": instance,
    }
    settings = load(config, flags)
    if workers == 1:
        worker = Worker(settings)
        with stop_on_signals(worker.stop):
            worker.run()
        return
    of_each = [flags | worker_flags(settings, number) for number in range(workers)]
    for own in of_each:
        load(config, own)  # so that a port beyond the last is told of once
    crew = Supervisor(partial(_run_worker, config, of_each, json), workers)
    with stop_on_signals(crew.stop):
        code = crew.run()
    raise typer.Exit(code)


def worker_flags(settings: Config, number: int) -> Flags:
    """Return what sets one of several workers apart from the others, by dotted name.

    Examples
    --------
    >>> worker_flags(Config(kafka={"instance": "node"}, metrics={"address": "127.0.0.1:9100"}), 2)
    {'kafka.instance': 'node-2', 'metrics.address': '127.0.0.1:9102'}
    """
    own: Flags = {}
    if settings.kafka.instance:
        own["kafka.instance"] = f"{settings.kafka.instance}-{number}"
    if settings.metrics.address:
        host, _, port = settings.metrics.address.rpartition(":")
        own["metrics.address"] = f"{host}:{int(port) + number}"
    return own


def _run_worker(
    config: Path | None, of_each: list[Flags], json: bool, number: int, register_stop: RegisterStop
) -> None:
    """Be one of several workers, in a process of its own."""
    configure(json=json, worker=number)
    with report_failures(f" in worker {number}"):
        worker = Worker(load(config, of_each[number]))
        register_stop(worker.stop)
        worker.run()
