"""The contract of all learners, as checks for any learner (after River's ``checks``).

`EVERY` needs only `predict_one` and `learn_one`; `RESTORABLE` needs the whole interface of `forks.Forks`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from forks import State
from forks.arrays import FloatArray, IntArray


class Learner(Protocol):
    """Scores an event, and learns its label, -1 or +1."""

    def predict_one(self, x: Any, /) -> float: ...

    def learn_one(self, x: Any, y: float, /) -> object: ...


class Restorable(Learner, Protocol):
    """Takes batches too, and can be saved."""

    def predict_many(self, X: ArrayLike, /) -> FloatArray: ...

    def learn_many(self, X: ArrayLike, y: ArrayLike, /) -> FloatArray: ...

    def predict_and_learn_many(self, X: ArrayLike, y: ArrayLike, /) -> FloatArray: ...

    def run(self, X: ArrayLike, y: ArrayLike, order: ArrayLike, /) -> FloatArray: ...

    def state(self) -> State: ...

    def copy(self) -> Self: ...


@dataclass(frozen=True)
class Subject:
    """A learner and a stream for it.

    Parameters
    ----------
    make : returns a new learner, always with the same parameters
    events : pairs of x and y for the learner, enough to reach all that it does
    margin : y times a score, from which on the learner need not learn
    """

    make: Callable[[], Learner]
    events: Sequence[tuple[Any, float]]
    margin: float = 1.0


@dataclass(frozen=True)
class RestorableSubject:
    """A restorable learner and a stream for it.

    Parameters
    ----------
    make : returns a new learner, always with the same parameters
    restore : returns the learner restored from a state
    X : (n, dimension), or (n,) where an event is a number
    y : (n,)
    not_events : rows that it must reject
    not_labels : labels that it must reject
    """

    make: Callable[[], Restorable]
    restore: Callable[[State], Restorable]
    X: FloatArray | IntArray
    y: FloatArray
    not_events: Sequence[Any]
    not_labels: Sequence[Any]

    def trained(self, events: int) -> Restorable:
        learner = self.make()
        learner.learn_many(self.X[:events], self.y[:events])
        return learner


def progress(learner: Learner, events: Sequence[tuple[Any, float]]) -> list[float]:
    """Return the score of each event before it was learned."""
    scores = []
    for x, y in events:
        scores.append(learner.predict_one(x))
        learner.learn_one(x, y)
    return scores


def same_events_make_the_same_scores(subject: Subject) -> None:
    assert progress(subject.make(), subject.events) == progress(subject.make(), subject.events)


def scores_are_finite_from_the_first_event_on(subject: Subject) -> None:
    for score in progress(subject.make(), subject.events):
        assert isinstance(score, float)
        assert math.isfinite(score)


def predictions_change_nothing(subject: Subject) -> None:
    asked = subject.make()
    expected = progress(subject.make(), subject.events)
    for i, (x, y) in enumerate(subject.events):
        for other, _ in subject.events[:: 1 + len(subject.events) // 3]:
            asked.predict_one(other)
        assert asked.predict_one(x) == expected[i]
        asked.learn_one(x, y)


def what_is_learned_moves_the_score(subject: Subject) -> None:
    x, _ = subject.events[0]
    for y in (-1.0, 1.0):
        learner = subject.make()
        progress(learner, subject.events[: len(subject.events) // 2])
        before = learner.predict_one(x)
        for _ in range(3):
            learner.learn_one(x, y)
        beyond_the_margin = before * y >= subject.margin
        assert (learner.predict_one(x) - before) * y > 0 or beyond_the_margin


def a_deep_copy_goes_its_own_way(subject: Subject) -> None:
    expected = progress(subject.make(), subject.events)
    half = len(subject.events) // 2
    learner = subject.make()
    progress(learner, subject.events[:half])
    other = copy.deepcopy(learner)
    progress(other, [(x, -y) for x, y in subject.events])
    assert progress(learner, subject.events[half:]) == expected[half:]


def the_events_own_arrays_are_not_kept(subject: Subject) -> None:
    learner = subject.make()
    scores = []
    for x, y in subject.events:
        given = copy.deepcopy(x)
        scores.append(learner.predict_one(given))
        learner.learn_one(given, y)
        if isinstance(given, np.ndarray):
            assert (given == x).all()
            given[...] = 7.0
    assert scores == progress(subject.make(), subject.events)


def batches_have_the_bits_of_their_events_one_by_one(subject: RestorableSubject) -> None:
    events = list(zip(subject.X, subject.y, strict=True))
    one_by_one, batched = subject.make(), subject.make()
    scores = progress(one_by_one, events)
    assert batched.predict_and_learn_many(subject.X, subject.y).tolist() == scores
    assert_same(one_by_one, batched)
    assert batched.predict_many(subject.X).tolist() == [one_by_one.predict_one(x) for x in subject.X]
    losses = subject.make().learn_many(subject.X, subject.y)
    again = subject.make()
    assert losses.tolist() == [again.learn_one(x, y) for x, y in events]


def runs_in_any_order_have_the_bits_of_their_steps_one_by_one(subject: RestorableSubject) -> None:
    n = len(subject.X)
    chance = np.random.default_rng(0)
    every_step = np.arange(2 * n)
    labels_late = np.argsort(np.concatenate([np.arange(n), np.arange(n) + chance.exponential(20, n)]))
    for order in (every_step, every_step[::-1], labels_late, chance.permutation(2 * n)[: n // 2]):
        single, walking = subject.make(), subject.make()
        scores = one_by_one(single, subject.X, subject.y, order)
        y = np.where(
            np.isin(np.arange(n, 2 * n), order), subject.y, 0.5
        )  # what is not learned is not looked at
        np.testing.assert_array_equal(walking.run(subject.X, y, order), scores)
        assert_same(walking, single)


def a_restored_learner_goes_on_with_the_same_bits(subject: RestorableSubject) -> None:
    expected = subject.trained(len(subject.X))
    for cut in moments(subject):
        learner = subject.restore(subject.trained(cut).state())
        learner.learn_many(subject.X[cut:], subject.y[cut:])
        assert_same(learner, expected)


def a_state_holds_arrays_and_plain_numbers_of_its_own(subject: RestorableSubject) -> None:
    for cut in moments(subject):
        learner = subject.trained(cut)
        for entry in learner.state().values():
            assert isinstance(entry, np.ndarray | int | float)
            if isinstance(entry, np.ndarray):
                entry[...] = 0
        assert_same(learner, subject.trained(cut))


def a_clone_goes_its_own_way(subject: RestorableSubject) -> None:
    for cut in moments(subject):
        learner = subject.trained(cut)
        copy = learner.copy()
        assert_same(copy, learner)
        copy.learn_many(subject.X, -subject.y)
        assert_same(learner, subject.trained(cut))


def what_is_not_accepted_is_refused_and_changes_nothing(subject: RestorableSubject) -> None:
    x, y = subject.X[0], subject.y[0]
    for cut in moments(subject):
        learner = subject.trained(cut)
        for bad in (*misshapen(x), None, *subject.not_events):
            assert refuses(learner.predict_one, bad)
            assert refuses(learner.learn_one, bad, y)
            assert refuses(learner.learn_many, [x, bad], [y, y])
        for label in subject.not_labels:
            assert refuses(learner.learn_one, x, label)
            assert refuses(learner.learn_many, [x, x], [y, label])
            assert refuses(learner.run, [x, x], [y, label], [3])
        assert refuses(learner.learn_many, [x, x], [y])
        assert refuses(learner.run, [x, x], [y], [0])
        for order in ([-1], [2, 4], [[0]], [0.0], ["0"], 0, None):
            assert refuses(learner.run, [x, x], [y, y], order)
        assert_same(learner, subject.trained(cut))


EVERY: tuple[Callable[[Subject], None], ...] = (
    same_events_make_the_same_scores,
    scores_are_finite_from_the_first_event_on,
    predictions_change_nothing,
    what_is_learned_moves_the_score,
    a_deep_copy_goes_its_own_way,
    the_events_own_arrays_are_not_kept,
)
RESTORABLE: tuple[Callable[[RestorableSubject], None], ...] = (
    batches_have_the_bits_of_their_events_one_by_one,
    runs_in_any_order_have_the_bits_of_their_steps_one_by_one,
    a_restored_learner_goes_on_with_the_same_bits,
    a_state_holds_arrays_and_plain_numbers_of_its_own,
    a_clone_goes_its_own_way,
    what_is_not_accepted_is_refused_and_changes_nothing,
)


def moments(subject: RestorableSubject) -> Iterator[int]:
    """Events learned at which to look: at the beginning, densely early on, in the middle, at the end."""
    count = len(subject.X)
    yield from (0, 1, count // 10, count // 2, count)


def refuses(method: Callable[..., object], *arguments: Any) -> bool:
    """Whether the method raises a ValueError that says which argument it is about."""
    try:
        method(*arguments)
    except ValueError as error:
        return str(error).startswith(("x ", "X ", "y", "order "))
    return False


def misshapen(x: Any) -> list[Any]:
    """Return what has another shape or type than ``x``."""
    if np.ndim(x) == 0:
        return [[], [x], "a"]
    return [x[:-1], np.append(x, x[:1]), x[None], ["a"] * len(x)]


def one_by_one(learner: Learner, X: FloatArray | IntArray, y: FloatArray, order: IntArray) -> FloatArray:
    """Take the steps of ``order``, i to score event i and n + i to learn it; return the scores, (n,)."""
    scores = np.full(len(X), np.nan)
    for step in order:
        learns, event = divmod(int(step), len(X))
        if learns:
            learner.learn_one(X[event], y[event])
        else:
            scores[event] = learner.predict_one(X[event])
    return scores


def assert_same(learner: Restorable, expected: Restorable) -> None:
    """Check that two learners know the same, to the bit."""
    state, other = learner.state(), expected.state()
    assert state.keys() == other.keys()
    for name, value in other.items():
        assert np.asarray(state[name]).tobytes() == np.asarray(value).tobytes(), name
