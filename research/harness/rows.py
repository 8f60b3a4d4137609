"""Results over all runs, summarised as the rows of a table."""

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
"""Decimal places of means and deviations in files."""
ALWAYS = ("mistakes", "mistakes_sd", "mistakes_authors", "seconds", "majority")
"""Columns of every row; null where an experiment does not measure them."""


@dataclass(frozen=True)
class Row:
    """Results of one learner on one stream, over all runs.

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
        """Return the row as an object for JSON; the deviation of a measure has the suffix ``_sd``.

        The majority belongs to the stream, so it has no deviation.
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
    """Summarise results by stream, learner, budget and key columns, in the order of their first trials.

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
    """Return rows as CSV with a header; a column that a row lacks is empty."""
    objects = [row.as_object() for row in rows]
    names = list(dict.fromkeys(name for one in objects for name in one))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(objects)
    return text.getvalue()
