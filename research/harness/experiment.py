"""The definition of an experiment: trials by stream, and the results that a paper prints for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from research.harness.graphs import GraphSource
from research.harness.panels import Panel
from research.harness.printed import PrintedResults
from research.harness.rows import Row
from research.harness.streams import Source, Stream
from research.harness.trials import Trial


class Data(Protocol):
    """Source of the data sets. If a set is missing, the error says where to get it."""

    def labelled(self, name: str) -> Source:
        """Return the source of a set of labelled vectors."""

    def plays(self) -> Stream:
        """Return the stream of KuaiRec's plays."""

    def graph(self, name: str) -> GraphSource:
        """Return the source of a graph whose nodes have classes."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Attributes
    ----------
    title
        Short description of the experiment.
    streams
        Names of the streams.
    trials
        Function that makes the trials of one stream, from its name, the data and the number of runs.
    printed
        Results that the paper prints.
    panels
        Function that makes the panels of the figure from the rows; None for an experiment with only a table.
    runs
        Default number of runs: that of the papers, unless it takes too long.
    """

    title: str
    streams: tuple[str, ...]
    trials: Callable[[str, Data, int], Sequence[Trial]]
    printed: PrintedResults = field(default_factory=dict)
    panels: Callable[[Sequence[Row]], list[Panel]] | None = None
    runs: int = 20
