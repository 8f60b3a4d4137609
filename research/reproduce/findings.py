"""A page on the results of all experiments, made from the files that they wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pipeline.errors import DataError
from research.findings import FINDERS, JsonRow
from research.reproduce.tried import by_learner

INTRODUCTION = """\
# Findings

This page is made by `python -m research findings` from the results of the commands below; no number in it was
typed. Mistakes are percent of all events, mean ± standard deviation over the runs. "Authors" is the count
that reproduces the papers' figures: mistakes of a first stage, in which a learner fills its buffer, are left
out, but the divisor is the number of all events. "From the first" counts all mistakes. "Majority class"
always predicts the more frequent label. Seconds are processor time; "paper" is the printed figure.

FORKS is the paper's, with a stage 1 of 2 B points as in its section 5.1, unless a row says otherwise.
"""


def read_tables(out: Path) -> dict[str, dict[str, Any]]:
    """Read the tables that experiments wrote to a folder, by the experiments' names.

    Raises
    ------
    DataError
        There is no table, or a file is not a table.
    """
    tables = {}
    for name in FINDERS:
        file = out / f"{name}.json"
        if file.is_file():
            try:
                tables[name] = json.loads(file.read_text())
                tables[name]["rows"][0]["stream"]
            except (ValueError, LookupError, TypeError) as error:
                raise DataError(f"{file}: has no rows; run `python -m research {name}` again") from error
    if not tables:
        raise DataError(f"{out}: has no results; run `python -m research table2 --out {out}` first")
    return tables


def findings_of(tables: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each claim with the experiment that decides it, as objects for JSON."""
    return [
        {
            "experiment": name,
            "command": table["command"],
            "claim": finding.claim,
            "holds": finding.holds,
            "numbers": finding.numbers,
        }
        for name, table in tables.items()
        for finding in FINDERS[name](table["rows"])
    ]


def page_of(tables: dict[str, dict[str, Any]]) -> str:
    """Return the page, in Markdown."""
    parts = [INTRODUCTION]
    for name, table in tables.items():
        parts.append(f"## {table['title']}\n\n`{table['command']}`\n")
        claims = FINDERS[name](table["rows"])
        lines = [f"| {_yes(one.holds)} | {one.claim} | {one.numbers} |" for one in claims]
        parts.append("\n".join(["| holds | claim | numbers |", "|---|---|---|", *lines]) + "\n")
        parts += SECTIONS.get(name, _by_stream)(table["rows"])
    return "\n".join(parts)


def _by_stream(rows: Sequence[JsonRow]) -> Iterator[str]:
    for stream, found in groupby(rows, key=lambda row: row["stream"]):
        yield "\n".join(_table(stream, list(found))) + "\n"


SECTIONS: Mapping[str, Callable[[Sequence[JsonRow]], Iterator[str]]] = MappingProxyType({"tried": by_learner})
"""Sections of experiments whose rows are not arranged by stream."""


def _yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def _table(stream: str, rows: Sequence[JsonRow]) -> Iterator[str]:
    parameters = [name for name in ("loss", "update_rate", "updates") if name in rows[0]]
    columns = [
        (heading, measure)
        for heading, measure in (
            ("authors", "mistakes_authors"),
            ("from the first", "mistakes"),
            ("asked for", "queries"),
            ("excess", "excess"),
        )
        if any(row.get(measure) is not None for row in rows)
    ]
    headings = [stream, *(name.replace("_", " ") for name in parameters), "B", "paper"]
    headings += [*(heading for heading, _ in columns), "seconds"]
    yield f"| {' | '.join(headings)} |"
    yield "|---" * len(headings) + "|"
    for row in rows:
        cells = [row["learner"], *(str(row[name]).replace("_", " ") for name in parameters)]
        cells += [
            str(row["budget"] or ""),
            _spread(row, "paper"),
            *(_spread(row, name) for _, name in columns),
        ]
        cells.append(f"{row['seconds']:.3f}")
        yield f"| {' | '.join(cells)} |"
    if rows[0]["majority"] is not None:
        at = [f"{rows[0]['majority']:.2f}" if name == "mistakes" else "" for _, name in columns]
        yield f"| {' | '.join(['majority class', *[''] * (len(parameters) + 2), *at, ''])} |"


def _spread(row: JsonRow, measure: str) -> str:
    mean = row.get(measure)
    return "" if mean is None else f"{mean:.2f} ± {row[f'{measure}_sd']:.2f}"
