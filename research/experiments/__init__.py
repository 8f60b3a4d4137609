"""The papers' experiments: FORKS and its rivals under their settings, counted in both ways.

An experiment is a list of cells; a cell, a learner on a stream in one run, is plain data from which its
result follows; results are kept in a file, and summed up as rows. Nothing here knows where files are or
how a terminal shows a table: that is `research.reproduce`.

References
----------
FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, section 5 and appendices B, H, J.
Zhang and Liao, Incremental Randomized Sketching for Online Kernel Learning (SkeGD), ICML 2019, supplement.
Yang and Li, online kernel learning on graphs (OKL, OKSG, AKSG), section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from research.experiments.adversary import TABLE3, TABLE4
from research.experiments.budgets import FIGURE2
from research.experiments.decompositions import FIGURE3
from research.experiments.fixed_budget import TABLE2
from research.experiments.graphs import GRAPHS
from research.experiments.tried import TRIED
from research.experiments.update_rate import FIGURE1
from research.harness.experiment import Data, Experiment
from research.harness.panels import Line, Panel
from research.harness.rows import Row, as_csv, rows_of
from research.harness.runner import run_missing
from research.harness.store import Store, StoreError

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        "table2": TABLE2,
        "table3": TABLE3,
        "table4": TABLE4,
        "tried": TRIED,
        "figure1": FIGURE1,
        "figure2": FIGURE2,
        "figure3": FIGURE3,
        "graphs": GRAPHS,
    }
)
"""By the name under which `python -m research` runs them."""

__all__ = [
    "EXPERIMENTS",
    "Data",
    "Experiment",
    "Line",
    "Panel",
    "Row",
    "Store",
    "StoreError",
    "as_csv",
    "rows_of",
    "run_missing",
]
