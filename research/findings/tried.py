"""Explanations of printed figures that are not reproduced, decided by the variants tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from research.findings.explanations import AS_IT_IS, EXPLANATIONS, WIDTH, Explanation
from research.findings.finding import Finding, JsonRow, as_printed_of, comes_out, describe_row
from research.harness.printed import TABLE_2

Tried: TypeAlias = Mapping[str, Mapping[str, Mapping[str, JsonRow]]]
"""Rows by learner, stream and change; of several widths, the row nearest to the printed figure."""

SMALL = 0.02
"""Difference of mistakes, in points of percent, that counts as none."""
STEADY = 10.0
"""Factor above the printed deviation from which the printed rows must be of something else."""


def find(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide which variants explain the printed figures."""
    tried = nearest(rows)
    yield from _of_all(tried)
    for finding, _ in explained(tried):
        yield finding
    yield from _of_one_width(rows)
    yield from _of_a_constant(tried)
    yield from _of_rare_columns(tried)


def explained(tried: Tried) -> Iterator[tuple[Finding, Explanation]]:
    """Decide which explanations hold, for learners with variants among the rows."""
    for explanation in EXPLANATIONS:
        chosen = list(_of(explanation.changes, tried.get(explanation.learner, {})))
        if chosen:
            off = {row["stream"] for row in chosen if not comes_out(row)}
            expected = set(explanation.besides) & {row["stream"] for row in chosen}
            yield Finding(explanation.claim, off == expected, as_printed_of(chosen)), explanation


def nearest(rows: Sequence[JsonRow]) -> Tried:
    """Group rows by learner, stream and change, and keep the nearest row of each group."""
    tried: dict[str, dict[str, dict[str, JsonRow]]] = {}
    for row in rows:
        changes = tried.setdefault(row["learner"], {}).setdefault(row["stream"], {})
        known = changes.get(row["change"])
        if known is None or _gap(row) < _gap(known):
            changes[row["change"]] = row
    return tried


def _gap(row: JsonRow) -> float:
    """Return the distance from the printed mean; deviations do not count, lest a wide one be preferred."""
    return 0.0 if row["paper"] is None else abs(float(row["mistakes_authors"] - row["paper"]))


def _of(changes: Sequence[str], streams: Mapping[str, Mapping[str, JsonRow]]) -> Iterator[JsonRow]:
    """Yield for each stream the row with one of these changes that is as printed, or else the nearest one."""
    for found in streams.values():
        chosen = [found[name] for name in changes if name in found]
        if chosen:
            yield min(chosen, key=lambda row: (not comes_out(row), _gap(row)))


def _of_all(tried: Tried) -> Iterator[Finding]:
    """Count the printed figures that are reproduced unchanged, and with any of the changes."""
    found = [list(changes.values()) for streams in tried.values() for changes in streams.values()]
    figures = [rows for rows in found if rows[0]["paper"] is not None]
    left = [rows[0] for rows in figures if not any(map(comes_out, rows))]
    if figures:
        at_once = sum(comes_out(row) for rows in figures for row in rows if row["change"] == AS_IT_IS)
        yield Finding(
            "each printed figure comes out with one of the things that were tried",
            not left,
            f"{len(figures)} figures; as it is {at_once} do, with one of them {len(figures) - len(left)}"
            + "".join(f"; not {row['learner']} on {row['stream']}" for row in left),
        )


def _of_one_width(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide whether one width for all learners of Table 2 reproduces a set, with any other change."""
    printed = [row for row in rows if row["paper"] is not None and row["stream"] in TABLE_2]
    for stream in dict.fromkeys(row["stream"] for row in printed):
        on = [row for row in printed if row["stream"] == stream]
        learners = {row["learner"] for row in on}
        by_width = {
            width: {row["learner"] for row in on if row["width"] == width and comes_out(row)}
            for width in sorted({row["width"] for row in on})
        }
        width = max(by_width, key=lambda width: len(by_width[width]))
        lacking = "".join(f"; not {learner}" for learner in sorted(learners - by_width[width]))
        yield Finding(
            f"{stream}: one width serves all learners, each with its best change",
            not lacking,
            f"{len(by_width[width])} of {len(learners)} at {width:g}{lacking}",
        )


def _of_a_constant(tried: Tried) -> Iterator[Finding]:
    """Decide what the printed figures of ijcnn1 are, where four learners have a deviation of 0.001."""
    on = {learner: streams["ijcnn1"] for learner, streams in tried.items() if "ijcnn1" in streams}
    if {"NOGD", "FORKS"} <= on.keys():
        rows = [on["FORKS"][AS_IT_IS], *on["NOGD"].values()]
        constant = [row for row in rows if abs(row["mistakes"] - row["majority"]) < SMALL]
        left_out = [
            f"{row['learner']}, {row['change']}, {row['mistakes'] - row['mistakes_authors']:.3f}"
            for row in constant
            if WIDTH not in row["change"]
        ]
        printed = [
            f"{row['learner']} {row['majority'] - row['paper']:.3f}"
            for row in (on["NOGD"][AS_IT_IS], on["FORKS"][AS_IT_IS])
        ]
        yield Finding(
            "ijcnn1: NOGD and FORKS say the majority class all along, and figures below it are what the "
            "count of a first stage leaves out",
            {"NOGD", "FORKS"} <= {row["learner"] for row in constant},
            f"points left out: {'; '.join(left_out)}; by the printed figures {', '.join(printed)}",
        )
    learning = [
        row
        for name in ("Projectron", "PROS-N-KONS")
        for row in on.get(name, {}).values()
        if row["mistakes"] < row["majority"] - SMALL
    ]
    if learning:
        steadiest = min(learning, key=lambda row: float(row["mistakes_sd"]))
        yield Finding(
            "ijcnn1: Projectron and PROS-N-KONS never undercut the majority class with so small a deviation "
            "as is printed, so the authors' rows were others",
            all(row["mistakes_sd"] > STEADY * row["paper_sd"] for row in learning),
            f"the smallest of those who do: {describe_row(steadiest)}; printed: {steadiest['paper']:.3f} ± "
            f"{steadiest['paper_sd']:.3f}; majority class {steadiest['majority']:.2f}",
        )


def _of_rare_columns(tried: Tried) -> Iterator[Finding]:
    """Decide whether standardising harms the practical preset on w7a, whose columns are 0 or, rarely, 1."""
    changes = tried.get("FORKS practical", {}).get("w7a")
    if changes is not None:
        standardised, plain = changes[AS_IT_IS], changes["columns as they are"]
        yield Finding(
            "w7a: standardised columns, which are rarely not 0, mislead the practical preset; with "
            "standardize = false it makes fewer mistakes than the majority class",
            plain["mistakes"] < plain["majority"] < standardised["mistakes"],
            f"{plain['mistakes']:.2f} ± {plain['mistakes_sd']:.2f}; standardised "
            f"{standardised['mistakes']:.2f} ± {standardised['mistakes_sd']:.2f}; "
            f"majority class {plain['majority']:.2f}",
        )
