"""Yang and Li, Figure 1: mistakes and queried labels on two graphs."""

from __future__ import annotations

from collections.abc import Sequence

from research.harness.experiment import Data, Experiment
from research.harness.graphs import LEARNERS, GraphTrial
from research.harness.panels import Panel, lines_of
from research.harness.rows import Row
from research.harness.trials import Trial


def _trials(stream: str, data: Data, runs: int) -> Sequence[Trial]:
    graph = data.graph(stream)
    return [GraphTrial(graph, learner, run) for run in range(runs) for learner in LEARNERS]


def _panels(rows: Sequence[Row]) -> list[Panel]:
    def panel(graph: str) -> Panel:
        chosen = [row for row in rows if row.stream == graph]
        lines = lines_of(chosen, lambda row: row.means["queries"], "mistakes")
        return Panel(graph, "labels asked for, percent", "mistakes, percent", lines)

    return [panel(graph) for graph in dict.fromkeys(row.stream for row in rows)]


GRAPHS = Experiment(
    "Labels of nodes, some of them asked for (Yang and Li, Figure 1)",
    ("cora", "coauthor"),
    _trials,
    panels=_panels,
)
