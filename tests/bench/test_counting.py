from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.adversarial import BLOCKS, ROUNDS, stream
from bench.counting import play
from bench.sets import Labelled, read_set
from forks import Forks, ForksSettings


def noise(events: int) -> Labelled:
    chance = np.random.default_rng(0)
    return Labelled(chance.normal(size=(events, 3)), chance.choice([-1.0, 1.0], events))


def test_the_authors_count_forgives_stage_one_and_divides_by_all_rounds() -> None:
    data = noise(300)
    settings = ForksSettings.paper(3, budget=20, cycle=100)
    scores = Forks(settings).predict_and_learn_many(data.X, data.y)
    wrong = (scores > 0) != (data.y > 0)
    played = play(Forks(settings), data)
    np.testing.assert_array_equal(played.wrong, wrong)
    # Nothing is scored beyond the hinge before the budget is full, so stage 1 stores every point or nearly.
    assert 20 <= played.stage_one < 40
    assert played.honest == wrong.mean()
    assert played.authors == wrong[played.stage_one :].sum() / 300


def test_the_adversary_repeats_an_instance_and_flips_every_other_block() -> None:
    data = Labelled(np.arange(600.0)[:, None], np.where(np.arange(600) % 3 == 0, 1.0, -1.0))
    shown = stream(data, np.random.default_rng(0))
    blocks, labels = shown.X.reshape(BLOCKS, ROUNDS), shown.y.reshape(BLOCKS, ROUNDS)
    assert np.array_equal(blocks, np.repeat(blocks[:, :1], ROUNDS, axis=1))
    assert len(np.unique(blocks)) == BLOCKS
    truth = data.y[blocks.astype(int)]
    np.testing.assert_array_equal(labels[0::2], truth[0::2])
    np.testing.assert_array_equal(labels[1::2], -truth[1::2])


def test_the_majority_is_counted_by_its_mistakes() -> None:
    assert Labelled(np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, 1.0])).majority == 0.25


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"german\.npz: no such file"):
        read_set(tmp_path, "german")
