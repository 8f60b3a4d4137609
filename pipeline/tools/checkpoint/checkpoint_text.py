"""Render checkpoints for a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from pipeline.tools.checkpoint.contents import Array, Challenger, Contents
from pipeline.tools.checkpoint.listing import Checkpoint, Snapshot
from pipeline.tools.terminal import named_values, number_or_dash, numbers_table
from pipeline.tools.times import duration


def render_list(checkpoints: Sequence[Checkpoint]) -> RenderableType:
    """Render one line for each snapshot of each partition, and their hashes below."""
    names = ("partition", "state at", "outcomes", "snapshot of", "chunks at", "bytes", "age")
    table = numbers_table(*names, text=0)
    hashes: list[Text] = []
    for checkpoint in checkpoints:
        state = "-" if checkpoint.state_offset is None else str(checkpoint.state_offset)
        begin = (str(checkpoint.partition), state, f"{checkpoint.outcomes:,}")
        snapshot, previous = checkpoint.snapshot, checkpoint.previous
        table.add_row(*begin, *(("none", "-", "-", "-") if snapshot is None else _cells(snapshot)))
        if snapshot is not None:
            hashes += _hash(f"partition {checkpoint.partition}", snapshot)
        if previous is not None:
            table.add_row("", "", "before", *_cells(previous), style="dim")
            hashes += _hash("  the one before", previous)
    return Group(table, *([Text(), *hashes] if hashes else []))


def _hash(whose: str, snapshot: Snapshot) -> list[Text]:
    lines = [Text(f"{whose}: SHA-256 {snapshot.sha256}")]
    if snapshot.damage is not None:
        lines.append(Text(f"  unusable: {snapshot.damage}", style="red"))
    return lines


def _cells(snapshot: Snapshot) -> tuple[str, str, str, str]:
    return (
        f"{snapshot.outcomes:,}",
        ", ".join(map(str, snapshot.offsets)),
        number_or_dash(snapshot.bytes, ","),
        "-" if snapshot.age is None else duration(1_000 * snapshot.age),
    )


def render_contents(partition: int, found: Contents) -> RenderableType:
    """Render the contents of a partition's snapshot, one figure per line."""
    values = {
        "outcomes": f"{found.outcomes:,}, of which {found.updates:,} were learned",
        "preset": ", ".join([found.preset, *(f"{name} = {text}" for name, text in found.changes.items())]),
        "size": f"{found.bytes:,} bytes",
        "stage": f"{found.stage}, map changed {found.map_changes:,} times",
        "stored points": _array(found.points),
        **{f"sketch {name}": _array(array) for name, array in found.sketch.items()},
        "singular values": ", ".join(f"{value:.4g}" for value in found.singular_values) or "-",
        "weights": _array(found.weights),
        "inverse Hessian": f"{_array(found.inverse_hessian)}, eigenvalues from "
        f"{found.smallest_eigenvalue:.4g} to {found.largest_eigenvalue:.4g}",
        "challengers": ", ".join(map(_challenger, found.challengers)) or "-",
        "kept": ", ".join(f"{count:,} {name}" for name, count in found.kept.items()),
    }
    return Group(Text(f"partition {partition}", style="bold"), named_values(values.items()))


def _challenger(found: Challenger) -> str:
    return f"{found.name} ({found.learner}, {found.bytes:,} bytes)"


def _array(array: Array) -> str:
    return f"{' x '.join(f'{size:,}' for size in array.shape)}, norm {array.norm:.4g}"
