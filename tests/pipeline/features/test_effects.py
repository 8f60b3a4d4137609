"""Adjusted effects: the compiled ones are the plain ones, and near the optimum of their model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pipeline.features import effects as compiled
from pipeline.features.adjusted_effects import AdjustedEffects, EffectsState
from pipeline.features.effect_arrays import (
    EFFECT,
    ITEM_EFFECT,
    LABELS,
    NOISE,
    PRECISION,
    RESIDUALS,
    RING,
    SIGNALS,
    TOTAL,
    USER_COLUMNS,
    Floats,
    Integers,
)
from pipeline.features.effects import ITEM_PRIOR, USER_PRIOR
from pipeline.features.tags import TagLists
from tests.support.examples import examples
from tests.support.plain_effects import PlainEffects

GROUPS: tuple[list[int], ...] = ([0], [0, 2], [], [1], [2, 0, 1])
LISTS = TagLists(dict(enumerate(GROUPS)))
USERS = 4

signals = st.floats(-1.0, 1.0).map(lambda x: float(np.float32(round(x, 3))))
plays = st.lists(
    st.tuples(st.integers(0, USERS - 1), st.integers(0, len(GROUPS) - 1), signals), max_size=3 * RING
)


class Played:
    """The compiled effects on labels, row i + 1 for user or item i."""

    def __init__(self, users: int = USERS, groups: tuple[list[int], ...] = GROUPS) -> None:
        lists = TagLists(dict(enumerate(groups)))
        self.packed = lists.packed
        self.effects = AdjustedEffects(lists.count).reserve(1 + users, 1 + len(groups))
        self.item_lists = np.array([0, *(lists.find(item) for item in range(len(groups)))])

    def run(
        self,
        order: Integers,
        users: Integers,
        items: Integers,
        x: Floats,
        evicted: Integers | None = None,
    ) -> Floats:
        own, out = self.effects.arrays, np.full((len(x), 5), np.nan)
        users_gone, items_gone = np.zeros((2, len(order)), dtype=np.int64) if evicted is None else evicted
        compiled.run(
            np.asarray(order, dtype=np.int64),
            np.asarray(users, dtype=np.int64) + 1,
            np.asarray(items, dtype=np.int64) + 1,
            self.item_lists[np.asarray(items, dtype=np.int64) + 1],
            np.clip(x, -1.0, 1.0).astype(np.float32).astype(np.float64),
            np.empty(0),
            users_gone,
            items_gone,
            own,
            self.item_lists,
            self.packed,
            out,
        )
        return out

    def learn_many(self, users: Any, items: Any, x: Any) -> None:
        self.run(np.arange(len(x), 2 * len(x)), users, items, x)

    def learn(self, user: int, item: int, x: float, evicted: tuple[int, int] = (-1, -1)) -> None:
        self.run([1], [user], [item], [x], 1 + np.array(evicted).reshape(2, 1))  # type: ignore[arg-type]  # lists do

    def features(self, user: int, item: int) -> list[float]:
        found: list[float] = self.run([0], [user], [item], [0.0])[0].tolist()  # type: ignore[arg-type]  # lists do
        return found

    def state(self) -> EffectsState:
        own = self.effects.arrays
        return self.effects.state(np.arange(1, len(own.users)), np.arange(1, len(own.items)))

    def restored(self) -> Played:
        """The same from its state."""
        other = Played.__new__(Played)
        other.packed, other.item_lists = self.packed, self.item_lists
        other.effects = AdjustedEffects(0)
        other.effects.restore(self.state())
        return other


def learned(labels: list[tuple[int, int, float]]) -> Played:
    played = Played()
    for label in labels:
        played.learn(*label)
    return played


def same(one: EffectsState, other: EffectsState) -> bool:
    """Whether two states have the same bits."""
    return all(
        np.asarray(left).tobytes() == np.asarray(right).tobytes()
        for left, right in zip(one, other, strict=True)
    )


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


def test_so_they_are_long_after_labels_have_left_the_rings() -> None:
    rng = np.random.default_rng(7)
    plain, played = PlainEffects(GROUPS), Played()
    for _ in range(6 * RING):
        user, item, x = int(rng.integers(2)), int(rng.integers(len(GROUPS))), float(rng.choice([-0.75, 0.5]))
        plain.learn(user, item, x)
        played.learn(user, item, x)
        assert played.features(user, item) == pytest.approx(plain.features(user, item), abs=2e-6)
    assert played.effects.arrays.users[1:3, LABELS].min() > 2 * RING


def test_a_state_is_whole_wherever_a_ring_begins() -> None:
    rng = np.random.default_rng(8)
    played, restored = Played(), Played()
    for _ in range(3 * RING):
        label = (0, int(rng.integers(len(GROUPS))), float(rng.choice([-0.75, 0.5])))
        played.learn(*label)
        restored = restored.restored()
        restored.learn(*label)
        assert same(restored.state(), played.state())


@examples(60)
@given(plays)
def test_sums_are_exact_for_the_newest_solutions(labels: list[tuple[int, int, float]]) -> None:
    plain = PlainEffects(GROUPS)
    for label in labels:
        plain.learn(*label)
    state = learned(labels).effects.arrays
    for item in range(len(GROUPS)):
        assert state.items[1 + item, [RESIDUALS, PRECISION]] == pytest.approx(plain.sums([item]), abs=1e-8)
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
    users, items, x = (np.array([label[column] for label in labels]) for column in range(3))
    together, out = Played(), np.full((n, 5), np.nan)
    for part in np.array_split(order, 3):
        found = together.run(part, users, items, x)
        out = np.where(np.isnan(out), found, out)
        together = together.restored()
    single, expected = Played(), np.empty((n, 5))
    for step in order.tolist():
        if step < n:
            expected[step] = single.features(*labels[step][:2])
        else:
            single.learn(*labels[step - n])
    assert (out == expected).all()
    assert same(together.state(), single.state())


def test_a_user_that_was_evicted_is_new_again() -> None:
    played, fresh = learned([(0, 0, 1.0), (0, 1, -1.0), (1, 0, 0.5)]), Played()
    played.learn(2, 2, 0.25, evicted=(0, -1))
    assert played.effects.arrays.users[1].tolist() == [0.0] * USER_COLUMNS
    everything = played.effects.arrays.everything
    assert played.features(0, 0)[0] == round(everything[SIGNALS] / (everything[TOTAL] + 1.0), 6)
    assert fresh.features(0, 0)[0] == 0.0


def test_nothing_is_passed_on_to_an_item_that_took_the_row_of_an_evicted_one() -> None:
    played = learned([(0, 0, 1.0), (0, 1, -1.0)])
    played.learn(1, 2, 0.5, evicted=(-1, 0))  # the row of item 0 is empty now
    played.learn(1, 0, 0.5)  # and another item's
    before = played.effects.arrays.items[1].copy()
    played.learn(0, 1, -0.5)  # changes what user 0 passes on
    assert played.effects.arrays.items[1].tolist() == before.tolist()
    again = played.restored()
    for each in (played, again):
        each.learn(0, 3, 1.0)
    assert same(played.state(), again.state())
    assert played.state().ring[0] == 0  # the evicted item's label


@examples(20)
@given(
    arrays.arrays(np.int64, 500, elements=st.integers(0, len(GROUPS) - 1)),
    arrays.arrays(np.float64, 500, elements=st.sampled_from([-1.0, 1.0, 0.5])),
)
def test_a_long_history_of_extremes_stays_finite(items: Integers, x: Floats) -> None:
    both = zip(items.tolist(), x.tolist(), strict=True)
    played = learned([(number % 2, *each) for number, each in enumerate(both)])
    assert (played.effects.arrays.users[1:3, NOISE] > 0.0).all()
    assert (played.effects.arrays.items[:, PRECISION] > -1e-9).all()
    assert np.isfinite([played.features(user, item) for user in range(USERS) for item in range(5)]).all()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda state: state._replace(ring=state.ring[1:]), "1 items and 2 signals of 2 labels"),
        (lambda state: state._replace(ring=state.ring + 5), "up to 7, there are 5"),
        (lambda state: state._replace(ring=state.ring - 9), "up to -7"),
    ],
)
def test_rings_that_do_not_fit_are_refused(change: Any, found: str) -> None:
    state = learned([(0, 0, 1.0), (1, 1, -1.0)]).state()
    with pytest.raises(ValueError, match=found):
        AdjustedEffects(0).restore(change(state))


def invented(users: int, items: int, labels: int) -> tuple[Integers, Integers, Floats]:
    """Users and items of labels, and their signals."""
    rng = np.random.default_rng(4)
    user, item = rng.integers(0, users, labels), rng.integers(0, items, labels)
    b, q = 0.2 * rng.normal(size=users), 0.4 * rng.normal(size=items)
    noise = rng.uniform(0.1, 0.6, users)
    return user, item, b[user] + q[item] + noise[user] * rng.normal(size=labels)


def test_effects_are_near_those_of_generalised_least_squares() -> None:
    """The dense solution of the same model, with the noise that was found; rings hold everything."""
    users, items = 60, 40
    user, item, x = invented(users, items, 60 * RING // 2)
    keep = np.array([np.sum(user[:n] == user[n]) < RING for n in range(len(user))])
    user, item, x = user[keep], item[keep], x[keep]
    played = Played(users, ([],) * items)
    played.learn_many(user, item, x)
    state = played.effects.arrays

    mean = state.everything[SIGNALS] / (state.everything[TOTAL] + 1.0)
    design = np.zeros((len(x), users + items))
    design[np.arange(len(x)), user] = design[np.arange(len(x)), users + item] = 1.0
    weights = 1.0 / state.users[1 + user, NOISE]
    prior = np.concatenate([np.full(users, 1.0 / USER_PRIOR), np.full(items, 1.0 / ITEM_PRIOR)])
    prior_mean = np.concatenate([np.full(users, mean), np.zeros(items)])
    hessian = design.T @ (weights[:, None] * design) + np.diag(prior)
    dense = np.linalg.solve(hessian, design.T @ (weights * x) + prior * prior_mean)

    own = state.users[1:, EFFECT]
    effect = np.array([played.features(0, number)[ITEM_EFFECT] for number in range(items)])
    assert state.users[1:, LABELS].max() <= RING
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
    played = Played(users, ([],) * items)
    played.learn_many(user, item, x)
    means = np.array([x[user == number].mean() for number in range(users)])
    assert np.corrcoef(played.effects.arrays.users[1:, EFFECT], b)[0, 1] > 0.85
    assert np.corrcoef(means, b)[0, 1] < 0.6
