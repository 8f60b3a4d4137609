"""Claims on FORKS, Figures 1 to 3, and on the graphs of Yang and Li."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from research.findings.finding import Finding, JsonRow, best, describe_row, fewer_mistakes, streams_of
from research.harness.graphs import UNSURE


def find_update_rates(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide the paper's claims on Figure 1."""
    by_rate: dict[float, dict[str, JsonRow]] = {}
    for row in rows:
        by_rate.setdefault(row["update_rate"], {})[row["learner"]] = row
    pairs = {
        rate: (row["FORKS, TISVD"], row["FORKS, full SVD"]) for rate, row in by_rate.items() if len(row) == 2
    }
    if not pairs:
        return
    gap = max(abs(ours["mistakes"] - full["mistakes"]) for ours, full in pairs.values())
    yield Finding(
        "TISVD costs less than half a point of mistakes against a full SVD, whatever the update rate",
        gap < 0.5,
        f"at most {gap:.2f} points",
    )
    often, seldom = min(pairs), max(pairs)
    ours, full = pairs[often]
    yield Finding(
        f"at the highest rate of changes (θ = {often}) TISVD takes less time",
        ours["seconds"] < full["seconds"],
        f"FORKS in all {ours['seconds']:.2f} s, {full['seconds']:.2f} s with a full SVD",
    )
    yield Finding(
        "changing the map more often makes more mistakes, as each change resets what was learned",
        ours["mistakes"] > pairs[seldom][0]["mistakes"],
        f"θ = {seldom}: {pairs[seldom][0]['mistakes']:.2f}; θ = {often}: {ours['mistakes']:.2f}",
    )


