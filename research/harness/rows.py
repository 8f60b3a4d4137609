"""Results over runs, summed up as the rows of a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from research.harness.printed import Printed, PrintedResults
from research.harness.trials import KeyColumns, Result, Trial

DIGITS = 4
"""Of means and deviations, behind the point."""
ALWAYS = ("mistakes", "mistakes_sd", "mistakes_authors", "seconds", "majority")
"""Columns that each row has, null where an experiment does not measure it."""


@dataclass(frozen=True)
class Row:
    """One learner on one stream, over runs.

    Attributes
    ----------
    stream, learner
        Names in the tables.
    budget
        Budget of the learner; None if it has none.
    key_columns
        Names and values of further columns that identify the row.
    runs
        Number of runs.
    means
        Mean of each measure; mistakes of any kind in percent.
    deviations
        Standard deviation of each measure over the runs.
    printed
        Result that the paper prints; None if it prints none.
    """

    stream: str
    learner: str
    budget: int | None
    key_columns: KeyColumns
    runs: int
    means: Mapping[str, float]
    deviations: Mapping[str, float]
    printed: Printed | None

    def as_object(self) -> dict[str, Any]:
        """Return the row as JSON holds it: a measure's deviation is called as the measure, with ``_sd``.

        The majority is one of the stream, so it has no deviation.
        """
        measures: dict[str, float] = {}
        for name, mean in self.means.items():
            measures[name] = round(mean, DIGITS)
            if name != "majority":
                measures[f"{name}_sd"] = round(self.deviations[name], DIGITS)
        printed = self.printed
        return {
            "stream": self.stream,
            "learner": self.learner,
            "budget": self.budget,
            **dict(self.key_columns),
            "runs": self.runs,
            **dict.fromkeys(ALWAYS),
            **measures,
            "paper": printed.mean if printed else None,
            "paper_sd": printed.deviation if printed else None,
            "paper_seconds": printed.seconds if printed else None,
        }


def rows_of(results: Iterable[tuple[Trial, Result]], printed: PrintedResults) -> list[Row]:
    """Sum up results by stream, learner, budget and place, in the order in which these first come.

    Parameters
    ----------
    results
        Trials and their results.
    printed
        Results that the paper prints.
    """
    groups: dict[tuple[str, str, int | None, KeyColumns], list[Result]] = {}
    for trial, result in results:
        groups.setdefault((trial.stream, trial.learner, trial.budget, trial.key_columns), []).append(result)
    rows = []
    for (stream, learner, budget, key_columns), found in groups.items():
        measures = {name: np.array([result[name] for result in found]) for name in found[0]}
        rows.append(
            Row(
                stream,
                learner,
                budget,
                key_columns,
                len(found),
                {name: float(values.mean()) for name, values in measures.items()},
                {name: float(values.std()) for name, values in measures.items()},
                printed.get(stream, {}).get(learner),
            )
        )
    return rows


def as_csv(rows: Sequence[Row]) -> str:
    """Return rows as text with a line of names; what a row does not have is empty."""
    objects = [row.as_object() for row in rows]
    names = list(dict.fromkeys(name for one in objects for name in one))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(objects)
    return text.getvalue()
