from __future__ import annotations

import numpy as np

from research.harness.counting import StreamResult
from research.harness.streams import Flipped, Permuted
from tests.research.invented import Invented


def test_the_adversary_repeats_an_instance_and_flips_every_other_block() -> None:
    row_stream = Flipped(Invented(), "invented-1", 500, 10).rows(0)
    blocks, labels = row_stream.X.reshape(500, 10), row_stream.y.reshape(500, 10)
    assert np.array_equal(blocks, np.repeat(blocks[:, :1], 10, axis=1))
    assert len(np.unique(blocks)) == 500
    truth = Invented().read().y[blocks.astype(int)]
    np.testing.assert_array_equal(labels[0::2], truth[0::2])
    np.testing.assert_array_equal(labels[1::2], -truth[1::2])


def test_a_game_in_file_order_uses_the_first_rows_in_each_run() -> None:
    game = Flipped(Invented(), "invented-1", 500, 10, file_order=True)
    first, second = game.rows(0), game.rows(1)
    np.testing.assert_array_equal(first.X[::10, 0], np.arange(500))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    flips = np.where(np.arange(500) % 2 == 0, 1.0, -1.0)
    np.testing.assert_array_equal(first.y[::10], Invented().read().y[:500] * flips)


def test_mistakes_are_measured_by_round_in_a_block() -> None:
    wrong = np.array([1, 0, 0, 0, 0, 1, 1, 0, 0, 1], dtype=np.float64)  # two blocks of five
    measures = Flipped(Invented(), "invented-1", 2, 5).measures(StreamResult(wrong, 0, 0.0))
    assert measures == {"place_1": 100.0, "place_2": 50.0, "place_3": 0.0, "place_5": 50.0}


def test_runs_are_permutations_of_their_own_that_come_again() -> None:
    stream = Permuted(Invented())
    first, second, again = stream.rows(0), stream.rows(1), stream.rows(0)
    assert sorted(first.X[:, 0].tolist()) == list(range(600))
    assert not np.array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, np.where(first.X[:, 0] % 3 == 0, 1.0, -1.0))


def test_other_data_and_other_games_have_other_keys() -> None:
    keys = [
        Permuted(Invented()).key(),
        Permuted(Invented(fingerprint="1")).key(),
        Flipped(Invented(), "a", 500, 10).key(),
        Flipped(Invented(), "a", 500, 20).key(),
        Flipped(Invented(), "a", 500, 20, file_order=True).key(),
    ]
    assert all(one != other for i, one in enumerate(keys) for other in keys[:i])
