"""`forks top`: watch a worker in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import ConfigFile
from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from pipeline.tools.top.asking import WorkerAddress

INTERVAL = 2.0
"""Seconds between two questions."""

EPILOG = """
Examples:

    forks top 127.0.0.1:9100

    forks top 9100 --once

    forks top --config forks.toml --json | jq .lag
"""


def top(
    address: Annotated[
        str | None,
        typer.Argument(
            help="Where the worker answers: host:port, or a port of this machine.",
            show_default="metrics.address of the configuration",
        ),
    ] = None,
    *,
    config: ConfigFile = None,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, and end.")] = False,
) -> None:
    """Show throughput, lag, quality, joins, partitions and the latest predictions of a worker, until Ctrl-C.

    The worker's status page shows the same in a browser. Where the output is no terminal, it is printed once.
    """
    from rich.console import Console

    from pipeline.tools.top.asking import WorkerAddress
    from pipeline.tools.top.screen import StatusScreen

    worker = WorkerAddress(_configured(config) if address is None else address)
    text, status = worker.status()
    if json:
        typer.echo(text)
        return
    console = Console(highlight=False)
    if once or not console.is_terminal:
        console.print(StatusScreen(status, worker.history()))
        return
    _watch(worker, console)


def _watch(worker: WorkerAddress, console: Console) -> None:
    """Show a worker until Ctrl-C; one that stops answering may come back."""
    import time

    from rich.live import Live

    from pipeline.tools.top.asking import NoAnswerError
    from pipeline.tools.top.screen import StatusScreen

    (_, status), history = worker.status(), worker.history()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            note = ""
            try:
                (_, status), history = worker.status(), worker.history()
            except NoAnswerError as error:
                note = str(error)
            live.update(StatusScreen(status, history, note), refresh=True)
            time.sleep(INTERVAL)


def _configured(config: Path | None) -> str:
    from pipeline.config.loader import load

    address = load(config, {}).metrics.address
    if address is None:
        raise ConfigError(
            "no address was given, and the configuration has no metrics.address: name the worker's, as in "
            "forks top 127.0.0.1:9100"
        )
    return address
