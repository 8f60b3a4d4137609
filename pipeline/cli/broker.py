"""`forks broker`: a real Apache Kafka for trying things out."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline import broker
from pipeline.broker.embedded import DEFAULT_DATA
from pipeline.broker.launch import DEFAULT_HEAP
from pipeline.broker.settings import BOOTSTRAP_VARIABLE

app = typer.Typer(help="A real Apache Kafka on this machine, for tests and trying out.", no_args_is_help=True)

NOT_RUNNING = 3

Data = Annotated[Path, typer.Option(help="Folder of the broker's data, log and state.", show_default=True)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command()
def start(
    data: Data = DEFAULT_DATA,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.", show_default="a free one")
    ] = None,
    heap: Annotated[str, typer.Option(help="Size of the Java heap.")] = DEFAULT_HEAP,
    as_json: Json = False,
) -> None:
    """Start a broker in the background; return when it answers. One that runs already is left alone."""
    before = broker.status(data)
    running = broker.start(data, port, heap)
    already = running == before
    if as_json:
        typer.echo(json.dumps({"already_running": already, **asdict(running)}))
        return
    typer.echo(
        f"Apache Kafka {running.version} {'runs already' if already else 'answers'} at {running.bootstrap}\n"
        f"  log   {running.log}\n"
        f"  use   export {BOOTSTRAP_VARIABLE}={running.bootstrap}\n"
        f"  stop  forks broker stop{data_option(data)}"
    )


@app.command()
def stop(data: Data = DEFAULT_DATA) -> None:
    """Stop the broker and wait for its end; its data stay. With none running there is nothing to do.

    Stop workers before it: a transaction that it is stopped in may hang.
    """
    with Console(stderr=True).status("Stopping Apache Kafka ..."):
        stopped = broker.stop(data)
    typer.echo(f"stopped the broker at {stopped.bootstrap}" if stopped else f"no broker runs on {data}")


@app.command()
def status(data: Data = DEFAULT_DATA, as_json: Json = False) -> None:
    """Say whether a broker runs, and where. The exit code is 0 if one does, 3 if not."""
    running = broker.status(data)
    if as_json:
        typer.echo(json.dumps({"running": running is not None} | (asdict(running) if running else {})))
    elif running:
        since = datetime.fromtimestamp(running.created).astimezone().isoformat(" ", "seconds")
        typer.echo(
            f"Apache Kafka {running.version} runs at {running.bootstrap}\n"
            f"  pid   {running.pid}, since {since}\n"
            f"  data  {running.data}\n"
            f"  log   {running.log}"
        )
    else:
        typer.echo(f"no broker runs on {data}; start one with: forks broker start{data_option(data)}")
    if running is None:
        raise typer.Exit(NOT_RUNNING)


def data_option(data: Path) -> str:
    """Give the option that names this data folder, nothing for the default one."""
    return "" if data == DEFAULT_DATA else f" --data {shlex.quote(str(data))}"
