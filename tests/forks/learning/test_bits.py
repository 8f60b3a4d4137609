"""Equal events, equal bits: however they were batched, wherever the learner was saved and restored."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import Forks, ForksSettings
from tests.forks.contract import one_by_one
from tests.support.examples import examples

EVENTS = 300
RNG = np.random.default_rng(11)
X = RNG.normal(size=(EVENTS, 5)) * [1, 10, 0.1, 1, 1] + [0, 100, 0, 0, -1]
Y = np.where(X[:, 0] * X[:, 3] + X[:, 2] + 0.1 * RNG.normal(size=EVENTS) > 0, 1.0, -1.0)

# Budgets and cycles are small so that 300 events see stage 1, many changes and refreshes.
SETTINGS = {
    "practical": ForksSettings.practical(5, budget=20, cycle=7, refresh=3),
    "practical, no tracking": ForksSettings.practical(5, budget=20, cycle=7, refresh=3, tracking=False),
    "practical, long warm-up": ForksSettings.practical(5, budget=20, cycle=60, blocks=4),
    # More events under one map than a tile has steps.
    "practical, long cycle": ForksSettings.practical(5, budget=20, cycle=100, bounded=False),
    "paper, entity block, long cycle": ForksSettings.paper(
        5, budget=20, cycle=100, width=40.0, entity_blocks=((0, 3),)
    ),
    "practical, some columns": ForksSettings.practical(
        5, budget=20, cycle=11, linear_columns=(2, 5), kernel_columns=(1, 4)
    ),
    "practical, reset": ForksSettings.practical(5, budget=20, cycle=7, carry_over=False),
    "practical, regression": ForksSettings.practical(5, budget=20, cycle=7, loss="squared", clip=1.5),
    "practical, offset and linear prior": ForksSettings.practical(
        5, budget=20, cycle=7, linear_alpha=30.0, offset_column=1
    ),
    "paper": ForksSettings.paper(5, budget=20, cycle=7, width=4.0),
    "paper, entity blocks": ForksSettings.paper(
        5, budget=20, cycle=7, width=40.0, entity_blocks=((0, 2), (2, 4))
    ),
    "practical, entity block": ForksSettings.practical(
        5, budget=20, cycle=7, kernel_columns=(1, 4), entity_blocks=((1, 3),), linear_columns=(3, 5)
    ),
    "paper, squared hinge, clipped": ForksSettings.paper(
        5, budget=20, cycle=13, width=4.0, loss="squared_hinge", clip=1.0, blocks=5
    ),
}
every_setting = pytest.mark.parametrize("name", SETTINGS)


def assert_same_bits(one: Forks, other: Forks) -> None:
    state, expected = one.state(), other.state()
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        assert np.asarray(state[name]).tobytes() == np.asarray(value).tobytes(), name


@cache
def uninterrupted(name: str) -> tuple[Forks, Any]:
    learner = Forks(SETTINGS[name])
    return learner, learner.predict_and_learn_many(X, Y)


@every_setting
def test_a_batch_has_the_bits_of_its_events_one_by_one(name: str) -> None:
    batched, scores = uninterrupted(name)
    single, losses = Forks(SETTINGS[name]), []
    for x, y, score in zip(X, Y, scores, strict=True):
        assert single.predict_one(x) == score
        losses.append(single.learn_one(x, y))
    assert_same_bits(single, batched)
    assert (Forks(SETTINGS[name]).learn_many(X, Y) == losses).all()


@every_setting
@examples(8)  # the first example may compile
@given(st.sets(st.integers(0, EVENTS), max_size=12))
def test_batches_and_restored_states_do_not_show(name: str, cuts: set[int]) -> None:
    learner = Forks(SETTINGS[name])
    scores = []
    edges = [0, *sorted(cuts), EVENTS]
    for start, stop in pairwise(edges):
        learner = Forks.from_state(SETTINGS[name], learner.state())
        scores.append(learner.predict_and_learn_many(X[start:stop], Y[start:stop]))
    expected, expected_scores = uninterrupted(name)
    assert_same_bits(learner, expected)
    assert (np.concatenate(scores) == expected_scores).all()


@every_setting
@examples(8)
@given(
    st.permutations(range(2 * EVENTS)),
    st.integers(0, 2 * EVENTS),
    st.sets(st.integers(0, 2 * EVENTS), max_size=6),
)
def test_any_order_has_the_bits_of_its_steps_one_by_one(
    name: str, steps: list[int], count: int, cuts: set[int]
) -> None:
    order = np.array(steps[:count], dtype=np.int64)
    single, walking = Forks(SETTINGS[name]), Forks(SETTINGS[name])
    scores = one_by_one(single, X, Y, order)
    for part in np.split(order, sorted(cuts)):
        found = walking.run(X, Y, part)
        walking = walking.copy()
        asked = part[part < EVENTS]
        assert (found[asked] == scores[asked]).all()
        assert np.isnan(np.delete(found, asked)).all()
    assert_same_bits(walking, single)


@every_setting
def test_a_learner_restored_before_every_event_has_the_same_bits(name: str) -> None:
    learner = Forks(SETTINGS[name])
    for x, y in zip(X, Y, strict=True):
        learner = learner.copy()
        learner.learn_one(x, y)
    assert_same_bits(learner, uninterrupted(name)[0])


@every_setting
def test_predictions_change_nothing_and_come_alike_in_batches(name: str) -> None:
    learner, _ = uninterrupted(name)
    before = learner.copy()
    scores = learner.predict_many(X)
    assert [learner.predict_one(x) for x in X] == scores.tolist()
    assert_same_bits(learner, before)


def test_memory_layout_of_the_input_does_not_matter() -> None:
    expected, _ = uninterrupted("practical")
    learner = Forks(SETTINGS["practical"])
    learner.learn_many(np.asfortranarray(X), Y.astype(np.int64))
    assert_same_bits(learner, expected)


def test_a_copy_is_independent() -> None:
    learner, _ = uninterrupted("practical")
    before, copy = learner.copy(), learner.copy()
    copy.learn_many(X, -Y)
    assert_same_bits(learner, before)


def test_a_state_holds_arrays_and_plain_numbers_only_and_copies_of_them() -> None:
    for name in SETTINGS:
        learner, _ = uninterrupted(name)
        before = learner.copy()
        for entry in learner.state().values():
            assert isinstance(entry, np.ndarray | int)
            if isinstance(entry, np.ndarray):
                assert entry.flags.c_contiguous
                entry[...] = 0
        assert_same_bits(learner, before)


def test_another_seed_makes_another_sketch() -> None:
    other = Forks(ForksSettings.practical(5, budget=20, cycle=7, refresh=3, seed=1))
    assert (other.predict_and_learn_many(X, Y) != uninterrupted("practical")[1]).any()
