from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from forks.arrays import FloatArray, IntArray
from forks.experiments import graphs as experiment
from forks.experiments.graphs import Outcome, graphs, play, read_graph
from forks.rivals.graphs import GPA
from forks.rivals.graphs.learner import NodeRival
from tests.forks.rivals.graphs.small import NODES, ring_of_two_halves

CLASSES: IntArray = np.arange(NODES) * 3 // NODES


class Scripted(NodeRival):
    """Scores and asks as it is told, and keeps what it was taught."""

    def __init__(self, scores: FloatArray, asks: set[int]) -> None:
        super().__init__(np.eye(len(scores)))
        self.scores = scores
        self.asks = asks
        self.taught: list[tuple[int, float]] = []

    def _score(self, event: int) -> float:
        return float(self.scores[event])

    def _asks(self, node: int) -> bool:
        return node in self.asks

    def _learn(self, event: int, y: float, score: float) -> None:  # noqa: ARG002  # not looked at
        self.taught.append((event, y))


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


def test_the_largest_score_predicts_and_only_who_asks_is_taught() -> None:
    made = [
        Scripted(np.array([1.0, -0.1, 0.2, 0.0]), {0, 1}),
        Scripted(np.array([0.9, -0.2, 0.3, 0.0]), {1}),
        Scripted(np.array([-1.0, -0.3, 0.1, 0.0]), {3}),
    ]
    labels = np.array([0, 2, 1, 1])
    supply = iter(made)
    assert play(lambda: next(supply), labels, np.array([3, 1, 0, 2])) == (2, 3)  # nodes 1 and 3 are mistaken
    assert [learner.taught for learner in made] == [[(1, -1.0), (0, 1.0)], [(1, -1.0)], [(3, -1.0)]]


def test_every_learner_and_run_is_there_once_and_repeats(folder: Path) -> None:
    outcomes = list(graphs("cora", folder, 3, ridges=(1, 2)))
    assert [(o.learner, o.run) for o in outcomes] == [
        (name, run) for name in ("GPA", "OKL", "OKSG", "AKSG") for run in range(3)
    ]
    assert [o.events for o in outcomes] == [NODES] * 12
    assert all(o.queries == NODES for o in outcomes if o.learner in {"GPA", "OKL"})
    assert all(0 < o.mistakes <= NODES and 0 < o.queries <= NODES and o.seconds > 0 for o in outcomes)
    assert counts(outcomes) == counts(list(graphs("cora", folder, 3, ridges=(1, 2))))
    assert counts(outcomes) != counts(list(graphs("cora", folder, 3, ridges=(1, 2), seed=1)))


def test_a_run_does_not_depend_on_how_many_there_are(folder: Path) -> None:
    few, many = (counts(list(graphs("cora", folder, runs, ridges=(1,)))) for runs in (1, 2))
    assert few == [count for count in many if count[1] == 0]


def test_the_b_is_the_one_of_fewest_mistakes_on_the_held_out_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[tuple[float, int]] = []

    def make(kernel: FloatArray, ridge: float, seed: int) -> NodeRival:
        played.append((ridge, seed))
        return GPA(kernel if ridge == 2 else np.zeros_like(kernel))

    monkeypatch.setattr(experiment, "LEARNERS", {"some": make})
    (outcome,) = graphs("cora", folder, 1, ridges=(1, 2, 3))
    assert outcome.learner == "some"
    of_classes = [(1, 0)] * 3 + [(2, 0)] * 3 + [(3, 0)] * 3 + [(2, 1)] * 3  # which share seeds, and so coins
    assert played == of_classes


def test_on_coauthors_the_learners_come_out_as_measured(graph_files: Path) -> None:
    """Second order before first, OKSG near OKL with fewer labels, AKSG before all with fewer still.

    The kernel was chosen with this graph in sight: this guards what was measured, and confirms nothing.
    """
    outcomes = list(graphs("coauthor", graph_files, 2, ridges=(3,)))
    mistakes, queries = (
        {
            name: sum(getattr(o, what) for o in outcomes if o.learner == name)
            for name in ("GPA", "OKL", "OKSG", "AKSG")
        }
        for what in ("mistakes", "queries")
    )
    assert mistakes["AKSG"] < mistakes["OKL"] < mistakes["GPA"]
    assert abs(mistakes["OKSG"] - mistakes["OKL"]) < 0.1 * mistakes["OKL"]
    assert queries["AKSG"] < 0.75 * queries["OKSG"] < 0.75 * queries["OKL"]


def counts(outcomes: list[Outcome]) -> list[tuple[str, int, int, int]]:
    return [(o.learner, o.run, o.mistakes, o.queries) for o in outcomes]
