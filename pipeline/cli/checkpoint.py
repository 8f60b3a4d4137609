"""`forks checkpoint`: what the group continues from, to a file and back."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from pipeline.cli.options import Bootstrap, ConfigFile, ConsumerGroup, Json, Prefix
from pipeline.config.loader import load
from pipeline.errors import ConfigError, DataError
from pipeline.model.snapshot import parse
from pipeline.tools.checkpoint import (
    Group,
    contents,
    import_snapshot,
    read_checkpoint,
    render_contents,
    render_list,
)

VERIFYING = "Folding outcomes, to prove that it belongs here ..."
Partition = Annotated[int, typer.Option(min=0, help="Whose.", show_default=False)]

app = typer.Typer(help="What the group continues from: look at it, export, import.", no_args_is_help=True)


class _SnapshotFile(msgspec.Struct):
    """A snapshot that was exported or imported."""

    partition: int
    outcomes: int
    bytes: int
    sha256: str


def _snapshot_file(partition: int, data: bytes) -> _SnapshotFile:
    return _SnapshotFile(partition, parse(data)[1].folded, len(data), hashlib.sha256(data).hexdigest())


def _group(config: Path | None, bootstrap: str | None, prefix: str | None, group: str | None) -> Group:
    flags = {"kafka.bootstrap": bootstrap, "kafka.prefix": prefix, "kafka.group": group}
    return Group(load(config, flags))


@app.command("list", epilog="Example: forks checkpoint list --prefix prod. --json | jq '.[].snapshot.age'")
def list_(
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    group: ConsumerGroup = None,
    json: Json = False,
) -> None:
    """List the state record and the snapshot of each partition; the snapshot's bytes are checked."""
    with _group(config, bootstrap, prefix, group) as entered:
        found = [read_checkpoint(entered, partition) for partition in range(entered.partitions)]
    if json:
        typer.echo(msgspec.json.encode(found))
    else:
        Console(soft_wrap=True, highlight=False).print(render_list(found))


@app.command(epilog="Example: forks checkpoint show --partition 0")
def show(
    partition: Partition,
    *,
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    group: ConsumerGroup = None,
    json: Json = False,
) -> None:
    """Show what is in a partition's snapshot: sizes, singular values, norms, entities."""
    with _group(config, bootstrap, prefix, group) as entered:
        state, data = entered.snapshot(partition)
    found = contents(data, state.settings)
    if json:
        typer.echo(msgspec.json.encode(found))
    else:
        Console(soft_wrap=True, highlight=False).print(render_contents(partition, found))


@app.command(epilog="Example: forks checkpoint export --partition 0 --out model.safetensors")
def export(
    partition: Partition,
    out: Annotated[Path, typer.Option(help="The file to write.", show_default=False)],
    *,
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    group: ConsumerGroup = None,
    json: Json = False,
) -> None:
    """Write a partition's snapshot into a file, as it is: safetensors, readable without this program."""
    with _group(config, bootstrap, prefix, group) as entered:
        _, data = entered.snapshot(partition)
    try:
        out.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written: {error}") from error
    done = _snapshot_file(partition, data)
    text = f"{out} has the snapshot of {done.outcomes:,} outcomes\nSHA-256 {done.sha256}"
    typer.echo(msgspec.json.encode(done) if json else text)


@app.command("import", epilog="Example: forks checkpoint import model.safetensors --partition 0")
def import_(
    file: Annotated[Path, typer.Argument(help="As `export` wrote it.", show_default=False)],
    partition: Partition,
    *,
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    group: ConsumerGroup = None,
    json: Json = False,
) -> None:
    """Let a partition continue from a snapshot, while no worker runs.

    It has to be of these settings and a fold of the partition's own outcomes, which is proved by folding
    them. The outcomes since are learned when a worker starts, so no prediction comes out otherwise.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error}") from error
    with _group(config, bootstrap, prefix, group) as entered, Console(stderr=True).status(VERIFYING):
        state = import_snapshot(entered, partition, data)
    done = _snapshot_file(partition, data)
    text = (
        f"partition {partition} continues from the snapshot of {done.outcomes:,} outcomes; "
        f"{state.outcomes - done.outcomes:,} since are learned when a worker starts\nSHA-256 {done.sha256}"
    )
    typer.echo(msgspec.json.encode(done) if json else text)
