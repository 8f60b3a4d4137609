from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bench.effects_model import Constants
from bench.options import Options
from bench.rows import OFFSET, Rows
from bench.worth import BASE, CHOSEN, IN_USE, LABELS, LARGEST, START, choose, played, run
from forks.validation import log_loss
from pipeline.features.tags import TagLists


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(1)
    users, videos = rng.integers(0, 4, 300), rng.integers(0, 10, 300)
    mood = rng.normal(0, 0.4, 4)[users] + rng.normal(0, 0.4, 10)[videos]
    ratios = np.maximum(0.0, 0.75 + mood + rng.normal(0, 0.3, 300))
    return Rows(users, videos, ratios, TagLists({video: [video % 4] for video in range(7)}))


def test_what_is_chosen_is_better_than_the_start(rows: Rows) -> None:
    choice = choose(rows, START, orders=1)
    assert choice != START
    order = np.random.default_rng(0).permutation(300)
    shuffled = rows.taken(order)

    def loss(of: object) -> float:
        return log_loss(played(shuffled, of, None)[BASE], shuffled.positive) or math.inf  # type: ignore[arg-type]

    assert loss(choice) < loss(START)
    values = [getattr(choice.constants, name) for name in CHOSEN]
    assert all(1.0 / LARGEST <= value <= LARGEST for value in (*values, choice.linear_alpha))


def test_labels_for_signals_stay_labels(rows: Rows) -> None:
    start = START._replace(constants=START.constants._replace(slope=math.inf))
    assert math.isinf(choose(rows, start, orders=1).constants.slope)


def test_each_part_is_left_out_once(rows: Rows) -> None:
    found = played(rows, IN_USE, LABELS)
    assert len(found) == 14
    names = list(found)
    for i, name in enumerate(names):
        for other in names[:i]:
            assert np.abs(found[name] - found[other]).max() > 1e-3, (name, other)
    np.testing.assert_array_equal(found["log-odds alone, no learner"], rows.of_use()[:, OFFSET])
    assert "without tags" not in played(rows.without_tags(), IN_USE, None)
    for name in ("nothing fades", "rings of 64"):
        np.testing.assert_allclose(found[name][:50], found[BASE][:50], atol=1e-3)  # until a ring is full


def test_other_constants_are_other_features(rows: Rows) -> None:
    means = rows.of_use()
    same = rows.with_effects(means, Constants())
    other = rows.with_effects(means, Constants(slope=1.0))
    np.testing.assert_array_equal(np.flatnonzero((other != same).any(axis=0)), [1, 2, 5, 6, 9])


def test_all_data_are_measured(data: Path) -> None:
    found = run(Options(1, data, quiet=True))
    assert found["kuairand_second_week"]["is_click"]["events"] == 9
    assert found["kuairec_one_user"]["events"] == 12
    halves = found["kuairec_halves"]
    assert halves["events"] == 12
    assert len(halves["chosen"]) == 2
    assert {*halves["features"]} >= {BASE, "labels for signals", "constants in use, of both halves"}
