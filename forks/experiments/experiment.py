"""What an experiment is: cells by stream, and what a paper prints for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from forks.experiments.cells import Cell
from forks.experiments.graphs import GraphSource
from forks.experiments.panels import Panel
from forks.experiments.printed import Figures
from forks.experiments.rows import Row
from forks.experiments.streams import Source, Stream


class Data(Protocol):
    """Where the sets are. Each method raises an error that says what to get where a set is not there."""

    def labelled(self, name: str) -> Source:
        """Return a set of vectors with labels."""

    def plays(self) -> Stream:
        """Return KuaiRec's plays."""

    def graph(self, name: str) -> GraphSource:
        """Return a graph whose nodes have classes."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Parameters
    ----------
    title : what it is, in a few words
    streams : names
    cells : of one stream, by its name, with the data and the number of runs
    printed : figures of the paper
    panels : what its figure shows, from its rows; None for what is a table only
    runs : how many are worked out if nothing is said, as many as the papers' unless that takes too long
    """

    title: str
    streams: tuple[str, ...]
    cells: Callable[[str, Data, int], Sequence[Cell]]
    printed: Figures = field(default_factory=dict)
    panels: Callable[[Sequence[Row]], list[Panel]] | None = None
    runs: int = 20
