"""Claims on FORKS, Table 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from research.findings.finding import (
    PAPERS_FIRST_ORDER,
    Finding,
    JsonRow,
    as_printed_of,
    best,
    comes_out,
    describe_row,
    fewer_mistakes,
    streams_of,
)

WORTHWHILE = 0.9
"""Share of the majority class' mistakes below which a learner counts as having learned."""
THIRD = 1.0 / 3.0


def find(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide the paper's claims on its Table 2, by its own count and from the first event."""
    for stream, learners in streams_of(rows).items():
        if "FORKS" in learners:
            yield from _of_forks(stream, learners)
    yield from _of_printed(rows)


def _of_forks(stream: str, learners: Mapping[str, JsonRow]) -> Iterator[Finding]:
    forks = learners["FORKS"]
    first_order = [learners[name] for name in PAPERS_FIRST_ORDER if name in learners]
    papers = [row for row in learners.values() if row["paper"] is not None]
    majority = float(forks["majority"])
    if len(papers) > 1:
        top = best(papers, "mistakes_authors")
        yield Finding(
            f"{stream}: by the authors' count FORKS makes the fewest mistakes of the paper's learners",
            top is forks,
            f"{describe_row(forks, 'mistakes_authors')}; the fewest: {describe_row(top, 'mistakes_authors')}",
        )
    if first_order:
        rival = best(first_order, "mistakes")
        yield Finding(
            f"{stream}: counted from the first event, FORKS makes fewer mistakes than the best first-order "
            "rival by a third",
            forks["mistakes"] <= (1.0 - THIRD) * rival["mistakes"],
            f"{describe_row(forks)}; {describe_row(rival)}",
        )
    if len(papers) > 1:
        top = best(papers, "mistakes")
        yield Finding(
            f"{stream}: counted from the first event, any of the paper's learners is a tenth below the "
            "majority class",
            top["mistakes"] < WORTHWHILE * majority,
            f"majority class {majority:.2f}; {describe_row(top)}",
        )
    yield Finding(
        f"{stream}: FORKS is below the majority class by the authors' count, and from the first event too",
        max(forks["mistakes_authors"], forks["mistakes"]) < majority,
        f"majority class {majority:.2f}; authors {forks['mistakes_authors']:.2f}, "
        f"from the first {forks['mistakes']:.2f}",
    )
    linear = [row for name, row in learners.items() if name.endswith(", linear")]
    if linear:
        straight = best(linear, "mistakes")
        yield fewer_mistakes(
            f"{stream}: FORKS makes fewer mistakes than any linear learner beside it",
            forks,
            straight,
        )
    if "FORKS practical" in learners and len(learners) > 2:
        practical = learners["FORKS practical"]
        rival = best([row for name, row in learners.items() if not name.startswith("FORKS")], "mistakes")
        yield fewer_mistakes(
            f"{stream}: the practical preset makes fewer mistakes than every rival",
            practical,
            rival,
        )
    if "PROS-N-KONS" in learners:
        second = learners["PROS-N-KONS"]
        yield Finding(
            f"{stream}: FORKS is faster than PROS-N-KONS",
            forks["seconds"] < second["seconds"],
            f"{second['seconds'] / forks['seconds']:.1f} times; printed: "
            f"{second['paper_seconds'] / forks['paper_seconds']:.1f} times",
        )


def _of_printed(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    printed = [row for row in rows if row["paper"] is not None and row["runs"] > 1]
    for name in dict.fromkeys(row["learner"] for row in printed):
        of_it = [row for row in printed if row["learner"] == name]
        yield Finding(
            f"{name}: the printed figures come out, by the authors' count, within two deviations",
            all(map(comes_out, of_it)),
            as_printed_of(of_it),
        )
