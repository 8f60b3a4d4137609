from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forks.arrays import FloatArray
from forks.sparse import SparsePart, SparseSettings, category
from forks.sparse.plan import Columns, variants_of
from tests.forks.sparse.slow import Event, SlowPart

SMALL = 2**12
"""Rows of a table that is large enough for these tests."""


def rows_of(events: list[Event], shape: SparseSettings) -> FloatArray:
    """Return events as rows, with a column for each score."""
    scores = len(Columns.of(shape).names)
    return np.array([[*fields, *words, *numbers, *[0.0] * scores] for fields, words, numbers in events])


def part_of(shape: SparseSettings) -> SparsePart:
    return SparsePart(shape, tuple(range(shape.inputs)), shape.inputs)


def random_events(rng: np.random.Generator, n: int, settings: SparseSettings) -> list[Event]:
    return [
        (
            [category(value) for value in rng.integers(0, 6, settings.fields)],
            [category(value) if value < 8 else 0.0 for value in rng.integers(0, 12, settings.words)],
            [float(value) for value in rng.normal(size=settings.numbers)],
        )
        for _ in range(n)
    ]


def labels_of(rng: np.random.Generator, events: list[Event], settings: SparseSettings) -> FloatArray:
    """Return labels that depend on what the events have."""
    values = np.array([sum(fields) % 7 + sum(numbers) for fields, _, numbers in events])
    noisy = values - np.median(values) + rng.normal(size=len(values))
    return np.where(noisy > 0, 1.0, -1.0) if settings.loss == "logistic" else 50.0 + 20.0 * noisy


def slow_scores(slow: SlowPart, event: Event, settings: SparseSettings) -> FloatArray:
    """Return the scores in the order of the columns, without that of the dense learner."""
    names = [each.name for each in variants_of(settings)] + ["constant", "mixture"]
    by_name = dict(zip(names, slow.scores(event), strict=True))
    return np.array([by_name[name] for name in Columns.of(settings).names[:-1]])


@st.composite
def crosses_of(draw: st.DrawFn, shape: SparseSettings) -> SparseSettings:
    """Draw the same settings with crosses of two or three categories and numbers, if there are so many."""
    if len(shape.members) < 2:
        return shape
    places = st.sets(st.sampled_from(shape.members), min_size=2, max_size=3)
    drawn = draw(st.lists(places, max_size=3))
    return replace(shape, crosses=tuple(tuple(sorted(each)) for each in drawn))


shapes = st.builds(
    SparseSettings,
    fields=st.integers(1, 4),
    numbers=st.integers(0, 2),
    words=st.integers(0, 3),
    loss=st.sampled_from(["logistic", "squared"]),
    pairs=st.booleans(),
    capacity=st.just(2**12),
).flatmap(crosses_of)


@settings(deadline=None, max_examples=15)
@given(shapes, st.integers(0, 2**32), st.booleans(), st.integers(0, 30))
def test_the_part_equals_the_slow_one_whatever_the_delay_of_labels(
    shape: SparseSettings, seed: int, weighted: bool, delay: int
) -> None:
    rng = np.random.default_rng(seed)
    events = random_events(rng, 600, shape)
    y = labels_of(rng, events, shape)
    weights = rng.choice([0.0, 0.25, 1.0], len(y)) if weighted else np.empty(0)
    slow, part, X = SlowPart(shape), part_of(shape), rows_of(events, shape)
    order = [step for i in range(600) for step in (i, *([600 + i - delay] if i >= delay else []))]
    expected: dict[int, FloatArray] = {}
    predicted: dict[int, list[float]] = {}
    for step in order:
        event = events[step % 600]
        if step < 600:
            expected[step] = slow_scores(slow, event, shape)
            predicted[step] = slow.scores(event)
        elif not weighted or weights[step - 600] > 0:
            importance = weights[step - 600] if weighted else 1.0
            slow.learn(event, predicted[step - 600], y[step - 600], importance)
    part.run(X, np.array(order), y, weights)
    found = X[:, shape.inputs : -1]
    np.testing.assert_allclose(found, np.array([*expected.values()]), rtol=1e-5, atol=3e-5)


