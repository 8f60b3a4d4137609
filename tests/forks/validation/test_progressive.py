from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import stream

from forks import LOSSES, Forks, ForksSettings, LossName
from forks.arrays import FloatArray
from forks.validation import Event, Predictions, best_linear, progressive, summarize, without_delay
from forks.validation.hindsight import losses
from tests.support.examples import examples


class Notes:
    """Records the events it predicts and learns; its score is the number of events learned."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, float | None]] = []

    def predict_one(self, x: str) -> float:
        self.calls.append((x, None))
        return float(sum(y is not None for _, y in self.calls))

    def learn_one(self, x: str, y: float) -> None:
        self.calls.append((x, y))


def random_stream(seed: int, rows: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=rows) > 0.1, 1.0, -1.0)


def test_each_event_is_predicted_when_it_happens_and_learned_when_its_label_is_known() -> None:
    learner = Notes()
    plays = [Event("a", 1.0, 0, 30), Event("b", -1.0, 10, 5), Event("c", 1.0, 15, 0), Event("d", -1.0, 20, 9)]
    predictions = progressive(learner, plays)
    assert learner.calls == [
        ("a", None), ("b", None), ("b", -1.0), ("c", None), ("c", 1.0), ("d", None), ("d", -1.0), ("a", 1.0),
    ]  # fmt: skip
    assert predictions.scores.tolist() == [0.0, 0.0, 1.0, 2.0]
    assert predictions.labels.tolist() == [1.0, -1.0, 1.0, -1.0]


@examples(20)
@given(seed=st.integers(0, 100), longest=st.sampled_from([0, 3, 50]))
def test_scores_are_those_of_a_loop_over_simulate_qa(seed: int, longest: int) -> None:
    X, y = random_stream(seed, 60)
    rng = np.random.default_rng(seed)
    moments, delays = np.sort(rng.integers(0, 40, 60)), rng.integers(0, longest + 1, 60)
    chosen = ForksSettings.practical(3, budget=5, cycle=10)
    rows = zip(X, y.tolist(), moments.tolist(), delays.tolist(), strict=True)
    predictions = progressive(Forks(chosen), (Event(*row) for row in rows))
    learner, scores = Forks(chosen), []
    dataset: list[tuple[dict[Hashable, int], float]]
    dataset = [({"moment": int(moments[i]), "delay": int(delays[i])}, float(y[i])) for i in range(60)]
    for number, _, answer in stream.simulate_qa(dataset, moment="moment", delay="delay"):
        if answer is None:
            scores.append(learner.predict_one(X[number]))
        else:
            learner.learn_one(X[number], answer)
    assert predictions.scores.tolist() == scores
    assert predictions.labels.tolist() == y.tolist()


@pytest.mark.parametrize("label", [0.0, 2.0, math.nan])
def test_a_label_of_another_kind_is_refused_before_anything_is_learned_from_it(label: float) -> None:
    learner = Notes()
    with pytest.raises(ValueError, match=r"event 1: the label must be -1 or \+1"):
        progressive(learner, [Event("a", 1.0, 0, 0), Event("b", label, 1, 0)])
    assert learner.calls == [("a", None), ("a", 1.0)]


def test_a_score_that_is_not_a_number_is_no_prediction() -> None:
    class Broken(Notes):
        def predict_one(self, x: str) -> float:
            return super().predict_one(x) + math.nan

    with pytest.raises(ValueError, match="event 0: the learner's score must be finite, not nan"):
        progressive(Broken(), [Event("a", 1.0, 0, 0)])


def test_counting_starts_at_the_first_event_and_a_score_of_zero_says_no() -> None:
    predictions = Predictions(np.array([0.0, 0.0, 2.0, -1.0]), np.array([1.0, -1.0, 1.0, 1.0]))
    total = summarize(predictions, loss="hinge").total
    assert (total.first, total.events, total.mistakes) == (0, 4, 0.5)
    assert (total.majority, total.positive, total.auc) == (0.25, 0.75, 0.5)
    assert total.loss == (1.0 + 1.0 + 0.0 + 2.0) / 4


def test_scores_that_are_no_log_odds_have_no_probability_metrics() -> None:
    predictions = Predictions(np.array([0.5, -0.5]), np.array([1.0, -1.0]))
    total = summarize(predictions, loss="hinge").total
    assert (total.log_loss, total.brier, total.calibration_error, total.regret) == (None, None, None, None)
    logistic = summarize(predictions, loss="logistic").total
    assert logistic.log_loss == pytest.approx(logistic.loss)
    assert logistic.brier == pytest.approx((1.0 / (1.0 + math.exp(0.5))) ** 2)


@examples(40)
@given(seed=st.integers(0, 100), rows=st.integers(1, 60), window=st.none() | st.integers(1, 70))
def test_windows_add_up_to_the_total(seed: int, rows: int, window: int | None) -> None:
    X, y = random_stream(seed, rows)
    found = summarize(
        Predictions(np.random.default_rng(seed).normal(size=rows), y), loss="logistic", X=X, window=window
    )
    weights = [piece.events for piece in found.windows]
    assert sum(weights) == rows
    assert [piece.first for piece in found.windows] == [sum(weights[:n]) for n in range(len(weights))]
    assert len(weights) <= 10 or window is not None
    for name in ("mistakes", "majority", "positive", "loss", "log_loss", "brier"):
        shares = [getattr(piece, name) for piece in found.windows]
        assert getattr(found.total, name) == pytest.approx(np.average(shares, weights=weights))
    regrets = [piece.regret for piece in found.windows if piece.regret is not None]
    assert found.total.regret == pytest.approx(sum(regrets), abs=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "squared"])
def test_regret_is_the_learners_loss_less_that_of_the_best_linear_predictor(loss: LossName) -> None:
    X, y = random_stream(3, 80)
    best = best_linear(X, y, loss).scores(X)
    nothing = summarize(Predictions(np.zeros(80), y), loss=loss, X=X).total
    expected = float(losses(LOSSES[loss], np.zeros(80), y).sum() - losses(LOSSES[loss], best, y).sum())
    assert expected > 0.0
    assert nothing.regret == pytest.approx(expected)
    assert summarize(Predictions(best, y), loss=loss, X=X).total.regret == pytest.approx(0.0, abs=1e-9)


def test_a_nonlinear_learner_has_negative_regret_where_nothing_linear_helps() -> None:
    X, y = random_stream(4, 3_000)
    predictions = progressive(Forks(ForksSettings.practical(3, width=1.5)), without_delay(X, y))
    regret = summarize(predictions, loss="logistic", X=X).total.regret
    assert regret is not None
    assert regret < -100.0


def test_what_cannot_be_summed_up_is_refused() -> None:
    predictions = Predictions(np.zeros(2), np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="no event"):
        summarize(Predictions(np.empty(0), np.empty(0)), loss="hinge")
    with pytest.raises(ValueError, match="a row for each of the 2 events, not 3"):
        summarize(predictions, loss="hinge", X=np.zeros((3, 1)))
    with pytest.raises(ValueError, match="window = 0 is not accepted"):
        summarize(predictions, loss="hinge", window=0)
