"""Classification of a graph's nodes with selective label queries (Yang and Li, section 6).

The paper shows its results in figures without numbers. Where its text leaves something open, this module
decides:

- The text names no kernel; it says only that the diagonal is 1 and that d = 100 for all methods. Here all
  learners use the normalised kernel of the regularised Laplacian with rank 100. (The pseudo-inverse has no
  constant function, so that a learner for a class of few nodes has to learn from all others that they are not
  in it.) Kernel, rank and `RIDGE` were chosen among about a dozen variants after seeing the results on both
  graphs (docs/findings.md), so that agreement with the paper's text is no evidence of its kernel.
- One versus the rest: one learner for each class, and the largest score is the prediction, whether or not the
  label is queried. A node counts as queried once, if any of its learners queries its label; only these learn
  it. In a run the learners share a node's random number, so that the least certain one decides.
- h is 0.01, as in the paper. b is chosen for each learner and graph among 1 to 10, as in the paper: the value
  with the fewest mistakes on one held-out order.
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
"""Functions that make a learner from a kernel, the paper's b and a seed, by the learner's name."""


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
    """Source of a graph. It can be hashed and pickled cheaply, since it does not hold the graph itself."""

    @property
    def name(self) -> str:
        """Name of the graph."""

    @property
    def fingerprint(self) -> str:
        """Text that differs between different graphs."""

    def read(self) -> Graph:
        """Return the graph."""


@dataclass(frozen=True)
class GraphTrial:
    """One learner on a graph's nodes in random order, a `research.harness.trials.Trial`.

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
    """Return the b with the fewest mistakes on the held-out order."""
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
    """Return the random order of this number; number 0 is the held-out one."""
    rng = np.random.default_rng(0)
    return [rng.permutation(nodes) for _ in range(number + 1)][number]


def run_stream(make: Callable[[], NodeRival], labels: IntArray, order: IntArray) -> tuple[int, int]:
    """Run one learner for each class over the nodes; return the numbers of mistakes and of queried labels."""
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
