"""Claims on FORKS, Tables 3 and 4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from research.findings.finding import Finding, JsonRow, best, fewer_mistakes, streams_of

PAPERS = ("BOGD", "NOGD", "SkeGD, theta = 0.005", "PROS-N-KONS")
"""Rivals of FORKS in its Table 3."""
TRACKING, CARRIED, RESET = "FORKS practical", "FORKS practical, no tracking", "FORKS practical, reset"


def find(rows: Sequence[JsonRow]) -> Iterator[Finding]:
    """Decide the paper's claims on its Tables 3 and 4, and in which rounds of a block the mistakes are."""
    for stream, learners in streams_of(rows).items():
        if "FORKS" in learners:
            yield from _of_forks(stream, learners)


def _of_forks(stream: str, learners: Mapping[str, JsonRow]) -> Iterator[Finding]:
    forks = learners["FORKS"]
    beside = [learners[name] for name in PAPERS if name in learners]
    if beside:
        rival = best(beside, "mistakes")
        yield fewer_mistakes(
            f"{stream}: counted from the first event, FORKS makes fewer mistakes than the four of Table 3",
            forks,
            rival,
        )
    others = [row for name, row in learners.items() if not name.startswith("FORKS")]
    if others:
        rival = best(others, "mistakes")
        yield fewer_mistakes(
            f"{stream}: counted from the first event, FORKS makes fewer mistakes than every rival",
            forks,
            rival,
        )
    yield Finding(
        f"{stream}: in the fifth round of a block FORKS is wrong less than one time in ten",
        forks["place_5"] < 10.0,
        f"wrong in rounds 1, 2, 3, 5: {_round_rates(forks)}; a block's first label is a coin toss",
    )
    if "FORKS, stage 1 of B" in learners:
        longer, shorter = forks, learners["FORKS, stage 1 of B"]
        yield Finding(
            f"{stream}: a longer stage 1 is better by the authors' count and worse from the first event",
            longer["mistakes"] > shorter["mistakes"]
            and longer["mistakes_authors"] < shorter["mistakes_authors"],
            f"2 B and B points: authors {longer['mistakes_authors']:.2f}, {shorter['mistakes_authors']:.2f}; "
            f"from the first {longer['mistakes']:.2f}, {shorter['mistakes']:.2f}",
        )
    if {TRACKING, CARRIED, RESET} <= learners.keys():
        tracking, carried, reset = learners[TRACKING], learners[CARRIED], learners[RESET]
        yield fewer_mistakes(
            f"{stream}: without tracking, resetting is better than carrying over where labels flip",
            reset,
            carried,
        )
        yield fewer_mistakes(
            f"{stream}: the practical preset, which tracks changes, is better than resetting",
            tracking,
            reset,
        )


def _round_rates(row: JsonRow) -> str:
    return ", ".join(f"{row[f'place_{round_number}']:.1f}%" for round_number in (1, 2, 3, 5))
