"""Render a comparison for a terminal of 80 columns or more."""

from __future__ import annotations

import math

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from forks.validation import Metrics
from pipeline.tools.rebuild.comparison import Comparison, PartitionRebuild
from pipeline.tools.terminal import number_or_dash, plain_table


def render(found: Comparison) -> RenderableType:
    """Render the changes, the figures of both models, the check of each snapshot and the installation."""
    changes = ", ".join(
        f"{name} {new or 'none'} (was {present or 'none'})" for name, (present, new) in found.changes.items()
    )
    parts: list[RenderableType] = [
        Text(f"rebuilt with {changes or 'unchanged settings'}", style="bold"),
        Text(),
    ]
    if found.running is None or found.rebuilt is None:
        parts.append(Text("No label was joined yet, so there is nothing to compare predictions with."))
    else:
        parts.append(_figures(found))
    parts += [Text(), *map(_partition, found.partitions)]
    if found.installed is not None:
        lines = ["[learner]", *found.installed]
        parts += [
            Text(),
            Text("Installed: the group continues from these models.", style="bold green"),
            Text("Put this into forks.toml before you start its workers. They refuse other settings:"),
            Text(),
            *(Text(f"  {line}") for line in lines),
        ]
    return Group(*parts)


def _figures(found: Comparison) -> Table:
    table = plain_table()
    table.add_column("labelled events", justify="right")
    for name in ("RMSE",) if found.scale is not None else ("mistakes", "AUC", "log loss"):
        table.add_column(name, justify="right")
        table.add_column("rebuilt", justify="right", style="bold")
    assert found.running is not None
    assert found.rebuilt is not None
    for running, rebuilt in zip(found.running.windows, found.rebuilt.windows, strict=True):
        events = f"{running.first + 1:,} - {running.first + running.events:,}"
        table.add_row(events, *_cells(running, rebuilt, found.scale))
    total = _cells(found.running.total, found.rebuilt.total, found.scale)
    table.add_row(f"all {found.events:,}", *total, style="bold")
    return table


def _cells(running: Metrics, rebuilt: Metrics, scale: float | None) -> tuple[str, ...]:
    if scale is not None:
        return tuple(f"{scale * math.sqrt(each.loss):#.4g}" for each in (running, rebuilt))
    return (
        f"{running.mistakes:.2%}",
        f"{rebuilt.mistakes:.2%}",
        *(number_or_dash(value) for value in (running.auc, rebuilt.auc, running.log_loss, rebuilt.log_loss)),
    )


def _partition(partition_rebuild: PartitionRebuild) -> Text:
    text = f"partition {partition_rebuild.partition}: {partition_rebuild.outcomes:,} outcomes learned"
    if partition_rebuild.other_arithmetic:
        others = f"{partition_rebuild.other_arithmetic:,}"
        return Text(f"{text}; the group learned the first {others} with another arithmetic, in other bits")
    if partition_rebuild.same is None:
        return Text(text)
    if partition_rebuild.same:
        return Text(f"{text}; after {partition_rebuild.snapshot:,} identical to the group's snapshot")
    return Text(
        f"{text}; after {partition_rebuild.snapshot:,} not identical to the group's snapshot",
        style="red",
    )
