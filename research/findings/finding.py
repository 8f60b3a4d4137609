"""Findings: claims that the numbers of an experiment's rows decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

JsonRow: TypeAlias = Mapping[str, Any]
"""A row as returned by `research.experiments.Row.as_object`."""

FAR = 2.0
"""Standard deviations beyond which a figure does not count as reproduced."""

PAPERS_FIRST_ORDER = ("RBP", "BPA-S", "Projectron", "BOGD", "FOGD", "NOGD", "SkeGD")
"""The first-order rivals of FORKS, Table 2."""


@dataclass(frozen=True)
class Finding:
    """A claim, whether it holds, and the numbers that decide it.

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
"""Function that decides claims from the rows of an experiment; claims without rows are left out."""


def streams_of(rows: Sequence[JsonRow]) -> dict[str, dict[str, JsonRow]]:
    """Return rows by stream and learner, both in the rows' order.

    Only for experiments in which these two identify each row.
    """
    streams: dict[str, dict[str, JsonRow]] = {}
    for row in rows:
        streams.setdefault(row["stream"], {})[row["learner"]] = row
    return streams


def best(rows: Sequence[JsonRow], measure: str) -> JsonRow:
    """Return the row with the smallest measure."""
    return min(rows, key=lambda row: float(row[measure]))


def describe_row(row: JsonRow, measure: str = "mistakes") -> str:
    """Return learner, mean and standard deviation as text."""
    return f"{row['learner']} {row[measure]:.2f} ± {row[f'{measure}_sd']:.2f}"


def fewer_mistakes(claim: str, one: JsonRow, other: JsonRow) -> Finding:
    """Return a finding: whether one learner makes fewer mistakes than another, from the first event."""
    return Finding(claim, one["mistakes"] < other["mistakes"], f"{describe_row(one)}; {describe_row(other)}")


def as_printed(row: JsonRow) -> float:
    """Return the distance of the authors' count from the printed figure, in units of their joint deviation.

    Examples
    --------
    >>> as_printed({"mistakes_authors": 12.0, "mistakes_authors_sd": 0.3, "paper": 11.0, "paper_sd": 0.4})
    2.0
    """
    spread = math.hypot(row["mistakes_authors_sd"], row["paper_sd"])
    return abs(float(row["mistakes_authors"]) - float(row["paper"])) / spread


def comes_out(row: JsonRow) -> bool:
    """Return whether the authors' count is as printed, within `FAR`; False where nothing is printed."""
    return row["paper"] is not None and as_printed(row) <= FAR


def as_printed_of(rows: Sequence[JsonRow]) -> str:
    """Return how many rows are as printed, and the figures of the others, as text."""
    off = [row for row in rows if not comes_out(row)]
    beside = [f"{row['stream']} {row['mistakes_authors']:.2f}, printed {row['paper']:.2f}" for row in off]
    return "; ".join([f"{len(rows) - len(off)} of {len(rows)} do", *beside])
