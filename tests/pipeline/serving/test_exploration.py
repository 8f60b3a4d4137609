"""Propensities are the probabilities of the draw."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import chdtrc, ndtr

from pipeline.config.settings import Config
from pipeline.serving.exploration import (
    NARROWEST,
    Choice,
    Exploration,
    Strategy,
    choose,
    probabilities_of_best,
)
from tests.support.examples import examples

SCORES = st.floats(-1e6, 1e6)
VARIANCES = st.floats(0.0, 1e6)
STRATEGIES: tuple[Strategy, ...] = ("epsilon-greedy", "thompson")


def exploration(strategy: Strategy, **changed: Any) -> Exploration:
    return Exploration(**({"strategy": strategy, "epsilon": 0.1, "scale": 1.0, "seed": 3} | changed))


@st.composite
def requests(draw: st.DrawFn) -> tuple[Exploration, list[float], list[float]]:
    count = draw(st.integers(1, 30))
    scores = draw(st.lists(SCORES, min_size=count, max_size=count))
    variances = draw(st.lists(VARIANCES, min_size=count, max_size=count))
    epsilon, scale = draw(st.floats(0.0, 1.0)), draw(st.floats(1e-3, 1e3))
    return exploration(draw(st.sampled_from(STRATEGIES)), epsilon=epsilon, scale=scale), scores, variances


@examples(300)
@given(requests(), st.integers() | st.text(min_size=1))
def test_propensities_are_probabilities_and_the_draw_repeats(
    request: tuple[Exploration, list[float], list[float]], event_id: int | str
) -> None:
    settings, scores, variances = request
    event_id = event_id % 2**63 if isinstance(event_id, int) else event_id
    choice = choose(settings, event_id, scores, variances)
    assert math.fsum(choice.propensities) == pytest.approx(1.0, abs=1e-12)
    assert min(choice.propensities) >= settings.epsilon / len(scores) * (1 - 1e-12)
    assert choice.propensities[choice.chosen] > 0.0
    assert scores[choice.greedy] == max(scores)
    assert choose(settings, event_id, scores, variances) == choice


@examples(100)
@given(st.integers(1, 50), st.floats(0.0, 1.0), st.randoms(use_true_random=False))
def test_epsilon_greedy_has_the_probabilities_of_its_definition(
    count: int, epsilon: float, chance: Any
) -> None:
    scores = [chance.gauss(0, 1) for _ in range(count)]
    choice = choose(exploration("epsilon-greedy", epsilon=epsilon), 7, scores, None)
    for number, each in enumerate(choice.propensities):
        greedy = (1.0 - epsilon) if number == choice.greedy else 0.0
        assert each == greedy + epsilon / count


def test_of_equal_scores_the_first_is_greedy() -> None:
    choice = choose(exploration("epsilon-greedy", epsilon=0.0), 7, [1.0, 2.0, 2.0], None)
    assert choice == Choice(1, 1, [0.0, 1.0, 0.0])


def integrated(scores: list[float], widths: list[float], number: int) -> float:
    """The probability of being the best, by adaptive quadrature."""

    def density(value: float) -> float:
        z = (value - scores[number]) / widths[number]
        others = [
            ndtr((value - score) / width)
            for place, (score, width) in enumerate(zip(scores, widths, strict=True))
            if place != number
        ]
        return float(math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) / widths[number] * np.prod(others))

    points = sorted(
        score + turn * width for score, width in zip(scores, widths, strict=True) for turn in (-8, 0, 8)
    )
    edges = itertools.pairwise(points)
    return math.fsum(quad(density, *edge, epsabs=1e-14, limit=200)[0] for edge in edges if edge[0] < edge[1])


@pytest.mark.parametrize("seed", range(12))
def test_thompson_has_the_probabilities_of_a_gaussian_race(seed: int) -> None:
    chance = np.random.default_rng(seed)
    count = int(chance.integers(1, 7))
    scores, widths = chance.normal(size=count), NARROWEST ** chance.uniform(0.0, 1.0, size=count)
    found = probabilities_of_best(scores, widths)
    widest = np.maximum(widths, NARROWEST * widths.max())
    for number, each in enumerate(found):
        assert each == pytest.approx(integrated(scores.tolist(), widest.tolist(), number), abs=1e-12)


def test_thompson_wins_as_often_as_its_noisy_scores() -> None:
    scores, widths = np.array([0.3, 0.0, -0.4, 0.1]), np.array([0.2, 0.5, 1.0, 0.1])
    drawn = np.random.default_rng(5).normal(scores, widths, size=(400_000, 4)).argmax(axis=1)
    found = probabilities_of_best(scores, widths)
    np.testing.assert_allclose(np.bincount(drawn) / len(drawn), found, atol=5 * 0.5 / math.sqrt(len(drawn)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_events_choose_as_often_as_their_propensities_say(strategy: Strategy) -> None:
    scores, variances, events = [0.3, 0.0, -0.4, 0.1, -3.0], [0.04, 0.25, 1.0, 0.01, 0.1], 40_000
    settings = exploration(strategy)
    choices = [choose(settings, f"event-{number}", scores, variances) for number in range(events)]
    assert len({tuple(each.propensities) for each in choices}) == 1
    found = np.bincount([each.chosen for each in choices], minlength=len(scores))
    expected = events * np.array(choices[0].propensities)
    chi_square = float(((found - expected) ** 2 / expected).sum())
    assert chdtrc(len(scores) - 1, chi_square) > 1e-6


def test_other_seeds_choose_otherwise() -> None:
    scores = [0.0] * 4
    chosen = [
        [
            choose(exploration("epsilon-greedy", epsilon=1.0, seed=seed), event, scores, None).chosen
            for event in range(200)
        ]
        for seed in (0, 1)
    ]
    assert np.mean(np.array(chosen[0]) == np.array(chosen[1])) < 0.5


def test_no_variance_is_no_exploration() -> None:
    choice = choose(exploration("thompson", epsilon=0.0), 7, [1.0, 3.0, 2.0], [0.0, 0.0, 0.0])
    assert choice == Choice(1, 1, [0.0, 1.0, 0.0])


@pytest.mark.parametrize("widths", [[1e-300, 1e-310], [1e300, 1.0], [5e-324, 0.0]])
def test_extreme_widths_have_probabilities(widths: list[float]) -> None:
    found = probabilities_of_best(np.array([1.0, 0.0]), np.array(widths))
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()


def test_settings_are_those_of_the_configuration() -> None:
    config = Config.model_validate(
        {"serve": {"explore": "thompson", "epsilon": 0.2, "thompson_scale": 0.5}, "labels": {"seed": 9}}
    )
    assert Exploration.of(config.serve, config.labels) == Exploration("thompson", 0.2, 0.5, 9)
