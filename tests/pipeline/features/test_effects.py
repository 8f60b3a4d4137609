"""Adjusted effects: the compiled ones are the plain ones, and near the optimum of their model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pipeline.features import effects as compiled
from pipeline.features.effects import (
    EFFECT,
    ITEM_PRIOR,
    NOISE,
    PRECISION,
    RESIDUALS,
    RING,
    SIGNALS,
    TOTAL,
    USER_PRIOR,
    Effects,
    Floats,
    Integers,
    signal,
)
from pipeline.features.tags import TagLists
from tests.support.examples import examples
from tests.support.plain_effects import PlainEffects

GROUPS: tuple[list[int], ...] = ([0], [0, 2], [], [1], [2, 0, 1])
LISTS = TagLists(dict(enumerate(GROUPS)))
USERS = 4

signals = st.floats(-1.0, 1.0).map(lambda x: round(x, 3))
plays = st.lists(
    st.tuples(st.integers(0, USERS - 1), st.integers(0, len(GROUPS) - 1), signals), max_size=3 * RING
)


class Played:
    """The compiled effects on labels, row i for user or item i."""

    def __init__(self) -> None:
        self.effects = Effects.zeros(USERS, len(GROUPS), LISTS.count)

    def learn(self, user: int, item: int, x: float) -> None:
        compiled.learn(user, item, LISTS.find(item), x, self.effects, LISTS.packed)

    def features(self, user: int, item: int) -> list[float]:
        return list(compiled.features(user, item, LISTS.find(item), self.effects, LISTS.packed))


def learned(labels: list[tuple[int, int, float]]) -> Played:
    played = Played()
    for label in labels:
        played.learn(*label)
    return played


@examples(60)
@given(plays)
def test_features_are_those_that_are_added_up_from_all_labels(labels: list[tuple[int, int, float]]) -> None:
    plain, played = PlainEffects(GROUPS), Played()
    for user, item, x in labels:
        assert played.features(user, item) == pytest.approx(plain.features(user, item), abs=2e-6)
        plain.learn(user, item, x)
        played.learn(user, item, x)
    for user in range(USERS):
        for item in range(len(GROUPS)):
            assert played.features(user, item) == pytest.approx(plain.features(user, item), abs=2e-6)


@examples(60)
@given(plays)
def test_sums_stay_exact_for_the_effects_as_they_are_now(labels: list[tuple[int, int, float]]) -> None:
    plain = PlainEffects(GROUPS)
    for label in labels:
        plain.learn(*label)
    state = learned(labels).effects
    for item in range(len(GROUPS)):
        assert state.items[item, [RESIDUALS, PRECISION]] == pytest.approx(plain.sums([item]), abs=1e-8)
    for group in range(LISTS.count):
        items = [item for item, own in enumerate(GROUPS) if group in own]
        assert state.groups[group] == pytest.approx(plain.sums(items), abs=1e-8)


@examples(30)
@given(plays, st.data())
def test_a_run_in_any_order_has_the_bits_of_its_steps(
    labels: list[tuple[int, int, float]], data: Any
) -> None:
    n = len(labels)
    order = np.array(data.draw(st.permutations(range(2 * n))), dtype=np.int64)
    users = np.array([user for user, _, _ in labels], dtype=np.int64)
    items = np.array([item for _, item, _ in labels], dtype=np.int64)
    lists = np.array([LISTS.find(item) for _, item, _ in labels], dtype=np.int64)
    x = np.array([x for _, _, x in labels], dtype=np.float64)
    state, out = Effects.zeros(USERS, len(GROUPS), LISTS.count), np.full((n, 5), np.nan)
    for part in np.array_split(order, 3):
        compiled.run(part, users, items, lists, x, state, LISTS.packed, out)
    single, expected = Played(), np.empty((n, 5))
    for step in order.tolist():
        if step < n:
            expected[step] = single.features(*labels[step][:2])
        else:
            single.learn(*labels[step - n])
    assert (out == expected).all()
    for one, other in zip(state, single.effects, strict=True):
        assert one.tobytes() == other.tobytes()


@examples(20)
@given(
    arrays.arrays(np.int64, 500, elements=st.integers(0, len(GROUPS) - 1)),
    arrays.arrays(np.float64, 500, elements=st.sampled_from([-1.0, 1.0, 0.5])),
)
def test_a_long_history_of_extremes_stays_finite(items: Integers, x: Floats) -> None:
    both = zip(items.tolist(), x.tolist(), strict=True)
    played = learned([(number % 2, *each) for number, each in enumerate(both)])
    assert (played.effects.users[:2, NOISE] > 0.0).all()
    assert (played.effects.items[:, PRECISION] > -1e-9).all()
    assert np.isfinite([played.features(user, item) for user in range(USERS) for item in range(5)]).all()


def invented(users: int, items: int, labels: int) -> tuple[Integers, Integers, Floats, Floats, Floats]:
    """Users and items of labels, their signals, and the true effects."""
    rng = np.random.default_rng(4)
    user, item = rng.integers(0, users, labels), rng.integers(0, items, labels)
    b, q = 0.2 * rng.normal(size=users), 0.4 * rng.normal(size=items)
    noise = rng.uniform(0.1, 0.6, users)
    return user, item, b[user] + q[item] + noise[user] * rng.normal(size=labels), b, q


def test_effects_are_near_those_of_generalised_least_squares() -> None:
    """The dense solution of the same model, with the noise that was found; rings hold everything."""
    users, items = 60, 40
    user, item, x, *_ = invented(users, items, 60 * RING // 2)
    keep = np.array([np.sum(user[:n] == user[n]) < RING for n in range(len(user))])
    user, item, x = user[keep], item[keep], x[keep]
    state, out = Effects.zeros(users, items, 0), np.empty((len(x), 5))
    no_groups, packed = np.zeros(len(x), dtype=np.int64), np.zeros(1, dtype=np.int64)
    order = np.arange(len(x), 2 * len(x))
    compiled.run(order, user, item, no_groups, x, state, packed, out)

    mean = state.everything[SIGNALS] / (state.everything[TOTAL] + 1.0)
    design = np.zeros((len(x), users + items))
    design[np.arange(len(x)), user] = design[np.arange(len(x)), users + item] = 1.0
    weights = 1.0 / state.users[user, NOISE]
    prior = np.concatenate([np.full(users, 1.0 / USER_PRIOR), np.full(items, 1.0 / ITEM_PRIOR)])
    prior_mean = np.concatenate([np.full(users, mean), np.zeros(items)])
    hessian = design.T @ (weights[:, None] * design) + np.diag(prior)
    dense = np.linalg.solve(hessian, design.T @ (weights * x) + prior * prior_mean)

    own = state.users[:, EFFECT]
    effect = np.array([compiled.item_effect(number, 0, state, packed)[0] for number in range(items)])
    assert np.abs(own - dense[:users]).max() < 0.1
    assert np.corrcoef(own, dense[:users])[0, 1] > 0.98
    assert np.corrcoef(effect, dense[users:])[0, 1] > 0.99


def test_effects_are_closer_to_the_truth_than_means_of_signals() -> None:
    """Half of the users see only what everybody likes, the others only what nobody does."""
    rng = np.random.default_rng(1)
    users, items, labels = 200, 100, 20_000
    b, q = 0.2 * rng.normal(size=users), np.where(np.arange(items) < items // 2, 0.5, -0.5)
    user = rng.integers(0, users, labels)
    lucky = rng.uniform(size=labels) < np.where(user < users // 2, 0.9, 0.1)
    item = np.where(lucky, 0, items // 2) + rng.integers(0, items // 2, labels)
    x = b[user] + q[item] + 0.3 * rng.normal(size=labels)
    state, out = Effects.zeros(users, items, 0), np.empty((labels, 5))
    zeros, packed = np.zeros(labels, dtype=np.int64), np.zeros(1, dtype=np.int64)
    compiled.run(np.arange(labels, 2 * labels), user, item, zeros, x, state, packed, out)
    means = np.array([x[user == number].mean() for number in range(users)])
    assert np.corrcoef(state.users[:, EFFECT], b)[0, 1] > 0.9
    assert np.corrcoef(means, b)[0, 1] < 0.6


def test_a_signal_is_zero_at_the_threshold_and_bounded() -> None:
    ratios = np.array([0.0, 0.5, 0.75, 1.0, 1e9])
    found = signal(ratios, 0.75)
    assert (np.diff(found) > 0).all()
    assert found[2] == 0.0
    assert np.abs(found).max() <= 1.0