@settings(deadline=None, max_examples=15)
@given(shapes, st.integers(0, 2**32), st.lists(st.integers(1, 599), max_size=4), st.integers(0, 20))
def test_bits_depend_neither_on_batches_nor_on_restores(
    shape: SparseSettings, seed: int, cuts: list[int], delay: int
) -> None:
    rng = np.random.default_rng(seed)
    events = random_events(rng, 300, shape)
    y = labels_of(rng, events, shape)
    order = np.array([step for i in range(300) for step in (i, *([300 + i - delay] if i >= delay else []))])
    whole, parts = rows_of(events, shape), rows_of(events, shape)
    once, often = part_of(shape), part_of(shape)
    once.run(whole, order, y)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(order)], strict=True):
        often.run(parts, order[begin:end], y)
        often = often.copy()
    np.testing.assert_array_equal(whole, parts)
    one, other = once.state(), often.state()
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_weight_of_two_says_about_as_much_as_two_labels(loss: str) -> None:
    shape = SparseSettings(fields=1, loss=loss, capacity=SMALL)  # type: ignore[arg-type]  # it is one of two
    once, twice = part_of(shape), part_of(shape)
    X = np.zeros((20, 1 + len(once.columns.names)))
    y = np.array([1.0, 1.0, 1.0, -1.0] * 5)
    once.run(X, np.arange(20, 40), y, np.full(20, 2.0))
    twice.run(X, np.arange(20, 40).repeat(2), y)
    X, other = X.copy(), X.copy()
    once.run(X, np.arange(1), y)
    twice.run(other, np.arange(1), y)
    np.testing.assert_allclose(X[0, 1:-1], other[0, 1:-1], atol=0.1)


def test_a_label_that_weighs_much_takes_no_score_beyond_its_minimum() -> None:
    part = part_of(SparseSettings(fields=2, capacity=SMALL))
    X = np.zeros((4, 2 + len(part.columns.names)))
    X[:, :2] = 5.0
    y = np.array([-1.0, -1.0, -1.0, 1.0])
    part.run(X, np.array([4, 5, 6, 7, 3]), y, np.array([1.0, 1.0, 1.0, 1000.0]))
    assert (X[3, 2:-1] > 0.0).all()
    assert (X[3, 2:-1] < 10.0).all()


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_replaced_label_takes_scores_towards_the_new_one(loss: str) -> None:
    shape = SparseSettings(fields=2, loss=loss, capacity=SMALL)  # type: ignore[arg-type]  # it is one of two
    rng = np.random.default_rng(0)
    events = random_events(rng, 200, shape)
    y = labels_of(rng, events, shape)
    wrong = y.copy()
    wrong[-40:] = -y[-40:]
    corrected, left, right = part_of(shape), part_of(shape), part_of(shape)
    learns = np.arange(200, 400)
    for part, labels in ((corrected, wrong), (left, wrong), (right, y)):
        part.run(rows_of(events, shape), learns, labels)
    formers = np.column_stack([wrong, np.ones(200)])
    corrected.run(rows_of(events, shape), np.arange(560, 600), y, formers=formers)
    found = []
    for part in (corrected, left, right):
        X = rows_of(events, shape)
        part.run(X, np.arange(200), y)
        found.append(X[:, shape.inputs : -1])
    off, before = np.abs(found[0] - found[2]).mean(0), np.abs(found[1] - found[2]).mean(0)
    assert (off < 0.75 * before).all()


def test_memory_is_bounded_and_what_was_learned_longest_ago_is_forgotten() -> None:
    shape = SparseSettings(fields=1, pairs=False, capacity=64)
    part = part_of(shape)
    n = 5000
    X = np.zeros((n, 1 + len(part.columns.names)))
    X[:, 0] = np.arange(n)
    X[::4, 0] = 7.0  # a value that comes again and again, among others that come once
    y = np.where(X[:, 0] == 7.0, 1.0, -1.0)
    part.run(X, np.arange(2 * n).reshape(2, n).T.ravel(), y)
    assert part.rows == 64
    fields = part.columns.names.index("fields")
    assert X[-4, 1 + fields] > 2.0  # it is known
    assert (X[-3:, 1 + fields] < 0.0).all()


