"""An experiment's rows as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from forks.experiments import Row
from pipeline.reproduce.reproduction import Reproduction


def render(found: Reproduction) -> RenderableType:
    """The rows for a terminal of 80 columns or more, a table for each stream."""
    title = Text(f"{found.title}, {found.order.runs} runs", style="bold")
    parts: list[RenderableType] = [title]
    for stream, rows in groupby(found.rows, key=lambda row: row.stream):
        parts += [Text(), _table(stream, list(rows))]
    note = (
        "Mistakes in percent of all events, mean ± deviation over the runs. Authors: those of a first "
        "stage are not counted; from the first: all are. Seconds are the processor's."
    )
    return Group(*parts, Text(), Text(note, style="dim"))


def _table(stream: str, rows: Sequence[Row]) -> Table:
    table = Table(title=stream, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")
    places = [name for name, _ in rows[0].place]
    table.add_column("learner")
    for name in ("B", *places, "paper", "authors", "from the first", "seconds"):
        table.add_column(name, justify="right")
    for row in rows:
        printed = row.printed
        table.add_row(
            row.learner,
            _plain(row.budget),
            *(_plain(value) for _, value in row.place),
            f"{printed.mean:.2f} ± {printed.deviation:.2f}" if printed else "",
            _spread(row, "mistakes_authors"),
            _spread(row, "mistakes"),
            f"{row.means['seconds']:.3f}",
        )
    for majority in _majorities(rows):
        table.add_row("majority class", *[""] * (len(places) + 3), f"{majority:.2f}", "", style="dim")
    return table


def _majorities(rows: Iterable[Row]) -> list[float]:
    """Return the one majority that rows of a stream have, if they measure it."""
    return sorted({row.means["majority"] for row in rows if "majority" in row.means})[:1]


def _spread(row: Row, measure: str) -> str:
    if measure not in row.means:
        return ""
    return f"{row.means[measure]:.2f} ± {row.deviations[measure]:.2f}"


def _plain(value: float | str | None) -> str:
    return "" if value is None else str(value)
