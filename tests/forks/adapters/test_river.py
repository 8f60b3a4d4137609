"""River's own checks, and what they do not ask for."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
import pytest
from river import base, checks, datasets, dummy, evaluate, metrics, preprocessing, stats, stream

from forks import Forks, ForksSettings
from forks.adapters.river import ForksClassifier, ForksRegressor

# Small enough for River's 200 events to see both stages and many changes of the map.
MODELS: dict[str, base.Estimator] = {
    "classifier": ForksClassifier(budget=20, cycle=10),
    "classifier without probabilities": ForksClassifier("paper", budget=20, cycle=10, width=2.0),
    "regressor": ForksRegressor(budget=20, cycle=10),
}


def estimator_checks() -> Iterator[Any]:
    for name, model in MODELS.items():
        for number, check in enumerate(checks.yield_checks(model)):
            yield pytest.param(name, check, id=f"{name}-{number}-{check.__name__}")


@pytest.mark.parametrize(("name", "check"), list(estimator_checks()))
def test_passes_rivers_estimator_checks(name: str, check: Callable[[base.Estimator], None]) -> None:
    check(MODELS[name].clone())


def trained(model: ForksClassifier, events: int = 150) -> ForksClassifier:
    for x, y in datasets.Phishing().take(events):
        model.learn_one(x, y)
    return model


def test_scores_are_those_of_the_learner_itself() -> None:
    data = list(datasets.Phishing().take(300))
    names = sorted(data[0][0])
    X = np.array([[x[name] for name in names] for x, _ in data])
    labels = np.array([1.0 if y else -1.0 for _, y in data])
    expected = Forks(ForksSettings.practical(len(names))).predict_and_learn_many(X, labels)
    model = ForksClassifier()
    for (x, y), score in zip(data, expected, strict=True):
        assert model.predict_proba_one(x)[True] == pytest.approx(1 / (1 + np.exp(-score)), rel=1e-12)
        assert model.predict_one(x) is bool(score > 0)
        model.learn_one(x, y)


def test_progressive_validation_with_delays() -> None:
    model = preprocessing.StandardScaler() | ForksClassifier(budget=50)
    metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC(), delay=10)
    assert metric.get() > 0.93


def test_a_regression_on_a_curve_far_from_zero() -> None:
    data: list[tuple[dict[Hashable, Any], float]] = [
        ({"x": x, "noise": n}, 300.0 + 40.0 * np.sin(2.0 * x))
        for x, n in np.random.default_rng(3).normal(size=(1000, 2))
    ]
    model = preprocessing.TargetStandardScaler(ForksRegressor(budget=50, width=1.0, cycle=200))
    metric = evaluate.progressive_val_score(data, model, metrics.MAE())
    running_mean = evaluate.progressive_val_score(data, dummy.StatisticRegressor(stats.Mean()), metrics.MAE())
    assert metric.get() < running_mean.get() / 2


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("events", [0, 5, 150])
def test_copies_go_on_with_the_same_bits_and_independently(copied: Any, events: int) -> None:
    model = trained(ForksClassifier(budget=20, cycle=10), events)
    other = copied(model)
    rest = list(datasets.Phishing().take(400))[events:]
    before = [model.predict_proba_one(x) for x, _ in rest]
    for x, y in rest:
        assert other.predict_one(x) == (other.predict_proba_one(x)[True] > 0.5)
        other.learn_one(x, y)
    assert [model.predict_proba_one(x) for x, _ in rest] == before
    for x, y in rest:
        model.learn_one(x, y)
    assert [model.predict_proba_one(x) for x, _ in rest] == [other.predict_proba_one(x) for x, _ in rest]


def test_a_clone_has_the_settings_and_knows_nothing() -> None:
    model = trained(ForksClassifier("practical", budget=20, width=2.0))
    clone = model.clone({"width": 3.0})
    assert clone.settings == {"budget": 20, "width": 3.0}
    assert clone.predict_proba_one({"https": 1.0}) == {False: 0.5, True: 0.5}


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ({"a": "red"}, True, "feature 'a' must be a number"),
        ({"a": "1.5"}, True, "feature 'a' must be a number"),
        ({"a": None}, True, "feature 'a' must be a number"),
        ({"a": float("nan")}, True, "feature 'a' must be finite"),
        ({"new": 1.0, "a": 1e200}, True, "feature 'a' must be finite"),
        ({"new": 10**400}, True, "feature 'new' must be a number"),
        ({"new": 1.0}, "yes", "y must be True or False, not 'yes'"),
        ({"new": 1.0}, -1, "y must be True or False, not -1"),
        ({"new": 1.0}, None, "y must be True or False"),
    ],
)
def test_bad_events_are_refused_by_name_and_change_nothing(x: Any, y: Any, message: str) -> None:
    model = trained(ForksClassifier(budget=20, cycle=10))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("y", [float("nan"), float("inf"), "much", None])
def test_bad_targets_are_refused_and_change_nothing(y: Any) -> None:
    model = ForksRegressor()
    model.learn_one({"a": 1.0}, 3.0)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="y must be"):
        model.learn_one({"new": 1.0}, y)
    assert pickle.dumps(model) == before


def test_the_first_event_needs_a_feature() -> None:
    model = ForksClassifier()
    with pytest.raises(ValueError, match="x is empty"):
        model.learn_one({}, True)
    model.learn_one({"a": 1.0}, True)
    model.learn_one({}, True)
    assert model.predict_one({})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ForksClassifier("theoretical"), "preset = 'theoretical'"),  # type: ignore[arg-type]  # the test
        (lambda: ForksClassifier(widht=2.0), "widht is not a setting"),
        (lambda: ForksClassifier(dimension=2), "dimension is not a setting"),
        (lambda: ForksClassifier(width=-1.0), "width = -1.0"),
        (lambda: ForksClassifier(linear_columns=(0, 1)), "linear_columns numbers columns"),
        (lambda: ForksClassifier(entity_blocks=((0, 1),)), "entity_blocks numbers columns"),
        (lambda: ForksClassifier(loss="squared"), "not the loss of a classifier"),
        (lambda: ForksRegressor(loss="hinge", hessian="gradient"), "not the loss of a regressor"),
        (lambda: ForksRegressor("paper"), "clip = inf is not accepted"),
    ],
)
def test_settings_are_checked_when_they_are_given(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_loss_without_probabilities_says_so() -> None:
    model = ForksClassifier("paper")
    with pytest.raises(NotImplementedError, match="'hinge' has no probabilities"):
        model.predict_proba_one({"a": 1.0})


def test_delayed_labels_may_come_in_rivers_question_and_answer_order() -> None:
    model = ForksClassifier(budget=20, cycle=10)
    asked: dict[int, dict[Any, Any]] = {}
    for i, x, y in stream.simulate_qa(datasets.Phishing().take(100), moment=None, delay=5):
        if y is None:
            asked[i] = x
            model.predict_one(x)
        else:
            model.learn_one(asked.pop(i), y)
    assert not asked


def test_texts_are_categories_and_words() -> None:
    rng = np.random.default_rng(5)
    model, scores = ForksClassifier(), []
    for number in range(800):
        site, advert, size = rng.choice(["a", "b", "c"]), rng.choice(["x", "y"]), rng.normal()
        x: dict[Hashable, Any] = {"site": str(site), "title": {str(advert), "the"}, "size": size}
        if number > 100:  # a category and a number that were not there at first
            x |= {"late": str(advert), "weight": 0.5}
        y = site == "a" or advert == "x" or size > 2.0
        scores.append(model.predict_one(x) == y)
        model.learn_one(x, bool(y))
    assert np.mean(scores[500:]) > 0.9
    again = pickle.loads(pickle.dumps(model))
    expected = model.predict_proba_one(x)
    assert again.predict_proba_one(x) == copy.deepcopy(model).predict_proba_one(x) == expected


def test_text_after_a_first_event_without_any_is_refused() -> None:
    model = ForksClassifier()
    model.learn_one({"size": 1.0}, True)
    with pytest.raises(ValueError, match=r"feature 'site' must be a number: the first event .* had no text"):
        model.learn_one({"size": 1.0, "site": "a"}, True)
