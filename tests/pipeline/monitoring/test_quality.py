from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.validation import auc, calibration_error, log_loss
from pipeline.features.regression import RegressionTarget
from pipeline.features.tables import Tables
from pipeline.join.records import ChallengerScores
from pipeline.model.model import Model
from pipeline.monitoring.quality import CONSTANT, RUNNING_MEAN, RUNNING_MEANS, WARM_UP, QualityWindow
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.task.columns import Corrections, OutcomeColumns
from tests.support.builders import CHALLENGERS, small_learner
from tests.support.examples import examples

REGRESSION = RegressionTarget(threshold=30.0, cap=60.0, scale=10.0)


def outcomes(
    values: list[float | None],
    scores: Any,
    means: Any = None,
    *,
    challengers: Any = (),
    first: int = 0,
    corrections: Corrections | None = None,
) -> OutcomeColumns:
    """Outcomes that have what the window reads."""
    n = len(values)
    return OutcomeColumns(
        numbers=np.arange(first, first + n),
        values=np.array(values, dtype=np.float64),
        label_timestamps=np.array([NO_TIMESTAMP if each is None else 0 for each in values], dtype=np.int64),
        scores=np.array(scores, dtype=float),
        means=np.full((n, 2), 0.5) if means is None else np.array(means),
        challengers=[ChallengerScores.of(each) for each in challengers],
        corrections=corrections or Corrections(),
    )


def model(**more: Any) -> Model:
    return Model(small_learner(), Tables(), 10, **more)


EVENT = st.tuples(st.floats(0.0, 3.0) | st.none(), st.floats(-4.0, 4.0))


@examples(60)
@given(st.lists(st.lists(EVENT, max_size=12), max_size=8), st.integers(1, 20))
def test_the_window_is_the_last_labelled_events_however_batches_fall(
    batches: list[list[tuple[float | None, float]]], size: int
) -> None:
    one, window = model(), QualityWindow(model(), size)
    for batch in batches:
        window.add(outcomes([value for value, _ in batch], [score for _, score in batch]), one, 0)
    last = [event for batch in batches for event in batch if event[0] is not None][-size:]
    measured = window.measure()
    assert measured.events == len(last)
    if last:
        scores = np.array([score for _, score in last])
        positive = np.array([value for value, _ in last], dtype=float) > one.target.threshold
        champion = measured.learners["champion"]
        assert champion.mistakes == pytest.approx(np.mean((scores > 0) != positive))
        assert (champion.auc is None) == (auc(scores, positive) is None)
        assert champion.auc == pytest.approx(auc(scores, positive))
        assert champion.log_loss == pytest.approx(log_loss(scores, positive))
        assert champion.calibration_error == pytest.approx(calibration_error(scores, positive))
        share = positive.mean()
        assert measured.learners[CONSTANT].mistakes == pytest.approx(min(share, 1 - share))


def test_corrections_and_predictions_of_former_learners_do_not_count() -> None:
    window, one = QualityWindow(model()), model()
    corrections = Corrections(np.array([1]), np.array([0]), np.array([np.nan]), np.ones(1))
    window.add(outcomes([1.0, 1.0, 1.0, 1.0], [1.0] * 4, first=8, corrections=corrections), one, 9)
    assert window.measure().events == 2
    window.add(outcomes([1.0], [1.0], first=0), one, 9)
    assert window.measure().events == 2


def test_challengers_stand_beside_the_champion_under_their_names() -> None:
    one = model(challengers=CHALLENGERS)
    window = QualityWindow(one)
    scores = [{"wider": -1.0, "small": 1.0}, {"small": 1.0, "wider": 1.0}]  # in any order of names
    window.add(outcomes([1.0, 1.0], [1.0, 1.0], challengers=scores), one, 0)
    found = window.measure().learners
    assert set(found) == {"champion", "small", "wider", RUNNING_MEANS, CONSTANT}
    assert (found["champion"].mistakes, found["small"].mistakes, found["wider"].mistakes) == (0.0, 0.0, 0.5)
    assert found["wider"].log_loss is None, "its loss is squared: scores are no log-odds"


def test_the_running_means_predict_by_the_threshold_of_the_report() -> None:
    one = model()
    window = QualityWindow(one)
    one.statistics.everything[0] = (99.0, 9.5, 0.0)  # known only after this batch
    window.add(outcomes([1.0], [1.0], means=[[0.4, 0.5]]), one, 0)  # 0.9 is below 1: nothing was known yet
    assert window.measure().learners[RUNNING_MEANS].mistakes == 1.0
    window.add(outcomes([1.0], [1.0], means=[[0.3, 0.31]]), one, 0)  # above (9.5 + 0.5) / 100 + 0.5
    assert window.measure().learners[RUNNING_MEANS].mistakes == 0.5


def test_without_entities_the_baseline_is_the_mean_of_all_labels() -> None:
    one = model()
    one.mean_columns = []
    window = QualityWindow(one)
    one.statistics.everything[0] = (99.0, 89.5, 0.0)
    nobody = np.empty((10, 0))
    window.add(outcomes([0.0], [1.0], means=nobody[:1]), one, 0)  # nothing was known yet: 0.5 is not above
    window.add(outcomes([*[1.0] * 9, 0.0], [1.0] * 10, means=nobody), one, 0)  # the mean is 0.9
    found = window.measure().learners
    assert set(found) == {"champion", RUNNING_MEAN, CONSTANT}
    assert found[RUNNING_MEAN].mistakes == pytest.approx(1 / 11)
    assert found[CONSTANT].mistakes == pytest.approx(2 / 11)


def test_a_model_that_turns_worse_than_the_running_means_is_drift() -> None:
    one, chance = model(), np.random.default_rng(3)
    window = QualityWindow(one)

    def learn(count: int, right: float) -> None:
        values = (chance.random(count) < 0.5) * 1.0
        signs = np.where(chance.random(count) < right, 1.0, -1.0) * np.where(values > 0, 1.0, -1.0)
        means = np.where(chance.random(count) < 0.7, values, 1.0 - values)[:, None].repeat(2, axis=1)
        window.add(outcomes(values.tolist(), signs, means), one, 0)

    def train(count: int) -> None:
        for _ in range(count):
            one.learner.learn_one(np.zeros(one.learner.settings.dimension), 1.0)

    train(WARM_UP - 1)
    for _ in range(10):
        learn(200, 0.55)
    assert (window.drift.alarms, window.drift.evidence) == (0, 0.0), "a new learner is worse at first"
    train(1)
    for _ in range(50):
        learn(200, 0.75)
    assert window.drift.alarms == 0
    for _ in range(10):
        learn(200, 0.55)
    assert window.drift.alarms > 0


def test_numbers_have_errors_in_their_own_unit() -> None:
    one = Model(small_learner(loss="squared"), Tables(), 10, target=REGRESSION)
    one.mean_columns = [0, 1]
    window = QualityWindow(one)
    half = REGRESSION.summand(40.0)
    window.add(outcomes([40.0, 500.0], [1.0, 1.0], means=[[half, 0.5], [half, 0.5]]), one, 0)
    found = window.measure().learners
    assert found["champion"].mean_absolute_error == pytest.approx((0.0 + 50.0) / 2)  # 500 is learned as 90
    assert found["champion"].root_mean_squared_error == pytest.approx(np.sqrt(50.0**2 / 2))
    assert found["champion"].mistakes is None
    assert found[RUNNING_MEANS].mean_absolute_error == pytest.approx(25.0)
    assert found[CONSTANT].mean_absolute_error == pytest.approx(25.0)
