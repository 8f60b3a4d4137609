"""`forks broker`: a real Apache Kafka for trying things out."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from pipeline.broker.settings import BOOTSTRAP_VARIABLE, DEFAULT_DATA, DEFAULT_HEAP, OWN_BROKER_HINT
from pipeline.cli.command import Command
from pipeline.cli.options import JsonObject
from pipeline.cli.output import print_json
from pipeline.extras import require

app = typer.Typer(help="A real Apache Kafka on this machine, for tests and trying out.", no_args_is_help=True)

NOT_RUNNING = 3

Data = Annotated[Path, typer.Option(help="Folder of the broker's data, log and state.", show_default=True)]


@app.command(cls=Command, epilog="Example: forks broker start --port 9092")
def start(
    data: Data = DEFAULT_DATA,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.", show_default="a free one")
    ] = None,
    heap: Annotated[str, typer.Option(help="Size of the Java heap.")] = DEFAULT_HEAP,
    as_json: JsonObject = False,
) -> None:
    """Start a broker in the background and return when it answers; one that runs already is left alone."""
    _require_psutil()
    from pipeline.broker import embedded

    before = embedded.status(data)
    running = embedded.start(data, port, heap)
    already = running == before
    if as_json:
        print_json({"already_running": already, **asdict(running)})
        return
    typer.echo(
        f"Apache Kafka {running.version} {'runs already' if already else 'answers'} at {running.bootstrap}\n"
        f"  log   {running.log}\n"
        f"  use   export {BOOTSTRAP_VARIABLE}={running.bootstrap}\n"
        f"  stop  forks broker stop{_data_option(data)}"
    )


@app.command(cls=Command, epilog="Example: forks broker stop")
def stop(data: Data = DEFAULT_DATA) -> None:
    """Stop the broker and wait for its end; its data stay. With none running there is nothing to do.

    Stop workers before it: a transaction that is open when the broker stops may hang.
    """
    _require_psutil()
    from pipeline.broker import embedded
    from pipeline.tools.terminal import waiting

    with waiting("Stopping Apache Kafka ..."):
        stopped = embedded.stop(data)
    typer.echo(f"stopped the broker at {stopped.bootstrap}" if stopped else f"no broker runs on {data}")


@app.command(cls=Command, epilog="Example: forks broker status --json | jq -r .bootstrap")
def status(data: Data = DEFAULT_DATA, as_json: JsonObject = False) -> None:
    """Show whether a broker runs, and where. The exit code is 0 if one does, 3 if not."""
    _require_psutil()
    from pipeline.broker import embedded

    running = embedded.status(data)
    if as_json:
        print_json({"running": running is not None} | (asdict(running) if running else {}))
    elif running:
        since = datetime.fromtimestamp(running.created).astimezone().isoformat(" ", "seconds")
        typer.echo(
            f"Apache Kafka {running.version} runs at {running.bootstrap}\n"
            f"  pid   {running.pid}, since {since}\n"
            f"  data  {running.data}\n"
            f"  log   {running.log}"
        )
    else:
        typer.echo(f"no broker runs on {data}; start one with: forks broker start{_data_option(data)}")
    if running is None:
        raise typer.Exit(NOT_RUNNING)


def _require_psutil() -> None:
    require("to manage an embedded broker", "psutil", alternative=OWN_BROKER_HINT)


def _data_option(data: Path) -> str:
    """Return the option that names this data folder, nothing for the default one."""
    return "" if data == DEFAULT_DATA else f" --data {shlex.quote(str(data))}"
