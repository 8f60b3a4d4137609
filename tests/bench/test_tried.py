from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bench.latent import Prior
from bench.options import Options
from bench.rows import OFFSET, Rows
from bench.tried import BASE, _same_tags, candidates, low_rank, run
from pipeline.features.tags import TagLists


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(1)
    users, videos = rng.integers(0, 10, 200), rng.integers(0, 8, 200)
    return Rows(users, videos, rng.uniform(0, 1.5, 200), TagLists({0: [1], 1: [1], 2: [0, 1]}))


def test_without_a_low_rank_part_log_odds_are_those_of_use(rows: Rows) -> None:
    X = rows.of_use()
    expected, changed = low_rank(rows, X, Prior(2, 0.0, 0.0, 0.0), by_tags=False)
    np.testing.assert_array_equal(expected, 0.0)
    np.testing.assert_allclose(changed[:, OFFSET], X[:, OFFSET], atol=0.1)
    moved, other = low_rank(rows, X, Prior(2, 1.0, 0.5, 0.1), by_tags=False)
    assert np.abs(moved).max() > 0.1
    columns = np.flatnonzero((other != X).any(axis=0))
    assert columns.tolist() == [OFFSET]
    sharper = np.abs(other[:, OFFSET]) > np.abs(changed[:, OFFSET])
    agree = np.sign(moved) == np.sign(changed[:, OFFSET])
    assert np.mean(sharper == agree) > 0.5


def test_videos_with_the_same_tags_are_of_one_kind() -> None:
    tags = TagLists({5: [1, 2], 6: [2, 1], 7: [1]})
    lists = np.array([tags.find(video) for video in (5, 6, 7, 8)])
    kinds = _same_tags(lists, tags)
    assert kinds[0] == kinds[1]
    assert len(set(kinds.tolist())) == 3


def test_what_needs_real_times_is_tried_only_where_they_are_real(rows: Rows) -> None:
    frame = pl.DataFrame(
        {
            "user_id": rows.users,
            "video_id": rows.videos,
            "time_ms": np.arange(200) * 60_000,
            "duration_ms": 1000 * rows.videos,
        }
    )
    of_all, of_some = candidates(rows, frame), candidates(rows, None)
    assert set(of_some) < set(of_all)
    assert len(of_some[BASE]) == 1
    assert "newest signals by labels" in of_some
    assert "newest signals by time" in set(of_all) - set(of_some)
    base = of_all[BASE][0]()
    for name, options in of_all.items():
        scores = options[-1]()
        assert np.isfinite(scores).all()
        assert (name == BASE) == np.array_equal(scores, base)


def test_all_data_are_measured(data: Path) -> None:
    found = run(Options(1, data, quiet=True))
    assert found["kuairand"]["is_click"]["events"] == 9
    first, second = (found["kuairand"]["is_click"][week] for week in ("first_week", "second_week"))
    assert first.keys() == second.keys() > found["kuairec_halves"]["features"].keys()
    assert len(found["kuairec_halves"]["chosen"]) == 2
    assert all(cost > 0.0 for cost in found["microseconds"].values())
