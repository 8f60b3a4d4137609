"""`forks run`: run a worker, or several."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.failures import report_failures
from pipeline.cli.logs import configure
from pipeline.cli.options import ConfigOptions, Flags, JsonLog, group_options
from pipeline.cli.signals import StopRequest, stop_on_signals

if TYPE_CHECKING:
    from pipeline.config.settings import Config
    from pipeline.worker.supervisor import RegisterStop

EPILOG = """
Examples:

    forks run --config forks.toml --instance worker-0

    forks run --workers 4 --instance node-a --json
"""


@group_options
def run(
    options: ConfigOptions,
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
    json: JsonLog = False,
) -> None:
    """Consume, predict, join and learn until SIGTERM or Ctrl-C; then commit, save the state, exit with 0."""
    request = StopRequest()
    with stop_on_signals(request):  # the imports alone take longer than a script may wait
        configure(json=json)
        options = options.including({"kafka.instance": instance})
        settings = options.load()
        if workers == 1:
            from pipeline.worker.worker import Worker

            worker = Worker(settings)
            request.pass_to(worker.stop)
            worker.run()
            return
        from pipeline.worker.supervisor import Supervisor

        of_each = [options.including(worker_flags(settings, number)) for number in range(workers)]
        for own in of_each:
            own.load()  # so that a port above 65535 is reported once, and not by each worker
        supervisor = Supervisor(partial(_run_worker, of_each, json), workers)
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


def _run_worker(of_each: list[ConfigOptions], json: bool, number: int, register_stop: RegisterStop) -> None:
    """Run one of several workers, in a process of its own."""
    from pipeline.worker.worker import Worker

    configure(json=json, worker=number)
    with report_failures(f" in worker {number}"):
        request = StopRequest(partial(os._exit, 0))  # called in another thread; there is nothing to finish
        register_stop(request)
        worker = Worker(of_each[number].load())
        request.pass_to(worker.stop)
        worker.run()
