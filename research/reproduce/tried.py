"""The variants tried for each learner, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from research.findings import JsonRow
from research.findings.finding import comes_out
from research.findings.tried import explained, nearest

READING_GUIDE: Final = """\
One setting is changed at a time, on the streams of the tables above and with their seeds; mistakes are
counted as the authors do. **Bold** is within two standard deviations, of both figures together, of the
printed figure. "Another width" is the one of 2^0 to 2^7, in steps of 2^0.5, that comes nearest to the printed
figure; it stands in brackets. It is chosen for each cell after seeing the result: it shows that a figure is
possible with a setting that the papers leave open, not that it was obtained that way. An explanation without
such a choice is better.
"""


def by_learner(rows: Sequence[JsonRow]) -> Iterator[str]:
    """Yield a reading guide and a table for each learner: a row for each stream, a column for each change."""
    yield READING_GUIDE
    tried = nearest(rows)
    why = {one.learner: one.why for finding, one in explained(tried) if finding.holds}
    names = list(tried)
    for learner in sorted(names, key=lambda name: names.index(name.partition(", ")[0])):
        yield "\n".join(_table(learner, tried[learner])) + "\n"
        if learner in why:
            yield why[learner] + "\n"


def _table(learner: str, streams: Mapping[str, Mapping[str, JsonRow]]) -> Iterator[str]:
    changes = list(dict.fromkeys(change for found in streams.values() for change in found))
    yield f"| {' | '.join([learner, 'paper', *changes])} |"
    yield "|---" * (2 + len(changes)) + "|"
    for stream, found in streams.items():
        first = next(iter(found.values()))
        printed = "" if first["paper"] is None else f"{first['paper']:.2f} ± {first['paper_sd']:.2f}"
        cells = [_cell(found[change], first["width"]) if change in found else "" for change in changes]
        yield f"| {' | '.join([stream, printed, *cells])} |"


def _cell(row: JsonRow, own_width: float) -> str:
    counted = row["mistakes" if row["paper"] is None else "mistakes_authors"]
    count = f"**{counted:.2f}**" if comes_out(row) else f"{counted:.2f}"
    return count if row["width"] == own_width else f"{count} ({row['width']:g})"
