"""Compiled code that gives a learner's steps few by few gets the bits of `Forks.run`."""

from __future__ import annotations

import numpy as np
import pytest

from forks import EntityTables, Forks, ForksSettings
from forks.arrays import FloatArray, IntArray
from forks.jit import njit
from forks.learning.learner_run import LearnerArrays, run_until_change
from tests.forks.learning.test_bits import EVENTS, SETTINGS, X, Y, assert_same_bits, every_setting

STEPS_AT_ONCE = 50
STEPS = np.random.default_rng(3).permutation(3 * EVENTS)
REPLACED = np.random.default_rng(4).choice([-1.0, 1.0], EVENTS)
WEIGHTS = np.random.default_rng(5).choice([0.5, 1.0, 3.0], EVENTS)


@njit(cache=False)
def run(  # noqa: PLR0917 - compiled code is called by position
    learner: LearnerArrays,
    order: IntArray,
    begin: int,
    end: int,
    y: FloatArray,
    weights: FloatArray,
    formers: FloatArray,
    counts: IntArray,
    out: FloatArray,
) -> int:
    return run_until_change(learner, order, begin, end, y, weights, formers, counts, out)


@every_setting
def test_steps_few_by_few_have_the_bits_of_all_at_once(name: str) -> None:
    at_once, walking = Forks(SETTINGS[name]), Forks(SETTINGS[name])
    scores = at_once.run(X, Y, STEPS, WEIGHTS, former=REPLACED, former_weights=WEIGHTS[::-1])
    given = walking.begin(X, Y, np.arange(EVENTS), WEIGHTS, former=REPLACED, former_weights=WEIGHTS[::-1])
    rows, out = STEPS % EVENTS, np.empty(len(STEPS))
    columns = given.y[rows], given.importances[rows], given.formers[rows]
    at = 0
    for begin in range(0, len(STEPS), STEPS_AT_ONCE):
        end = min(len(STEPS), begin + STEPS_AT_ONCE)
        while (at := run(given.arrays, STEPS, at, end, *columns, given.counts, out)) < end:
            if given.changes_map():
                out[at] = given.change_map(int(STEPS[at]))
                at += 1
    given.finish()
    assert_same_bits(walking, at_once)
    is_score = STEPS < EVENTS
    assert (out[is_score] == scores[STEPS[is_score]]).all()


def test_events_given_by_entities_are_refused() -> None:
    settings = ForksSettings.practical(3, entity_blocks=((0, 2),), linear_columns=(2, 3))
    tables = EntityTables(settings, [np.zeros((1, 2))], max_entities=1)
    events = tables.events(np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1)))
    with pytest.raises(TypeError, match="rows"):
        Forks(settings).begin(events, np.ones(1), np.zeros(1, dtype=np.int64))
