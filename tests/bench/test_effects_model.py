from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from bench.effects_model import HEAVY, OF_ALL, OF_PAIR, OF_USER, Constants, features, signals
from bench.rows import OWN, OWN_COLUMNS, Rows
from pipeline.features.tags import TagLists

TAGS = TagLists({video: [video % 3, 3 + video % 2] for video in range(0, 20, 2)})


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(5)
    users, videos = rng.integers(0, 12, 600), rng.integers(0, 20, 600)
    ratios = np.maximum(0.0, 0.75 + 0.2 * (users % 3 - 1) + 0.02 * (videos - 10) + rng.normal(0, 0.3, 600))
    return Rows(users, videos, ratios, TAGS)


def test_the_model_is_that_of_the_pipeline(rows: Rows) -> None:
    own, in_use = rows.effects(Constants())[:, : len(OWN)], rows.of_use()[:, OWN_COLUMNS]
    np.testing.assert_allclose(own, in_use, atol=2e-6)  # these have six decimals


@pytest.mark.parametrize("noise", [OF_USER, OF_ALL, OF_PAIR, HEAVY])
def test_features_know_nothing_of_labels_to_come(rows: Rows, noise: int) -> None:
    changed = Rows(rows.users, rows.videos, rows.ratios.copy(), rows.tags)
    changed.ratios[300:] = 2.0 - changed.ratios[300:]
    before, after = (each.effects(Constants(noise=noise)) for each in (rows, changed))
    np.testing.assert_array_equal(before[:301], after[:301])
    assert not np.array_equal(before[301:], after[301:])


def test_there_may_be_one_noise_for_all(rows: Rows) -> None:
    noise = rows.effects(Constants(noise=OF_ALL))[:, OWN.index("user_noise")]
    last = [noise[rows.users == user][-1] for user in range(12)]
    assert max(last) - min(last) < 0.02
    own = rows.effects(Constants())[:, OWN.index("user_noise")]
    assert len({own[rows.users == user][-1].round(3) for user in range(12)}) > 6


def test_an_odd_label_counts_less_where_tails_are_heavy() -> None:
    n = 13
    users, lists = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    x = np.full(n, 0.8)
    x[11] = -1.0

    def effect(noise: int) -> Callable[[int], float]:
        found = features(users, np.arange(n), lists, np.zeros(1, dtype=np.int64), x, Constants(noise=noise))
        return lambda event: float(found[event, 0])

    normal, heavy = effect(OF_USER), effect(HEAVY)
    assert normal(11) - normal(12) > 1.5 * (heavy(11) - heavy(12)) > 0.0


def test_a_noisy_video_says_less_where_noises_are_multiplied() -> None:
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(40), 10)
    videos = np.tile(np.arange(10), 40)
    x = np.clip(rng.normal(0, 0.1, 400) + np.where(videos == 0, rng.choice([-0.8, 0.8], 400), 0.0), -1, 1)
    lists, packed = np.zeros(400, dtype=np.int64), np.zeros(1, dtype=np.int64)
    found = [features(users, videos, lists, packed, x, Constants(noise=law)) for law in (OF_USER, OF_PAIR)]
    noisy, quiet = (found[1][i, 5] - found[0][i, 5] for i in (390, 399))
    assert noisy > 0.1
    assert quiet < 0.0


def test_signals_are_bounded_and_change_sign_at_the_threshold() -> None:
    assert signals(np.array([0.0, 0.75, 300.0]), 0.75, 2.5).round(2).tolist() == [-0.88, 0.0, 1.0]
    assert signals(np.array([0.7, 0.8]), 0.75, math.inf).tolist() == [-1.0, 1.0]
