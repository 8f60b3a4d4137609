"""scikit-learn's habits: parameters, batches, classes, and its own tools around them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forks import Forks, ForksSettings
from forks.adapters.sklearn import ForksClassifier, ForksRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(600, 2))
SIGN = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
MIXED = np.array([["a", 1.0]], dtype=object)
NAMES = np.where(SIGN > 0, "same", "different")
SIZES: dict[str, Any] = {"budget": 30, "cycle": 100, "width": 1.0}


def test_scores_are_those_of_the_learner_itself() -> None:
    learner = Forks(ForksSettings.practical(2, **SIZES))
    learner.learn_many(X, SIGN)
    model = ForksClassifier(**SIZES).fit(X, NAMES)
    assert model.classes_.tolist() == ["different", "same"]
    scores = model.decision_function(X)
    assert (scores == learner.predict_many(X)).all()
    assert (model.predict(X) == np.where(scores > 0, "same", "different")).all()
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-12)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-15)


def test_parts_have_the_bits_of_the_whole() -> None:
    parts = ForksClassifier(**SIZES)
    for start in range(0, 600, 77):
        parts.partial_fit(X[start : start + 77], NAMES[start : start + 77])
    assert (parts.decision_function(X) == ForksClassifier(**SIZES).fit(X, NAMES).decision_function(X)).all()


def test_fit_forgets_what_was_learned_before_and_takes_new_parameters() -> None:
    model = ForksClassifier(**SIZES).fit(X, NAMES)
    model.set_params(width=2.0).fit(X[:, :1], SIGN.astype(int))
    assert model.n_features_in_ == 1
    assert isinstance(model.learner_, Forks)
    assert model.learner_.settings.width == 2.0
    assert model.classes_.tolist() == [-1, 1]


def test_parameters_do_not_touch_a_learner_that_goes_on() -> None:
    model = ForksClassifier(**SIZES).partial_fit(X[:300], NAMES[:300])
    model.set_params(width=2.0, preset="paper").partial_fit(X[300:], NAMES[300:])
    assert model.learner_.settings == ForksSettings.practical(2, **SIZES)
    assert model.get_params() == {"preset": "paper", **SIZES, "width": 2.0}


def test_a_first_batch_of_one_class_needs_both_named() -> None:
    model = ForksClassifier(**SIZES)
    with pytest.raises(ValueError, match="classes must be two"):
        model.partial_fit(X[:2], ["same", "same"])
    model.partial_fit(X[:2], ["same", "same"], classes=["same", "different"])
    assert model.predict(X[:1]).tolist() == ["same"]
    model.partial_fit(X[2:3], ["different"], classes=["different", "same"])
    assert isinstance(model.learner_, Forks)
    assert model.learner_.updates == 3


@pytest.mark.parametrize(
    ("rows", "y", "classes", "message"),
    [
        (X[:2], ["same", "other"], None, "y has the class .*other"),
        (X[:2], NAMES[:2], ["same", "other"], "differ from those learned"),
        (X[:2], NAMES[:3], None, "one label for each row"),
        (X[:2, :1], NAMES[:2], None, r"X must have shape \(n, 2\)"),
        (X[0], NAMES[:1], None, r"X must have shape \(n, columns\)"),
        (np.full((2, 2), np.nan), NAMES[:2], None, "X must be finite"),
    ],
)
def test_bad_batches_are_refused_and_change_nothing(rows: Any, y: Any, classes: Any, message: str) -> None:
    model = ForksClassifier(**SIZES).fit(X[:100], NAMES[:100])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(rows, y, classes)
    assert (model.decision_function(X) == before).all()
    assert isinstance(model.learner_, Forks)
    assert model.learner_.updates == 100


def test_a_refused_first_batch_leaves_a_model_that_can_still_begin() -> None:
    model = ForksClassifier(**SIZES)
    with pytest.raises(ValueError, match="X must be finite"):
        model.partial_fit([[np.inf], [1.0]], ["a", "b"])
    model.partial_fit(X, NAMES)
    assert model.n_features_in_ == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ForksClassifier(widht=1.0), "widht is not a setting"),
        (lambda: ForksClassifier().set_params(dimension=2), "dimension is not a setting"),
        (lambda: ForksClassifier(width=-1.0).fit(X, NAMES), "width = -1.0"),
        (lambda: ForksClassifier(loss="squared").fit(X, NAMES), "not the loss of a classifier"),
        (lambda: ForksRegressor(loss="logistic").fit(X, SIGN), "not the loss of a regressor"),
        (lambda: ForksRegressor().fit(X, np.full(600, np.nan)), "y.* must be finite"),
        (lambda: ForksRegressor().fit(X, NAMES), "y must be numbers"),
        (lambda: ForksRegressor().fit(X, SIGN).predict(NAMES[:, None]), "X must be numbers"),
        (lambda: ForksRegressor().fit(MIXED, [0.5]).predict([["a", "b"]]), "text in a column of num"),
        (lambda: ForksRegressor().fit(MIXED, [0.5]).predict([["a"]]), r"shape \(n, 2\), not \(1, 1\)"),
        (lambda: ForksRegressor().predict(X), "ForksRegressor has learned nothing"),
        (lambda: ForksClassifier().predict(X), "ForksClassifier has learned nothing"),
        (lambda: ForksClassifier("paper", **SIZES).fit(X, NAMES).predict_proba(X), "no probabilities"),
    ],
)
def test_errors_name_what_is_wrong(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_scikit_learns_clone_keeps_parameters_only() -> None:
    model = ForksClassifier("paper", **SIZES).fit(X, NAMES)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "learner_")


def test_scikit_learns_pipelines_and_cross_validation() -> None:
    assert is_classifier(ForksClassifier())
    assert is_regressor(ForksRegressor())
    model = make_pipeline(StandardScaler(), ForksClassifier(**SIZES))
    assert cross_val_score(model, X, NAMES, cv=3, scoring="roc_auc").min() > 0.85
    y = np.sin(2 * X[:, 0])
    assert cross_val_score(ForksRegressor(**SIZES), X, y, cv=3, scoring="r2").min() > 0.9


def test_pickled_models_go_on_with_the_same_bits() -> None:
    model = ForksRegressor(**SIZES).fit(X[:300], X[:300, 0])
    copy = pickle.loads(pickle.dumps(model))
    expected = model.partial_fit(X[300:], X[300:, 0]).predict(X)
    assert (copy.partial_fit(X[300:], X[300:, 0]).predict(X) == expected).all()


def test_scikit_learn_is_not_imported() -> None:
    program = (
        "import sys, forks.adapters.sklearn as m\n"
        "m.ForksClassifier()\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'forks', 'sklearn'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "forks\n"


def test_columns_of_text_are_categories() -> None:
    rng = np.random.default_rng(3)
    table = np.empty((600, 3), dtype=object)
    table[:, 0] = rng.choice(["a", "b", "c"], 600)
    table[:, 1] = rng.normal(size=600)
    table[:, 2] = rng.choice(np.array(["x", None]), 600)
    y = np.where((table[:, 0] == "a") ^ (table[:, 2] == "x"), "yes", "no")
    model = ForksClassifier(**SIZES).fit(table[:500], y[:500])
    assert (model.predict(table[500:]) == y[500:]).all()
    halves = (
        ForksClassifier(**SIZES).partial_fit(table[:250], y[:250]).partial_fit(table[250:500], y[250:500])
    )
    np.testing.assert_array_equal(halves.predict_proba(table), model.predict_proba(table))
    numbers = ForksRegressor(**SIZES).fit(table[:, :2].tolist(), (table[:, 0] == "a") * 5.0)
    assert np.abs(numbers.predict(table[:, :2]) - (table[:, 0] == "a") * 5.0).mean() < 0.5
