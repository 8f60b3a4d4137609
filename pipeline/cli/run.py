"""`forks run`: run a worker, or several."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from pipeline.cli.failures import report_failures
from pipeline.cli.logs import configure
from pipeline.cli.options import Bootstrap, ConfigFile, Prefix
from pipeline.cli.signals import StopRequest, stop_on_signals

if TYPE_CHECKING:
    from pipeline.config.settings import Config
    from pipeline.worker.supervisor import RegisterStop

Flags: TypeAlias = dict[str, str | None]
"""Settings of the command line, by dotted name."""

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
        typer.Option(help="A name that this worker keeps over restarts, so that it continues at once."),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Processes that share the partitions. Each adds its number to its name and to the port of "
            "metrics.address. If one fails, all stop.",
        ),
    ] = 1,
    json: Annotated[bool, typer.Option("--json", help="Log as JSON, one object a line.")] = False,
) -> None:
    """Consume, predict, join and learn until SIGTERM or Ctrl-C; then commit, save the state, exit with 0."""
    request = StopRequest()
    with stop_on_signals(request):  # the imports alone take longer than a script may wait
        from pipeline.config.loader import load

        configure(json=json)
        flags: Flags = {
            "kafka.bootstrap": bootstrap,
            "kafka.prefix": prefix,
            "kafka.group": group,
            "kafka.instance": instance,
        }
        settings = load(config, flags)
        if workers == 1:
            from pipeline.worker.worker import Worker

            worker = Worker(settings)
            request.pass_to(worker.stop)
            worker.run()
            return
        from pipeline.worker.supervisor import Supervisor

        of_each = [flags | worker_flags(settings, number) for number in range(workers)]
        for own in of_each:
            load(config, own)  # so that a port above 65535 is reported once, and not by each worker
        supervisor = Supervisor(partial(_run_worker, config, of_each, json), workers)
        request.pass_to(supervisor.stop)
        code = supervisor.run()
    raise typer.Exit(code)


def worker_flags(settings: Config, number: int) -> Flags:
    """Return the settings in which one of several workers differs from the others.

    Parameters
    ----------
    settings
        Settings that all workers share.
    number
        Number of the worker, from 0.

    Returns
    -------
    dict
        Values by dotted name.

    Examples
    --------
    >>> from pipeline.config.settings import Config
    >>> worker_flags(Config(kafka={"instance": "node"}, metrics={"address": "127.0.0.1:9100"}), 2)
    {'kafka.instance': 'node-2', 'metrics.address': '127.0.0.1:9102'}
    >>> worker_flags(Config(metrics={"address": "[::1]:9100"}), 1)
    {'metrics.address': '[::1]:9101'}
    """
    own: Flags = {}
    if settings.kafka.instance:
        own["kafka.instance"] = f"{settings.kafka.instance}-{number}"
    if settings.metrics.address:
        host, colon, port = settings.metrics.address.rpartition(":")
        own["metrics.address"] = f"{host}{colon}{int(port) + number}"
    return own


def _run_worker(
    config: Path | None, of_each: list[Flags], json: bool, number: int, register_stop: RegisterStop
) -> None:
    """Run one of several workers, in a process of its own."""
    from pipeline.config.loader import load
    from pipeline.worker.worker import Worker

    configure(json=json, worker=number)
    with report_failures(f" in worker {number}"):
        request = StopRequest(partial(os._exit, 0))  # called in another thread; there is nothing to finish
        register_stop(request)
        worker = Worker(load(config, of_each[number]))
        request.pass_to(worker.stop)
        worker.run()
