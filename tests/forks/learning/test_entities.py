"""Events given by entities have the bits of whole rows, whatever the cache of factors holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import EntityTables, Forks, ForksSettings
from forks.arrays import FloatArray
from forks.compiled.alignment import padded_length
from tests.forks.contract import one_by_one
from tests.forks.learning.test_bits import assert_same_bits
from tests.support.examples import examples

EVENTS = 400
RNG = np.random.default_rng(5)
USERS, ITEMS = RNG.normal(size=(30, 3)), RNG.normal(size=(50, 4))
NUMBERS = np.column_stack([RNG.integers(0, 30, EVENTS), RNG.integers(0, 50, EVENTS)])
VARYING = RNG.normal(size=(EVENTS, 4))
ROWS = np.hstack([USERS[NUMBERS[:, 0]], ITEMS[NUMBERS[:, 1]], VARYING])
Y = np.where(ROWS[:, 0] * ROWS[:, 3] + VARYING[:, 0] > 0, 1.0, -1.0)

BLOCKS = ((0, 3), (3, 7))
CHANGES: dict[str, dict[str, Any]] = {
    "paper": {"preset": ForksSettings.paper, "width": 3.0, "clip": 5.0, "linear_columns": (7, 11)},
    "practical": {"preset": ForksSettings.practical, "linear_columns": (7, 11)},
    "offset": {"preset": ForksSettings.practical, "linear_columns": (7, 10), "offset_column": 10},
    "nothing varies in the kernel": {
        "preset": ForksSettings.practical,
        "linear_columns": (7, 11),
        "kernel_columns": (0, 7),
    },
}


def made(name: str, **more: Any) -> ForksSettings:
    changes = CHANGES[name] | {"budget": 20, "cycle": 9} | more
    settings: ForksSettings = changes.pop("preset")(11, **changes)
    return settings


def scores_of_rows(settings: ForksSettings) -> tuple[Forks, FloatArray]:
    learner = Forks(settings)
    return learner, learner.predict_and_learn_many(ROWS, Y)


@pytest.mark.parametrize("name", CHANGES)
@examples(8)
@given(cuts=st.sets(st.integers(1, EVENTS - 1), max_size=8), max_entities=st.integers(1, 60))
def test_entities_have_the_bits_of_whole_rows(name: str, cuts: set[int], max_entities: int) -> None:
    expected, scores = scores_of_rows(made(name, entity_blocks=BLOCKS))
    tables = EntityTables(expected.settings, [USERS, ITEMS], max_entities=max_entities)
    learner = Forks(expected.settings)
    for part in np.split(np.arange(EVENTS), sorted(cuts)):
        events = tables.events(NUMBERS[part], VARYING[part])
        assert (learner.predict_many(events) == learner.predict_many(ROWS[part])).all()
        assert (learner.predict_and_learn_many(events, Y[part]) == scores[part]).all()
    assert_same_bits(learner, expected)


@pytest.mark.parametrize("name", CHANGES)
def test_entities_one_by_one_have_the_bits_of_a_batch(name: str) -> None:
    expected, scores = scores_of_rows(made(name, entity_blocks=BLOCKS))
    tables = EntityTables(expected.settings, [USERS, ITEMS], max_entities=7)
    learner = Forks(expected.settings)
    for i in range(EVENTS):
        event = tables.events(NUMBERS[i : i + 1], VARYING[i : i + 1])
        assert learner.predict_and_learn_many(event, Y[i : i + 1])[0] == scores[i]
    assert_same_bits(learner, expected)


@pytest.mark.parametrize("name", CHANGES)
@examples(8)
@given(st.permutations(range(2 * EVENTS)), st.integers(1, 60))
def test_entities_in_any_order_have_the_bits_of_whole_rows(
    name: str, steps: list[int], max_entities: int
) -> None:
    settings = made(name, entity_blocks=BLOCKS)
    tables = EntityTables(settings, [USERS, ITEMS], max_entities=max_entities)
    learner, expected = Forks(settings), Forks(settings)
    scores = learner.run(tables.events(NUMBERS, VARYING), Y, steps)
    assert (scores == one_by_one(expected, ROWS, Y, np.array(steps))).all()
    assert_same_bits(learner, expected)


def test_one_cache_serves_several_learners() -> None:
    settings = made("paper", entity_blocks=BLOCKS)
    tables = EntityTables(settings, [USERS, ITEMS], max_entities=40)
    learned = [Forks(settings), Forks(settings)]
    learned[0].learn_many(ROWS[:150], Y[:150])
    learned[1].learn_many(ROWS[150:], Y[150:])
    for learner in (*learned, *learned):
        assert (learner.predict_many(tables.events(NUMBERS, VARYING)) == learner.predict_many(ROWS)).all()


def test_blocks_change_scores_by_rounding_only_under_one_map() -> None:
    plain, _ = scores_of_rows(made("paper", cycle=10_000))
    factorised = Forks.from_state(made("paper", cycle=10_000, entity_blocks=BLOCKS), plain.state())
    assert plain.state()["stage"] == 2
    np.testing.assert_allclose(
        factorised.predict_many(ROWS), plain.predict_many(ROWS), rtol=1e-10, atol=1e-12
    )


def test_the_memory_of_factors_does_not_grow() -> None:
    settings = made("paper", entity_blocks=BLOCKS)
    tables = EntityTables(settings, [USERS, ITEMS], max_entities=10)
    Forks(settings).learn_many(tables.events(NUMBERS, VARYING), Y)
    assert tables.cache.factors.shape == (20, padded_length(settings.landmarks))


def test_what_does_not_fit_is_refused_by_name() -> None:
    settings = made("paper", entity_blocks=BLOCKS)
    tables = EntityTables(settings, [USERS, ITEMS], max_entities=10)
    with pytest.raises(ValueError, match=r"numbers\[:, 1\] must be from 0 to 49"):
        tables.events([[0, 50]], VARYING[:1])
    with pytest.raises(ValueError, match=r"numbers must be integers of shape \(1, 2\)"):
        tables.events([[0.0, 1.0]], VARYING[:1])
    with pytest.raises(ValueError, match=r"varying must have shape \(n, 4\)"):
        tables.events([[0, 1]], VARYING[:1, :3])
    with pytest.raises(ValueError, match="1 given for 2 entity_blocks"):
        EntityTables(settings, [USERS], max_entities=10)
    with pytest.raises(ValueError, match=r"tables\[1\] must have shape"):
        EntityTables(settings, [USERS, USERS], max_entities=10)
    with pytest.raises(ValueError, match="max_entities"):
        EntityTables(settings, [USERS, ITEMS], max_entities=0)
    with pytest.raises(ValueError, match="other settings"):
        Forks(made("practical")).predict_many(tables.events([[0, 1]], VARYING[:1]))
