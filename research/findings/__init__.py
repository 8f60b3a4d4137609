"""Claims of the papers, each decided by the rows of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from research.findings import adversary, figures, fixed_budget, tried
from research.findings.finding import Finder, Finding, JsonRow

FINDERS: Mapping[str, Finder] = MappingProxyType(
    {
        "table2": fixed_budget.find,
        "table3": adversary.find,
        "table4": adversary.find,
        "tried": tried.find,
        "figure1": figures.find_update_rates,
        "figure2": figures.find_budgets,
        "figure3": figures.find_decompositions,
        "graphs": figures.find_graphs,
    }
)
"""Functions that decide the claims, by the experiment's name."""

__all__ = ["FINDERS", "Finder", "Finding", "JsonRow"]