def test_an_event_learns_no_more_than_has_room() -> None:
    shape = SparseSettings(fields=40, capacity=8)
    part = part_of(shape)
    events = random_events(np.random.default_rng(0), 50, shape)
    X = rows_of(events, shape)
    part.run(X, np.arange(100).reshape(2, 50).T.ravel(), np.array([1.0, -1.0] * 25))
    assert part.rows == 8
    assert np.isfinite(X).all()


def test_what_is_no_hash_counts_as_none() -> None:
    shape = SparseSettings(fields=1, capacity=SMALL)
    part = part_of(shape)
    X = np.zeros((6, 1 + len(part.columns.names)))
    X[:, 0] = [-1.0, np.nan, np.inf, 2.0**53, -np.inf, 0.0]
    part.run(X, np.append(np.arange(6, 12), np.arange(6)), np.ones(6))
    assert (X[:, 1:] == X[-1, 1:]).all()
    assert part.rows == 1


def test_the_constant_is_the_share_and_mixtures_are_never_far_from_the_best() -> None:
    shape = SparseSettings(fields=1, capacity=SMALL)
    part, n = part_of(shape), 4000
    rng = np.random.default_rng(1)
    X = np.zeros((n, 1 + len(part.columns.names)))
    X[:, 0] = rng.integers(0, 2**32, n)  # says nothing
    y = np.where(rng.random(n) < 0.2, 1.0, -1.0)
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    part.run(X, order, y)
    found = np.zeros(2 * n)  # a dense learner that knows nothing
    part.mix(X, order, y, found)
    final = found[order < n]
    constant = X[:, 1 + part.columns.names.index("constant")]

    def loss(scores: FloatArray) -> float:
        return float(np.logaddexp(0.0, -y * scores).mean())

    assert loss(constant) < 0.51
    assert loss(final) < loss(constant) + 0.01
    assert loss(np.zeros(n)) > loss(final) + 0.1


def test_a_saved_state_of_another_shape_is_refused() -> None:
    saved = part_of(SparseSettings(fields=2, capacity=SMALL)).state()
    with pytest.raises(ValueError, match="bits of 4096 rows, not 64"):
        part_of(SparseSettings(fields=2, capacity=64)).restore(saved)
    with pytest.raises(ValueError, match="shape"):
        part_of(SparseSettings(fields=2, numbers=1, capacity=SMALL)).restore(saved)
    for name in saved:
        with pytest.raises(ValueError, match=name):
            part_of(SparseSettings(fields=2, capacity=SMALL)).restore(
                {key: value for key, value in saved.items() if key != name}
            )


def test_a_saved_state_with_other_numbers_than_a_table_has_is_refused() -> None:
    shape = SparseSettings(fields=2, capacity=SMALL)
    part = part_of(shape)
    part.run(rows_of([([1.0, 2.0], [], [])], shape), np.array([1]), np.ones(1))
    saved = part.state()
    weights = np.array(saved["weights"])
    for value in (0.0, -1.0, np.nan, np.inf):
        weights[0, 1] = value
        with pytest.raises(ValueError, match="weights must be finite, and variances above 0"):
            part_of(shape).restore(saved | {"weights": weights})
    with pytest.raises(ValueError, match="tags of rows in use"):
        part_of(shape).restore(saved | {"tags": np.zeros(3, dtype=np.uint32)})
    with pytest.raises(ValueError, match="clocks are of 1 rows, not 3"):
        part_of(shape).restore(saved | {"clocks": np.zeros(1, dtype=np.uint32)})


def test_a_snapshot_has_at_most_sixteen_bytes_for_each_weight() -> None:
    shape = SparseSettings(fields=5, numbers=3)
    part, rng = part_of(shape), np.random.default_rng(2)
    n = 3000
    X = np.zeros((n, shape.inputs + len(part.columns.names)))
    X[:, :5] = rng.integers(0, 1000, (n, 5))
    X[:, 5:8] = rng.normal(size=(n, 3))
    part.run(X, np.arange(n, 2 * n), np.ones(n))
    saved = part.state()
    rows = ("tags", "clocks", "known", "weights")
    size = sum(np.asarray(saved[name]).nbytes for name in rows)
    assert part.rows > 20_000
    assert size <= 16 * len(np.asarray(saved["weights"]))
