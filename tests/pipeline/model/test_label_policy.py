"""Label policies: each rule against its formula, the budget under any scores, the coin's inputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Labels
from pipeline.model.label_policy import MAX_RATE_DRIFT, RATE_TOLERANCE, LabelPolicy, label_policy, leverage
from pipeline.records.fields import Id
from tests.support.examples import examples

UNKNOWN = [0.0] * 10
WELL_KNOWN = [0.0, 0.0, 0.0, 60.0, 0.0, 0.0, 0.0, 60.0, 0.0, 0.0]
"""Features of a user and a video with more labels than there can be."""


def policy(name: str, rate: float = 0.2, **changes: object) -> LabelPolicy:
    return LabelPolicy(Labels.model_validate({"policy": name, "rate": rate, **changes}))


def share(asking: LabelPolicy, score: float, features: list[float], events: int = 4_000) -> float:
    """Return the share of events asked for, when as many were asked for before as the rate allows."""
    at_rate = {
        "predicted": LabelPolicy.warm_up_predictions + 999,
        "asked": LabelPolicy.warm_up_predictions + 200,
    }
    return float(np.mean([asking.asks(event, score, features, **at_rate) for event in range(events)]))


def test_all_labels_need_no_policy() -> None:
    assert label_policy(Labels()) is None
    assert label_policy(Labels(policy="random")) is not None


@pytest.mark.parametrize("rate", [0.05, 0.5, 1.0])
def test_random_asks_for_its_rate_whatever_the_scores(rate: float) -> None:
    asking = policy("random", rate)
    shares = [share(asking, score, UNKNOWN, 20_000) for score in (0.0, 9.0)]
    assert shares[0] == shares[1] == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize("ahead", [-120, 0, 37])
def test_margin_asks_below_a_threshold_that_follows_the_rate(ahead: int) -> None:
    asking, threshold = policy("margin"), 0.2 * math.exp(-ahead / RATE_TOLERANCE)
    for score, wanted in ((0.999 * threshold, True), (1.001 * threshold, False)):
        for sign in (-1, 1):
            found = asking.asks(1, sign * score, UNKNOWN, predicted=5_249, asked=1_250 + ahead)
            assert found is wanted


@pytest.mark.parametrize(("score", "wanted"), [(0.1, 2 / 3), (0.8, 0.2), (-0.8, 0.2), (1.8, 0.1)])
def test_adaptive_asks_less_often_the_surer_the_score(score: float, wanted: float) -> None:
    assert share(policy("adaptive"), score, WELL_KNOWN, 20_000) == pytest.approx(wanted, abs=0.012)


def test_adaptive_always_asks_where_the_score_is_small_compared_with_the_leverage() -> None:
    asking = policy("adaptive")
    assert share(asking, 0.5, UNKNOWN) == 1.0
    assert share(asking, 0.6, UNKNOWN) == pytest.approx(2 / 3, abs=0.03)


def test_the_leverage_is_the_ridge_leverage_of_user_and_video() -> None:
    """Eq. (3) for indicator features, each with a ridge of the prior's weight, by dense algebra."""
    rng = np.random.default_rng(1)
    users, videos = rng.integers(0, 3, 40), rng.integers(0, 4, 40)
    for user in range(3):
        for video in range(4):
            parts = []
            for ids, own, count in ((users, user, 3), (videos, video, 4)):
                rows, x = np.eye(count)[ids], np.eye(count)[own]
                parts.append(10.0 * x @ np.linalg.inv(rows.T @ rows + 10.0 * np.eye(count)) @ x)
            log_counts = np.log1p([np.sum(users == user), np.sum(videos == video)]).tolist()
            assert leverage(log_counts) == pytest.approx(np.mean(parts), abs=1e-12)


@examples(25)
@given(
    name=st.sampled_from(["margin", "adaptive"]),
    rate=st.floats(0.01, 1.0),
    scale=st.sampled_from([0.0, 1e-9, 1.0, 1e9]),
    seed=st.integers(0, 2**64 - 1),
)
def test_the_budget_is_kept_whatever_the_scores(name: str, rate: float, scale: float, seed: int) -> None:
    asking = policy(name, rate, seed=seed)
    scores = (scale * np.random.default_rng(seed).normal(size=1_500)).tolist()
    asked = 0
    for predicted, score in enumerate(scores):
        asked += asking.asks(predicted, score, UNKNOWN, predicted=predicted, asked=asked)
        later = max(0, predicted + 1 - LabelPolicy.warm_up_predictions)
        assert abs(asked - (predicted + 1 - later) - rate * later) <= MAX_RATE_DRIFT + 1


def test_at_normal_scores_the_rate_is_met_closely() -> None:
    scores = np.random.default_rng(1).normal(size=20_000).tolist()
    for name in ("margin", "adaptive"):
        asking, asked = policy(name), 0
        for predicted, score in enumerate(scores):
            asked += asking.asks(predicted, score, WELL_KNOWN, predicted=predicted, asked=asked)
        later = (asked - LabelPolicy.warm_up_predictions) / (len(scores) - LabelPolicy.warm_up_predictions)
        assert later == pytest.approx(0.2, abs=0.005), name


@pytest.mark.parametrize("name", ["margin", "adaptive"])
def test_all_of_the_warm_up_are_asked_for_however_sure_the_model_is(name: str) -> None:
    asking = policy(name, 0.01)
    found = [
        asking.asks(n, 9.0, WELL_KNOWN, predicted=n, asked=n)
        for n in range(LabelPolicy.warm_up_predictions + 1)
    ]
    assert found == [True] * LabelPolicy.warm_up_predictions + [False]


def test_the_coin_depends_on_seed_and_event_alone() -> None:
    def coins(seed: int, prefix: str) -> list[bool]:
        asking = policy("random", 0.5, seed=seed)
        return [asking.asks(f"{prefix}{n}", 0.0, UNKNOWN, predicted=0, asked=0) for n in range(200)]

    assert coins(1, "e") == coins(1, "e")
    assert coins(1, "e") != coins(2, "e")
    assert coins(1, "e") != coins(1, "f")


def test_the_coins_are_those_of_earlier_logs() -> None:
    """With another hash, an audit of existing logs would report every decision."""
    asking = policy("random", 0.5, seed=7)
    found = [asking.asks(event, 0.0, UNKNOWN, predicted=0, asked=0) for event in (*range(8), "1", "e")]
    assert "".join("01"[asked] for asked in found) == "0100011111"


def test_each_item_of_a_slate_has_its_own_coin() -> None:
    asking = policy("random", 0.5, seed=7)
    items: list[tuple[Id, ...]] = [("e", n) for n in range(8)]
    items += [("f", 0), ("e", "0")]
    found = [asking.asks(item, 0.0, UNKNOWN, predicted=0, asked=0) for item in items]
    assert "".join("01"[asked] for asked in found) == "1111110000"


@pytest.mark.parametrize(
    ("learn_unasked", "asked", "labelled", "learned"),
    [
        (False, None, False, True),
        (False, True, True, True),
        (False, True, False, True),
        (False, False, True, False),
        (False, False, False, False),
        (True, False, True, True),
        (True, False, False, False),
    ],
)
def test_a_label_not_asked_for_is_learned_only_if_the_settings_say_so(
    learn_unasked: bool, asked: bool | None, labelled: bool, learned: bool
) -> None:
    assert policy("random", learn_unasked=learn_unasked).learns(asked, labelled) is learned
