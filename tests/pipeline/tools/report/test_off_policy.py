"""Figures of other policies are those of plain sums, and cover the truth of invented streams."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr

from pipeline.config.stream import CARRIED, KUAIREC, Stream
from pipeline.features.targets import target_of
from pipeline.records.encoding import encode
from pipeline.serving.exploration import Exploration, Strategy, choose
from pipeline.tools.report.off_policy import (
    LOGGED,
    Estimate,
    Logged,
    OffPolicyFigures,
    off_policy_figures,
)
from pipeline.tools.report.partition_run import OutcomeTable, outcome_decoder
from tests.pipeline.task.test_carried import carrying
from tests.support.examples import examples
from tests.support.slates import SLATES

CONTEXTS, ACTIONS, EVENTS, STREAMS = 40, 5, 500, 200
TINY = 1e-4
"""The probability with which a right interval fails one of the tests of coverage."""
ESTIMATES = ("logged", "ips", "snips", "doubly_robust")


class Invented(NamedTuple):
    """An invented stream: what was logged, and the true values of both policies."""

    log: Logged
    truth: dict[str, float]


def invented(seed: int, strategy: Strategy) -> Invented:
    """Events whose context is one of a few, equally often, and whose items are chosen as a follower does.

    The model knows the reward of an item but for errors, so that its estimates are wrong.
    """
    chance = np.random.default_rng(seed)
    scores = chance.normal(size=(CONTEXTS, ACTIONS))
    rewarded = 1 / (1 + np.exp(-scores - chance.normal(size=scores.shape)))
    estimates = 1 / (1 + np.exp(-scores))
    variances = chance.uniform(0.05, 1.0, size=scores.shape)
    exploration = Exploration(strategy, epsilon=0.2, scale=1.0, seed=seed)
    rows, logged = [], np.empty(CONTEXTS)
    for context in range(CONTEXTS):
        choice = choose(exploration, 0, scores[context].tolist(), variances[context].tolist())
        logged[context] = rewarded[context] @ choice.propensities
    for event in range(EVENTS):
        context = int(chance.integers(CONTEXTS))
        choice = choose(exploration, event, scores[context].tolist(), variances[context].tolist())
        rows.append(
            (
                float(chance.uniform() < rewarded[context, choice.chosen]),
                choice.propensities[choice.chosen],
                float(choice.chosen == choice.greedy),
                estimates[context, choice.chosen],
                estimates[context, choice.greedy],
            )
        )
    greedy = float(rewarded[np.arange(CONTEXTS), scores.argmax(axis=1)].mean())
    truth = dict.fromkeys(ESTIMATES, greedy) | {"logged": float(logged.mean())}
    return Invented(np.array(rows, LOGGED), truth)


@pytest.fixture(scope="module")
def streams() -> list[Invented]:
    """Half of them explored in one way, half in the other."""
    return [invented(seed, ("epsilon-greedy", "thompson")[seed % 2]) for seed in range(STREAMS)]


def covered(found: list[OffPolicyFigures], streams: list[Invented], name: str) -> int:
    """In how many streams the interval has the truth in it."""
    count = 0
    for figures, stream in zip(found, streams, strict=True):
        estimate: Estimate = getattr(figures, name)
        assert estimate.low is not None
        assert estimate.high is not None
        count += estimate.low <= stream.truth[name] <= estimate.high
    return count


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_cover_the_truth_at_their_level(streams: list[Invented], level: float) -> None:
    found = [off_policy_figures([each.log], level) for each in streams]
    assert all(each.capped == 0 for each in found)
    for name in ESTIMATES:
        count = covered(found, streams, name)
        assert bdtr(count, STREAMS, level) > TINY, (name, count)
        assert 1 - bdtr(count - 1, STREAMS, level) > TINY, (name, count)


@pytest.mark.slow
def test_capped_weights_have_intervals_that_cover_the_truth_at_least_so_often(
    streams: list[Invented],
) -> None:
    found = [off_policy_figures([each.log], 0.95, cap=1.02) for each in streams]
    assert all(each.capped > 0 for each in found)
    assert bdtr(covered(found, streams, "ips"), STREAMS, 0.95) > TINY
    plain = [off_policy_figures([each.log], 0.95) for each in streams]
    for each, other in zip(found, plain, strict=True):
        assert each.ips is not None
        assert other.ips is not None
        assert each.ips.value < other.ips.value


@pytest.mark.slow
def test_the_model_makes_intervals_narrower(streams: list[Invented]) -> None:
    def width(figures: OffPolicyFigures, name: str) -> float:
        estimate: Any = getattr(figures, name)
        return float(estimate.high - estimate.low)

    found = [off_policy_figures([each.log]) for each in streams]
    for narrower, wider in (("doubly_robust", "ips"), ("snips", "ips")):
        assert np.mean([width(each, narrower) < width(each, wider) for each in found]) > 0.9


NUMBERS = st.floats(-3, 3)
ROWS = st.lists(
    st.tuples(
        NUMBERS | st.just(math.nan),
        st.floats(0.01, 1) | st.just(math.nan),
        st.floats(0, 1, allow_subnormal=False) | st.just(math.nan),  # whose products lose digits
        NUMBERS | st.just(math.nan),
        NUMBERS | st.just(math.nan),
    ),
    max_size=30,
)


@examples(200)
@given(ROWS, st.floats(0.5, 20.0), st.integers(0, 30))
def test_values_are_those_of_plain_sums(rows: list[tuple[float, ...]], cap: float, split: int) -> None:
    parts = [np.array(rows[:split], LOGGED), np.array(rows[split:], LOGGED)]
    found = off_policy_figures(parts, cap=cap)
    rewarded = [row for row in rows if not math.isnan(row[0])]
    weighted = [row for row in rewarded if not math.isnan(row[1] + row[2])]
    robust = [row for row in weighted if not math.isnan(row[3] + row[4])]
    assert (found.outcomes, found.without_reward) == (len(rewarded), len(rows) - len(rewarded))
    assert (found.weighted, found.with_estimates) == (len(weighted), len(robust))
    assert value(found.logged) == mean([row[0] for row in rewarded])
    assert value(found.ips) == mean([min(cap, t / p) * r for r, p, t, _, _ in weighted])
    total = math.fsum(t / p for _, p, t, _, _ in weighted)
    expected = math.fsum(t / p * r for r, p, t, _, _ in weighted) / total if total > 0 else None
    assert value(found.snips) == approximately(expected)
    assert value(found.doubly_robust) == mean([q + t / p * (r - e) for r, p, t, e, q in robust])
    assert found.capped == sum(t / p > cap for _, p, t, _, _ in weighted)


def value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def mean(values: list[float]) -> Any:
    return approximately(math.fsum(values) / len(values) if values else None)


def approximately(expected: float | None) -> Any:
    return None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_one_outcome_has_no_interval() -> None:
    found = off_policy_figures([np.array([(1.0, 0.5, 1.0, 0.5, 0.5)], LOGGED)])
    assert found.ips == Estimate(1.0, None, None)  # the cap is 1
    assert found.snips == Estimate(1.0, None, None)
    assert found.doubly_robust == Estimate(1.5, None, None)


def test_without_outcomes_there_are_no_estimates() -> None:
    found = off_policy_figures([])
    assert (found.logged, found.ips, found.snips, found.doubly_robust) == (None,) * 4
    assert (found.cap, found.largest_weight, found.effective) == (None,) * 3


def test_a_target_policy_that_shows_nothing_of_the_log_is_worth_0_by_ips_and_unknown_else() -> None:
    found = off_policy_figures([np.array([(1.0, 0.5, 0.0, math.nan, math.nan)] * 9, LOGGED)])
    assert found.ips == Estimate(0.0, 0.0, 0.0)
    assert (found.snips, found.doubly_robust, found.effective) == (None, None, None)


def reported(stream: Stream, **changes: Any) -> tuple[float, ...]:
    """What is logged of an outcome."""
    decoder = outcome_decoder(stream)
    fields = {
        **{"sequence": 0, "prediction_sequence": 0, "model_version": 0, "timestamp": 5, "label_timestamp": 9},
        **{"score": 0.5, "probability": None, "predicted": True, "features": [0.5] * 10},
        **{stream.target.name: 1.0, "label": True, "status": "labelled"},
        **dict(zip(CARRIED, (0.25, 0.0, None, 2.0), strict=True)),
    }
    table = OutcomeTable(stream, target_of(stream.target))
    table.add([decoder.decode(encode(fields | changes))])
    [[row]] = table.logged
    return tuple(row)


@pytest.mark.parametrize(
    ("changes", "reward"),
    [
        ({}, 1.0),
        ({"watch_ratio": 0.5, "label": False}, 0.0),
        ({"label": None}, 1.0),  # the label came, but was not asked for
        ({"watch_ratio": None, "label_timestamp": None, "label": False, "status": "expired"}, 0.0),
        ({"watch_ratio": None, "label_timestamp": None, "label": None, "status": "expired"}, math.nan),
    ],
)
def test_the_reward_is_the_label_or_what_is_learned_in_its_place(
    changes: dict[str, Any], reward: float
) -> None:
    found = reported(carrying(CARRIED), **changes)
    np.testing.assert_equal(found, (reward, 0.25, 0.0, math.nan, 2.0))


def test_the_reward_is_the_number_where_numbers_are_predicted() -> None:
    target = {"kind": "regression", "name": "minutes", "offset": 30, "cap": 60, "scale": 10}
    stream = Stream.model_validate(carrying(CARRIED).model_dump() | {"target": target})
    assert reported(stream, predicted=31.5, minutes=40.0, label=40.0)[0] == 40.0


def test_without_propensities_nothing_is_kept() -> None:
    table = OutcomeTable(KUAIREC, target_of(KUAIREC.target))
    table.add([])
    assert table.logged == []


def test_of_slates_only_items_that_were_drawn_are_kept() -> None:
    definition = SLATES.model_dump()
    definition["interactions"] |= {name: f"/{name}" for name in CARRIED}
    stream = Stream.model_validate(definition)
    assert reported(stream)[1] == 0.25
    table = OutcomeTable(stream, target_of(stream.target))
    table.add([])
    with pytest.raises(ValueError, match="not enough values"):  # nothing is logged of an item without one
        reported(stream, **dict.fromkeys(CARRIED))
    assert [len(each) for each in table.logged] == [0]
