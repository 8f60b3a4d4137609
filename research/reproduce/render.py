"""An experiment's rows as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from research.experiments import Row
from research.reproduce.reproduction import Reproduction

NOTE = (
    "Mistakes in percent of all events, mean ± standard deviation over the runs. Authors: without those of a "
    "first stage; from the first: all. Seconds are processor time."
)


def render(found: Reproduction) -> RenderableType:
    """Return the rows as one table for each stream, for a terminal of at least 80 columns."""
    parts: list[RenderableType] = [Text(f"{found.title}, {_runs(found.options.runs)}", style="bold")]
    for stream, rows in groupby(found.rows, key=lambda row: row.stream):
        parts += [Text(), _table(stream, list(rows))]
    return Group(*parts, Text(), Text(NOTE, style="dim"))


def _runs(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _printed(row: Row) -> str:
    return f"{row.printed.mean:.2f} ± {row.printed.deviation:.2f}" if row.printed else ""


def _spread(measure: str, digits: int = 2) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        if measure not in row.means:
            return ""
        return f"{row.means[measure]:.{digits}f} ± {row.deviations[measure]:.{digits}f}"

    return text


COLUMNS: Mapping[str, Callable[[Row], str]] = MappingProxyType(
    {
        "B": lambda row: "" if row.budget is None else str(row.budget),
        "paper": _printed,
        "authors": _spread("mistakes_authors"),
        "from the first": _spread("mistakes"),
        "asked for": _spread("queries"),
        "excess": _spread("excess"),
        "seconds": lambda row: f"{row.means['seconds']:.3f}",
    }
)
"""Columns by heading; a column that is empty in all rows is left out."""


def _table(stream: str, rows: Sequence[Row]) -> Table:
    table = Table(title=stream, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")
    parameters = [name for name, _ in rows[0].key_columns]
    columns = {heading: text for heading, text in COLUMNS.items() if any(text(row) for row in rows)}
    table.add_column("learner")
    for heading in (*parameters, *columns):
        table.add_column(heading.replace("_", " "), justify="right")
    for row in rows:
        values = [str(value).replace("_", " ") for _, value in row.key_columns]
        table.add_row(row.learner, *values, *(text(row) for text in columns.values()))
    if "majority" in rows[0].means:
        majority = f"{rows[0].means['majority']:.2f}"
        cells = [majority if heading == "from the first" else "" for heading in columns]
        table.add_row("majority class", *[""] * len(parameters), *cells, style="dim")
    return table
