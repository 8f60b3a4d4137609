"""`forks checkpoint`: what the group continues from, to a file and back."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from pipeline.cli.command import Command
from pipeline.cli.options import ConfigOptions, Json, group_options
from pipeline.cli.output import print_found, print_json
from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.tools.checkpoint import Group

VERIFYING = "Learning the outcomes again to verify the snapshot ..."
DERIVING = "Deriving the state from the topics ..."
_RECOVERED = {
    "nothing committed": "nothing was committed yet, a worker begins there",
    "usable": "the state record can be used, nothing has changed",
    "found": "continues from a state record of {outcomes:,} outcomes that was found again",
    "derived": "continues from a state that was derived from {outcomes:,} outcomes",
}
Partition = Annotated[int, typer.Option(min=0, help="The partition.", show_default=False)]

app = typer.Typer(
    help="Show, export, import, recover and sign the checkpoints of a group.", no_args_is_help=True
)


class _SnapshotFile(NamedTuple):
    """A snapshot that was exported or imported."""

    partition: int
    outcomes: int
    bytes: int
    sha256: str


def _snapshot_file(partition: int, data: bytes) -> _SnapshotFile:
    from pipeline.model.snapshot import parse

    return _SnapshotFile(
        partition, parse(data)[1].outcomes_learned, len(data), hashlib.sha256(data).hexdigest()
    )


def _group(options: ConfigOptions) -> Group:
    from pipeline.tools.checkpoint import Group

    return Group(options.load())


@app.command("list", cls=Command, epilog="Example: forks checkpoint list --json | jq '.[].snapshot.age'")
@group_options
def list_(options: ConfigOptions, json: Json = False) -> None:
    """List the state record and the snapshot of each partition; the snapshot's bytes are checked."""
    from pipeline.tools.checkpoint import read_checkpoint, render_list

    with _group(options) as entered:
        found = [read_checkpoint(entered, partition) for partition in range(entered.partitions)]
    print_found(found, render_list, json=json)


@app.command(cls=Command, epilog="Example: forks checkpoint show --partition 0")
@group_options
def show(partition: Partition, *, options: ConfigOptions, json: Json = False) -> None:
    """Show what is in a partition's snapshot: sizes, singular values, norms, entities."""
    from pipeline.tools.checkpoint import contents, render_contents

    with _group(options) as entered:
        state, data = entered.snapshot(partition)
    found = contents(data, state.settings, entered.config.stream)
    print_found(found, partial(render_contents, partition), json=json)


@app.command(cls=Command, epilog="Example: forks checkpoint export --partition 0 --out model.safetensors")
@group_options
def export(
    partition: Partition,
    out: Annotated[Path, typer.Option(help="The file to write.", show_default=False)],
    *,
    options: ConfigOptions,
    json: Json = False,
) -> None:
    """Write a partition's snapshot into a file, as it is: safetensors, readable without this program."""
    with _group(options) as entered:
        _, data = entered.snapshot(partition)
    try:
        out.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written: {error}") from error
    exported = _snapshot_file(partition, data)
    if json:
        print_json(exported._asdict())
    else:
        typer.echo(f"{out} has the snapshot of {exported.outcomes:,} outcomes\nSHA-256 {exported.sha256}")


@app.command("import", cls=Command, epilog="Example: forks checkpoint import model.safetensors --partition 0")
@group_options
def import_(
    file: Annotated[Path, typer.Argument(help="A file that `export` wrote.", show_default=False)],
    partition: Partition,
    *,
    options: ConfigOptions,
    json: Json = False,
) -> None:
    """Let a partition continue from a snapshot, while no worker runs.

    The snapshot has to be of these settings, and of a model that learned the partition's own outcomes. The
    command verifies this: it learns them again and compares. Outcomes after the snapshot are learned when a
    worker starts, so predictions stay the same.
    """
    from pipeline.tools.checkpoint import import_snapshot
    from pipeline.tools.checkpoint.snapshot_file import read_snapshot_file
    from pipeline.tools.terminal import waiting

    data = read_snapshot_file(file)
    with _group(options) as entered, waiting(VERIFYING):
        state = import_snapshot(entered, partition, data)
    imported = _snapshot_file(partition, data)
    if json:
        print_json(imported._asdict())
    else:
        typer.echo(
            f"partition {partition} continues from the snapshot of {imported.outcomes:,} outcomes; "
            f"{state.outcomes - imported.outcomes:,} since are learned when a worker starts\n"
            f"SHA-256 {imported.sha256}"
        )


@app.command(cls=Command, epilog="Example: forks checkpoint recover")
@group_options
def recover(
    partition: Annotated[
        int | None, typer.Option(min=0, help="Recover this partition only.", show_default="all")
    ] = None,
    *,
    options: ConfigOptions,
    json: Json = False,
) -> None:
    """Find or derive state records that are lost or cannot be used, while no worker runs.

    A state record of the committed offsets that is still in the log is used again. Otherwise the state is
    derived from the topics: the model learns all outcomes, each prediction is made again and compared, and
    each input message has to be accounted for. Input offsets stay as they are, so nothing is lost or counted
    twice.
    """
    from pipeline.tools import checkpoint
    from pipeline.tools.terminal import waiting

    with _group(options) as entered, waiting(DERIVING) as status:
        found = checkpoint.recover(
            entered, lambda learned: status.update(f"{DERIVING} {learned:,} outcomes"), partition
        )
    if json:
        print_json(found)
        return
    for each in found:
        typer.echo(f"partition {each.partition}: {_RECOVERED[each.source].format(outcomes=each.outcomes)}")


@app.command(cls=Command, epilog="Example: forks checkpoint sign")
@group_options
def sign(
    former_key: Annotated[
        Path | None,
        typer.Option(
            help="The file of the key that the records are signed with.", show_default="they have no MAC"
        ),
    ] = None,
    *,
    options: ConfigOptions,
    json: Json = False,
) -> None:
    """Sign the state records with checkpoint.key, while no worker runs.

    Use it when checkpoint.key is set for a group that exists, or is changed. Without checkpoint.key the
    records are written without a MAC. Records without a MAC are trusted once, by this command.
    """
    from pipeline.tools import checkpoint

    with _group(options) as entered:
        partitions = checkpoint.sign(entered, former_key)
        signed = entered.signer is not None
    if json:
        print_json({"partitions": partitions, "signed": signed})
    else:
        how = "with a MAC of checkpoint.key" if signed else "without a MAC"
        typer.echo(f"wrote the state records of {len(partitions)} partitions again, {how}")
