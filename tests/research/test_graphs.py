from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from forks.arrays import FloatArray, IntArray
from research.harness import graphs as experiment
from research.harness.graphs import LEARNERS, Graph, GraphTrial, chosen_b, read_graph, run_stream
from research.harness.trials import Result
from research.reproduce import DataFolder
from research.rivals.graphs import GPA
from research.rivals.graphs.learner import NodeRival
from tests.research.rivals.graphs.small import NODES, ring_of_two_halves

CLASSES: IntArray = np.arange(NODES) * 3 // NODES


class Scripted(NodeRival):
    """Scores and queries by a script, and records the labels that it learns."""

    def __init__(self, scores: FloatArray, queries: set[int]) -> None:
        super().__init__(np.eye(len(scores)))
        self.scores = scores
        self.queried_nodes = queries
        self.learned: list[tuple[int, float]] = []

    def _score(self, event: int) -> float:
        return float(self.scores[event])

    def _queries(self, node: int) -> bool:
        return node in self.queried_nodes

    def _learn(self, event: int, y: float, _score: float, _weight: float, /) -> None:
        self.learned.append((event, y))


@dataclass(frozen=True)
class Ring:
    """The small graph as a source."""

    name: str = "ring"
    fingerprint: str = "0"

    def read(self) -> Graph:
        return Graph(ring_of_two_halves(), CLASSES)


def without_seconds(trial: GraphTrial) -> Result:
    return {name: value for name, value in trial.result().items() if name != "seconds"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Holds the small graph under the name of a large one."""
    adjacency = ring_of_two_halves()
    np.savez(
        tmp_path / "cora.npz",
        data=adjacency.data.astype(np.int8),
        indices=adjacency.indices,
        indptr=adjacency.indptr,
        shape=adjacency.shape,
        labels=CLASSES.astype(np.int8),
    )
    return tmp_path


def test_a_graph_is_read_as_it_was_written(folder: Path) -> None:
    graph = read_graph(folder / "cora.npz")
    assert (graph.adjacency.toarray() == ring_of_two_halves().toarray()).all()
    assert graph.adjacency.dtype == np.float64
    assert graph.labels.tolist() == CLASSES.tolist()


def test_the_largest_score_predicts_and_only_learners_that_query_learn() -> None:
    made = [
        Scripted(np.array([1.0, -0.1, 0.2, 0.0]), {0, 1}),
        Scripted(np.array([0.9, -0.2, 0.3, 0.0]), {1}),
        Scripted(np.array([-1.0, -0.3, 0.1, 0.0]), {3}),
    ]
    labels = np.array([0, 2, 1, 1])
    supply = iter(made)
    assert run_stream(lambda: next(supply), labels, np.array([3, 1, 0, 2])) == (
        2,
        3,
    )  # nodes 1 and 3 are mistaken
    assert [learner.learned for learner in made] == [[(1, -1.0), (0, 1.0)], [(1, -1.0)], [(3, -1.0)]]


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_run_is_the_same_again_and_its_figures_are_shares_of_all_nodes(learner: str) -> None:
    found = without_seconds(GraphTrial(Ring(), learner, 0, (1, 2)))
    assert found == without_seconds(GraphTrial(Ring(), learner, 0, (1, 2)))
    assert found["queries"] == 100.0 if learner in {"GPA", "OKL"} else 0.0 < found["queries"] <= 100.0
    nodes = found["mistakes"] * NODES / 100.0
    assert nodes == pytest.approx(round(nodes))
    assert found["majority"] == pytest.approx(100.0 * (1.0 - np.bincount(CLASSES).max() / NODES))


def test_each_run_has_an_order_of_its_own() -> None:
    mistakes = {GraphTrial(Ring(), "GPA", run, (1,)).result()["mistakes"] for run in range(6)}
    assert len(mistakes) > 1


def test_all_that_decides_is_in_the_key() -> None:
    trials = [GraphTrial(Ring(), "GPA", 0), GraphTrial(Ring(), "GPA", 1), GraphTrial(Ring(), "OKL", 0)]
    trials += [
        GraphTrial(Ring("other"), "GPA", 0),
        GraphTrial(Ring("ring", "1"), "GPA", 0),
        GraphTrial(Ring(), "GPA", 0, (1,)),
    ]
    keys = [trial.key() for trial in trials]
    assert all(one != other for i, one in enumerate(keys) for other in keys[:i])


def test_the_b_is_the_one_of_fewest_mistakes_on_the_held_out_order(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[float, int]] = []

    def make(kernel: FloatArray, ridge: float, seed: int) -> NodeRival:
        played.append((ridge, seed))
        return GPA(kernel if ridge == 2 else np.zeros_like(kernel))

    monkeypatch.setattr(experiment, "LEARNERS", {"some": make})
    GraphTrial(Ring(), "some", 0, (1, 2, 3)).result()
    of_classes = (
        [(1, 0)] * 3 + [(2, 0)] * 3 + [(3, 0)] * 3 + [(2, 1)] * 3
    )  # which share seeds, and so random numbers
    assert played == of_classes
    assert chosen_b(Ring(), "some", (1, 2, 3)) == 2


def test_on_coauthors_the_learners_come_out_as_measured(graph_files: Path) -> None:
    """Second order before first, OKSG near OKL with fewer labels, AKSG before all with fewer still.

    The kernel was chosen with this graph in sight: this guards what was measured, and confirms nothing.
    """
    source = DataFolder(graph_files.parent).graph("coauthor")
    mistakes, queries = (
        {
            name: sum(GraphTrial(source, name, run, (3,)).result()[what] for run in range(2))
            for name in LEARNERS
        }
        for what in ("mistakes", "queries")
    )
    assert mistakes["AKSG"] < mistakes["OKL"] < mistakes["GPA"]
    assert abs(mistakes["OKSG"] - mistakes["OKL"]) < 0.1 * mistakes["OKL"]
    assert queries["AKSG"] < 0.75 * queries["OKSG"] < 0.75 * queries["OKL"]
