"""FORKS, Figure 1: rates of change of the map, with TISVD and with a full decomposition."""

from __future__ import annotations

from collections.abc import Sequence

from research.experiments.fixed_budget import WIDTHS, budget_of, cycle_of
from research.harness.experiment import Data, Experiment
from research.harness.learners import papers_forks
from research.harness.panels import Panel, lines_of
from research.harness.rows import Row
from research.harness.streams import Permuted
from research.harness.trials import StreamTrial, Trial

RATES = (0.5, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0005)
"""theta; the paper gives the range, 0.5 to 0.0005, but not the values between."""
REFRESH = {"TISVD": 0, "full SVD": 1}
"""Changes of the map from one full decomposition of the sketch to the next; 0 for never."""


def _trials(stream: str, data: Data, runs: int) -> Sequence[Trial]:
    source = data.labelled(stream)
    rows = len(source.read().y)
    return [
        StreamTrial(
            Permuted(source),
            papers_forks(
                f"FORKS, {method}",
                budget_of(rows),
                width=WIDTHS[stream],
                cycle=cycle_of(rows, rate),
                refresh=refresh,
            ),
            run,
            (("update_rate", rate),),
        )
        for run in range(runs)
        for rate in RATES
        for method, refresh in REFRESH.items()
    ]


def _panels(rows: Sequence[Row]) -> list[Panel]:
    def rate(row: Row) -> float:
        return float(dict(row.key_columns)["update_rate"])

    label = "update rate θ (a change of the map each θ N events)"
    return [
        Panel("Mistakes from the first event", label, "percent", lines_of(rows, rate, "mistakes"), log="x"),
        Panel("Time", label, "seconds", lines_of(rows, rate, "seconds"), log="xy"),
    ]


FIGURE1 = Experiment(
    "Update rates, TISVD and full SVD (FORKS, Figure 1)", ("cod-rna",), _trials, panels=_panels
)
