from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from bench.hindsight import BASE, by_folds, compared, retrained, trees
from bench.hindsight_columns import RANK, WITHOUT_FACTORS, Hindsight
from bench.options import Options
from bench.rows import Rows
from forks.arrays import BoolArray, FloatArray, IntArray
from forks.validation import auc
from pipeline.features.tags import TagLists


def _has_openmp() -> bool:
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(
    not _has_openmp(), reason="LightGBM needs libgomp.so.1: Debian's package libgomp1 has it"
)


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(1)
    users, videos = rng.integers(0, 30, 900), rng.integers(0, 20, 900)
    mood = rng.normal(0, 0.4, 30)[users] + rng.normal(0, 0.4, 20)[videos]
    ratios = np.maximum(0.0, 0.75 + mood + rng.normal(0, 0.3, 900))
    return Rows(users, videos, ratios, TagLists({video: [video % 4] for video in range(15)}))


def _separable(n: int = 600) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.1)


def test_trees_are_retrained_on_what_was_known() -> None:
    X, positive = _separable()
    found = retrained(X, positive, checkpoints=4)
    assert np.isnan(found[:150]).all()
    assert np.isfinite(found[150:]).all()
    later = positive.copy()
    later[450:] = ~later[450:]
    np.testing.assert_array_equal(retrained(X, later, checkpoints=4)[150:], found[150:])
    earlier = positive.copy()
    earlier[:150] = ~earlier[:150]
    assert not np.array_equal(retrained(X, earlier, checkpoints=4)[150:], found[150:])
    area = auc(found[300:], positive[300:])
    assert area is not None
    assert area > 0.75


def test_no_label_of_a_fold_is_known_where_it_is_predicted() -> None:
    _, positive = _separable(100)
    asked: list[tuple[set[int], set[int]]] = []

    def columns(known: IntArray, of: IntArray) -> FloatArray:
        asked.append((set(known.tolist()), set(of.tolist())))
        return of[:, None].astype(np.float64)

    scores = by_folds(columns, positive)
    assert np.isfinite(scores).all()
    assert all(not known & of for known, of in asked)
    assert len(asked) == 5 * (5 + 1)
    tested = [of for _, of in asked[5::6]]
    assert set.union(*tested) == set(range(100))
    for number, fold in enumerate(tested):
        assert all(not fold & known for known, _ in asked[6 * number : 6 * number + 6])


def test_the_own_label_of_an_event_has_no_part_in_its_columns(rows: Rows) -> None:
    known, of = np.arange(600), np.arange(600, 900)
    found = Hindsight(rows).columns(known, of)
    changed = Rows(rows.users, rows.videos, rows.ratios.copy(), rows.tags)
    changed.ratios[600:] = 1.5 - changed.ratios[600:]
    np.testing.assert_array_equal(Hindsight(changed).columns(known, of), found)
    changed.ratios[:600] = 1.5 - changed.ratios[:600]
    assert not np.allclose(Hindsight(changed).columns(known, of), found)


def test_columns_say_what_users_and_videos_are_like(rows: Rows) -> None:
    known, of = np.arange(600), np.arange(600, 900)
    found = Hindsight(rows).columns(known, of)
    assert found.shape == (300, 2 * (5 + RANK) + 1 + 3)
    user = rows.users[600]
    own = known[rows.users[:600] == user]
    assert found[0, 0] == len(own)
    mean = (rows.positive[own].sum() + 5.0 * rows.positive[:600].mean()) / (len(own) + 5.0)
    assert found[0, 1] == pytest.approx(mean)
    np.testing.assert_allclose(found[:, -1], found[:, -3] + found[:, -2])
    adjusted = auc(found[:, -3], rows.positive[600:])
    assert adjusted is not None
    assert adjusted > 0.75
    np.testing.assert_allclose(found[:, WITHOUT_FACTORS][:, -1], found[:, -3])
    np.testing.assert_allclose(found[:, WITHOUT_FACTORS][:, -2], found[:, -4])  # of the tags
    np.testing.assert_allclose(found[:, WITHOUT_FACTORS][:, 5], found[:, 5 + RANK])  # the video's labels


def test_factors_find_what_effects_leave() -> None:
    rng = np.random.default_rng(4)
    users, videos = rng.integers(0, 40, 8000), rng.integers(0, 30, 8000)
    taste = (
        np.where(rng.random(40) < 0.5, -1.0, 1.0)[users] * np.where(rng.random(30) < 0.5, -1.0, 1.0)[videos]
    )
    rows = Rows(users, videos, 0.75 + 0.5 * taste, TagLists({}))
    found = Hindsight(rows).columns(np.arange(6000), np.arange(6000, 8000))
    assert np.mean((found[:, -2] > 0) == rows.positive[6000:]) > 0.95


def test_as_many_trees_are_grown_as_those_who_judge_say() -> None:
    X, positive = _separable()
    judges = np.arange(600) >= 500
    assert trees(X, positive, judges).best_iteration > 5
    noise = np.random.default_rng(9).random(600) < 0.5
    assert trees(X, noise, judges).best_iteration < 30


@pytest.mark.slow
def test_all_models_are_compared_on_the_events_that_count(rows: Rows) -> None:
    own = np.zeros((900, 2))
    found = compared(rows, np.arange(450, 900), Options(1, Path(), quiet=True), "made up", own)
    assert found["counted"] == 450
    assert "difference" not in found["models"][BASE]["auc"]
    same = found["models"]["learner, features of the event too"]
    assert abs(same["mistakes"]["difference"]) < 1.0  # constant columns say nothing
    assert len(found["models"]) == 10