def find_budgets(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide the paper's claims on Figure 2."""
    for loss in dict.fromkeys(row["loss"] for row in rows if row["loss"] != "logistic"):
        chosen = [row for row in rows if row["loss"] == loss]
        if any(row["learner"] == "FORKS" for row in chosen):
            yield from _of_loss(loss.replace("_", " "), chosen)
    at_100 = {row["loss"]: row for row in rows if row["learner"] == "FORKS" and row["budget"] == 100}
    if {"hinge", "squared_hinge"} <= at_100.keys():
        squared, hinge = at_100["squared_hinge"], at_100["hinge"]
        yield Finding(
            "squared hinge loss, which is exp-concave, serves FORKS better than hinge (B = 100)",
            squared["mistakes"] < hinge["mistakes"],
            f"squared hinge {squared['mistakes']:.2f}, hinge {hinge['mistakes']:.2f}",
        )
    yield from _of_curvature(rows)
    practical = [row for row in rows if row["learner"] == "FORKS practical"]
    others = [row for row in rows if row["learner"] != "FORKS practical"]
    if practical and others:
        ours, other = best(practical, "mistakes"), best(others, "mistakes")
        yield Finding(
            "the practical preset makes fewer mistakes than all others",
            ours["mistakes"] < other["mistakes"],
            f"{_at(ours)}; {_at(other)}",
        )


def _of_loss(loss: str, rows: Sequence[JsonRow]) -> Iterator[Finding]:
    forks = [row for row in rows if row["learner"] == "FORKS"]
    bounded = [row for row in rows if row["learner"] == "FORKS, C = 1"]
    rivals = [row for row in rows if row["learner"] in {"BOGD", "FOGD", "NOGD", "SkeGD"}]
    top = best(forks, "mistakes")
    if rivals:
        yield _ahead(
            f"{loss} loss: at every budget FORKS makes fewer mistakes than the first-order rivals",
            forks,
            rivals,
        )
    if rivals and bounded:
        yield _ahead(
            f"{loss} loss: with scores kept in [-1, 1] (C = 1) FORKS does so",
            bounded,
            rivals,
        )
    for second in (row for row in rows if row["learner"] == "PROS-N-KONS"):
        yield Finding(
            f"{loss} loss: FORKS makes no more mistakes than PROS-N-KONS in a third of its time",
            any(
                row["mistakes"] <= second["mistakes"] and 3.0 * row["seconds"] <= second["seconds"]
                for row in forks
            ),
            f"{describe_row(second)} in {second['seconds']:.2f} s; {_at(top)} in {top['seconds']:.2f} s",
        )


def _of_curvature(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide whether bounded scores help squared hinge loss, whose slope grows with the scores."""
    bounded = [row for row in rows if row["learner"] == "FORKS, C = 1" and row["loss"] == "squared_hinge"]
    hinge = [row for row in rows if row["learner"].startswith("FORKS") and row["loss"] == "hinge"]
    if bounded and hinge:
        squared, linear = best(bounded, "mistakes"), best(hinge, "mistakes")
        yield Finding(
            "with scores kept in [-1, 1], squared hinge serves FORKS better than hinge, at the best budgets",
            squared["mistakes"] < linear["mistakes"],
            f"squared hinge {_at(squared)}; hinge {_at(linear)}",
        )


def _ahead(claim: str, forks: Sequence[JsonRow], rivals: Sequence[JsonRow]) -> Finding:
    least = {row["budget"]: math.inf for row in forks}
    for row in rivals:
        least[row["budget"]] = min(least.get(row["budget"], math.inf), row["mistakes"])
    ahead = sum(row["mistakes"] < least[row["budget"]] for row in forks)
    numbers = f"{_at(best(forks, 'mistakes'))}, {_at(best(rivals, 'mistakes'))}"
    return Finding(claim, ahead == len(forks), f"at {ahead} of {len(forks)} budgets; {numbers}")


def find_decompositions(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide the paper's claims on Figure 3."""
    most = max((row["updates"] for row in rows), default=0)
    methods = {row["learner"]: row for row in rows if row["updates"] == most}
    if "TISVD" not in methods:
        return
    ours = methods.pop("TISVD")
    for name, other in methods.items():
        yield Finding(
            f"over {most:,} changes TISVD is faster than {name}",
            ours["seconds"] < other["seconds"],
            f"{other['seconds'] / ours['seconds']:.1f} times; at the end further from the matrix than "
            f"the best of its rank by {ours['excess']:.1f}% and {max(other['excess'], 0.0):.1f}%",
        )


def find_graphs(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide the claims of Yang and Li on their Figure 1."""
    for graph, learners in streams_of(rows).items():
        if not {"GPA", "OKL", "OKSG", "AKSG"} <= learners.keys():
            continue
        gpa, okl, oksg, aksg = (learners[name] for name in ("GPA", "OKL", "OKSG", "AKSG"))
        yield fewer_mistakes(
            f"{graph}: second order makes fewer mistakes than first order",
            okl,
            gpa,
        )
        yield Finding(
            f"{graph}: OKSG makes less than a point more mistakes than OKL, with fewer labels",
            oksg["mistakes"] - okl["mistakes"] < 1.0 and oksg["queries"] < okl["queries"],
            f"{describe_row(oksg)}, asks for {oksg['queries']:.1f}%; {describe_row(okl)}",
        )
        yield fewer_mistakes(
            f"{graph}: OKL, which asks for all labels, makes fewer mistakes than OKSG", okl, oksg
        )
        if UNSURE in learners:
            yield fewer_mistakes(
                f"{graph}: OKL makes fewer mistakes if it does not learn from those that it was sure of, "
                "which OKSG seldom asks for",
                learners[UNSURE],
                okl,
            )
        yield Finding(
            f"{graph}: AKSG makes the fewest mistakes with the fewest labels",
            all(
                aksg[measure] < row[measure]
                for row in (gpa, okl, oksg)
                for measure in ("mistakes", "queries")
            ),
            f"{describe_row(aksg)}, asks for {aksg['queries']:.1f}%",
        )


def _at(row: JsonRow) -> str:
    return f"{describe_row(row)} (B = {row['budget']})"
