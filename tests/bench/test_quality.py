from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.kuairec import Stream, in_time_order, permuted
from bench.quality import evaluate, play
from bench.rivals import entries


class Diary:
    """Notes what it predicts and learns."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, float]] = []

    def predict_one(self, x: float) -> float:
        self.notes.append(("asked", x))
        return x

    def learn_one(self, x: float, y: float) -> None:  # noqa: ARG002  # the protocol has it
        self.notes.append(("told", x))


def test_a_label_is_learned_when_the_play_has_ended(folder: Path) -> None:
    diary = Diary()
    scores = play(diary, [float(i) for i in range(12)], in_time_order(folder, delayed=True))
    assert diary.notes[:5] == [("asked", 0.0), ("asked", 1.0), ("asked", 2.0), ("told", 0.0), ("asked", 3.0)]
    assert sorted(diary.notes) == sorted((word, float(i)) for word in ("asked", "told") for i in range(12))
    np.testing.assert_array_equal(scores, np.arange(12.0))


def test_labels_at_once_come_before_the_next_event(folder: Path) -> None:
    diary = Diary()
    play(diary, [float(i) for i in range(12)], in_time_order(folder, delayed=False))
    assert diary.notes[:4] == [("asked", 0.0), ("told", 0.0), ("asked", 1.0), ("told", 1.0)]


def test_running_features_know_nothing_of_labels_to_come(folder: Path) -> None:
    at_once, delayed = (in_time_order(folder, delayed=flag) for flag in (False, True))
    np.testing.assert_array_equal(at_once.X[0], delayed.X[0])
    np.testing.assert_array_equal(delayed.X[:3], delayed.X[[0, 0, 0]])  # no label was there before the fourth
    assert not np.array_equal(at_once.X[1], at_once.X[0])


def test_a_permutation_keeps_pairs_with_their_labels(folder: Path) -> None:
    def rows(stream: Stream) -> list[tuple[tuple[int, int], float]]:
        return sorted(zip(stream.pairs, stream.y.tolist(), strict=True))

    assert rows(permuted(folder, 1)) == rows(in_time_order(folder, delayed=False))
    assert permuted(folder, 1).pairs != permuted(folder, 2).pairs


@pytest.mark.parametrize("name", entries(1))
def test_every_rival_plays(folder: Path, name: str) -> None:
    stream = in_time_order(folder, delayed=True)
    figures = evaluate(entries(12)[name], stream)
    assert 0.0 <= figures.mistakes <= 1.0
    assert figures.auc is not None
    assert (figures.log_loss is not None) == entries(12)[name].probable
