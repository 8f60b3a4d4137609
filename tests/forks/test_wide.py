"""FORKS on top of the sparse part, without Kafka."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from forks import ForksSettings, SparseSettings, WideForks
from forks.arrays import FloatArray
from forks.sparse import word_hashes

SHAPE = SparseSettings(fields=2, words=3, numbers=1, capacity=2**12)


def rows_of(learner: WideForks, n: int = 400, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    categories = [(f"site {i}", j) for i, j in rng.integers(0, 4, (n, 2))]
    texts = [" ".join(rng.choice(["to", "be", "or", "not"], 3)) for _ in range(n)]
    words = [word_hashes(text, "title", 3) for text in texts]
    noise = rng.normal(size=n) + ["or" in text for text in texts]
    y = np.where(noise + [j - 2 for _, j in categories] > 0, 1.0, -1.0)
    return learner.rows(categories, words, rng.normal(size=(n, 1))), y


def test_one_by_one_together_and_restored_have_the_same_bits() -> None:
    one, many, halves = (WideForks(SHAPE) for _ in range(3))
    X, y = rows_of(many)
    alone, parts = X.copy(), X.copy()
    scores = many.predict_and_learn_many(X, y)
    for row, label, score in zip(alone, y, scores, strict=True):
        assert one.predict_one(row) == score
        one.learn_one(row, label)
    first = halves.predict_and_learn_many(parts[:200], y[:200])
    halves = pickle.loads(pickle.dumps(halves)).copy()
    np.testing.assert_array_equal([*first, *halves.predict_and_learn_many(parts[200:], y[200:])], scores)
    other, _ = rows_of(many, seed=1)
    expected = many.predict_many(other.copy())
    np.testing.assert_array_equal(one.predict_many(other.copy()), expected)
    assert np.mean(np.sign(scores[200:]) != y[200:]) < 0.3


def test_late_labels_are_learned_from_the_scores_of_the_prediction() -> None:
    now, late = WideForks(SHAPE), WideForks(SHAPE)
    X, y = rows_of(now)
    order = [step for i in range(450) for step in ([i] if i < 400 else []) + ([350 + i] if i >= 50 else [])]
    scores = late.run(X.copy(), y, order)
    for begin in range(0, len(order), 90):
        now.run(X, y, order[begin : begin + 90])
    assert now.state()["sparse.learned"] == late.state()["sparse.learned"]
    state, other = now.state(), late.state()
    for name, value in state.items():
        np.testing.assert_array_equal(value, other[name])
    assert np.isfinite(scores).all()


def test_an_event_that_was_not_predicted_is_when_it_is_learned() -> None:
    learned, predicted = WideForks(SHAPE), WideForks(SHAPE)
    X, y = rows_of(learned)
    learned.learn_many(X.copy(), y)
    predicted.predict_and_learn_many(X.copy(), y)
    probe = learned.rows([("site 1", 2)], numbers=[[0.5]])[0]
    assert learned.predict_one(probe.copy()) == predicted.predict_one(probe)


def test_what_is_wrong_is_said_and_changes_nothing() -> None:
    learner = WideForks(SHAPE)
    X, y = rows_of(learner, 3)
    with pytest.raises(ValueError, match=r"categories\[0\] are 1, the settings have 2"):
        learner.rows([("a",)])
    with pytest.raises(ValueError, match=r"numbers have shape \(0,\), not \(1, 1\)"):
        learner.rows([("a", "b")])
    with pytest.raises(ValueError, match=r"make rows with rows\(\)"):
        learner.predict_many(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="twice"):
        learner.run(X, y, [0, 0])
    with pytest.raises(ValueError, match="y"):
        learner.learn_one(X[0], 0.5)
    with pytest.raises(ValueError, match="finite"):
        learner.predict_many(learner.rows([("a", "b")], numbers=[[np.nan]]))
    with pytest.raises(ValueError, match="FORKS has the loss 'squared' and 9 columns, the sparse part needs"):
        WideForks(SHAPE, ForksSettings.practical(9, loss="squared"))
    regression = WideForks(SparseSettings(fields=1, loss="squared"))
    [row] = regression.rows([("a",)])
    with pytest.raises(ValueError, match="within"):
        regression.learn_one(row, 1e31)
    assert learner.sparse.learned == learner.dense.updates == 0
