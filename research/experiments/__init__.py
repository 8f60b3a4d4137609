"""The papers' experiments: FORKS and its rivals under the papers' settings.

An experiment is a list of trials. A trial, one learner on one stream in one run, is plain data that its
result follows from. Results are stored in a file and summarised as rows. Files of data sets and the display
of tables belong to `research.reproduce`.

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
"""Experiments by their names in `python -m research`."""

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
