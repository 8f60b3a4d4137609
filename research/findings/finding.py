"""A claim that numbers decide, and the rows that they are taken from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

JsonRow: TypeAlias = Mapping[str, Any]
"""A row as `research.experiments.Row.as_object` gives it."""

FAR = 2.0
"""Deviations beyond which a figure does not come out as printed."""

PAPERS_FIRST_ORDER = ("RBP", "BPA-S", "Projectron", "BOGD", "FOGD", "NOGD", "SkeGD")
"""The first-order rivals of FORKS, Table 2."""


@dataclass(frozen=True)
class Finding:
    """A claim, whether it holds, and the numbers that say so.

    Attributes
    ----------
    claim
        Sentence without its full stop.
    holds
        Whether the numbers support the claim.
    numbers
        Numbers that decide the claim.
    """

    claim: str
    holds: bool
    numbers: str


Finder: TypeAlias = Callable[[Sequence[JsonRow]], Iterator[Finding]]
"""Decides what it can with the rows of an experiment; what lacks rows is left out."""


def streams_of(rows: Sequence[JsonRow]) -> dict[str, dict[str, JsonRow]]:
    """Return rows by stream and learner, both in the rows' order.

    Only for experiments in which these two tell all rows apart.
    """
    streams: dict[str, dict[str, JsonRow]] = {}
    for row in rows:
        streams.setdefault(row["stream"], {})[row["learner"]] = row
    return streams


def best(rows: Sequence[JsonRow], measure: str) -> JsonRow:
    """Return the row with the smallest measure."""
    return min(rows, key=lambda row: float(row[measure]))


def describe_row(row: JsonRow, measure: str = "mistakes") -> str:
    """Return learner, mean and deviation."""
    return f"{row['learner']} {row[measure]:.2f} ± {row[f'{measure}_sd']:.2f}"


def fewer_mistakes(claim: str, one: JsonRow, other: JsonRow) -> Finding:
    """Return whether one learner makes fewer mistakes than another, counted from the first event."""
    return Finding(claim, one["mistakes"] < other["mistakes"], f"{describe_row(one)}; {describe_row(other)}")


def as_printed(row: JsonRow) -> float:
    """Return how far the authors' count lies from the printed figure, in deviations of the two together.

    Examples
    --------
    >>> as_printed({"mistakes_authors": 12.0, "mistakes_authors_sd": 0.3, "paper": 11.0, "paper_sd": 0.4})
    2.0
    """
    spread = math.hypot(row["mistakes_authors_sd"], row["paper_sd"])
    return abs(float(row["mistakes_authors"]) - float(row["paper"])) / spread


def comes_out(row: JsonRow) -> bool:
    """Return whether the authors' count is as printed, within `FAR`; not where nothing is printed."""
    return row["paper"] is not None and as_printed(row) <= FAR


def as_printed_of(rows: Sequence[JsonRow]) -> str:
    """Return how many rows come out as printed, and what comes of the others."""
    off = [row for row in rows if not comes_out(row)]
    beside = [f"{row['stream']} {row['mistakes_authors']:.2f}, printed {row['paper']:.2f}" for row in off]
    return "; ".join([f"{len(rows) - len(off)} of {len(rows)} do", *beside])
