"""Rank metrics of closed slates, with scikit-learn as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.tools.report.ranking import ClosedSlates, closed_slates, ranking
from tests.support.examples import examples

Floats = NDArray[np.float64]


def closed(slates: list[list[tuple[float, float]]]) -> ClosedSlates:
    """Return slates of (gain, score), in the order shown."""
    return ClosedSlates(
        np.array([number for number, each in enumerate(slates) for _ in each]),
        np.array([position for each in slates for position in range(len(each))]),
        np.array([gain for each in slates for gain, _ in each]),
        {"champion": np.array([score for each in slates for _, score in each])},
    )


slate = st.lists(
    st.tuples(st.sampled_from([0.0, 0.0, 1.0, 2.5]), st.sampled_from([-1.0, 0.0, 0.25, 3.0])),
    min_size=2,
    max_size=7,
)


@examples(100)
@given(slates=st.lists(slate, min_size=1, max_size=6), top=st.integers(1, 8))
def test_ndcg_is_that_of_scikit_learn(slates: list[list[tuple[float, float]]], top: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    found = ranking([closed(slates[:2]), closed(slates[2:])] if slates[2:] else [closed(slates)], top)
    assert found is not None
    positive = [each for each in slates if any(gain > 0 for gain, _ in each)]
    assert (found.slates, found.with_positive) == (len(slates), len(positive))
    if not positive:
        assert found.rankings == []
        return
    shown, champion = found.rankings
    by_score, by_position = [], []
    for each in positive:
        gains, scores = np.array(each).T
        by_score.append(metrics.ndcg_score([gains], [scores], k=top))
        by_position.append(metrics.ndcg_score([gains], [-np.arange(len(gains))], k=top))
    assert champion.ndcg == pytest.approx(np.mean(by_score))
    assert shown.ndcg == pytest.approx(np.mean(by_position))
    assert champion.gain == pytest.approx(np.mean(by_score) - np.mean(by_position))
    if len(positive) > 1:
        assert champion.ndcg_error == pytest.approx(np.std(by_score, ddof=1) / np.sqrt(len(positive)))
        differences = np.subtract(by_score, by_position)
        assert champion.gain_error == pytest.approx(np.std(differences, ddof=1) / np.sqrt(len(positive)))
    hits = [
        any(gain > 0 and sum(other >= score for _, other in each) <= top for gain, score in each)
        for each in positive
    ]
    assert champion.hit_rate == pytest.approx(np.mean(hits))


def test_rates_by_position() -> None:
    found = ranking([closed([[(1.0, 0.0), (0.0, 0.0)], [(0.0, 0.0), (0.0, 0.0), (1.0, 0.0)]])])
    assert found is not None
    assert [(each.position, each.items, each.rate, each.error) for each in found.positions] == [
        (0, 2, 0.5, 0.5),
        (1, 2, 0.0, 0.0),
        (2, 1, 1.0, None),
    ]


def test_only_slates_whose_items_are_all_closed_and_scored_count() -> None:
    sequences = np.array([4, 3, 4, 5, 6, 3, 6])
    positions = np.array([1, 0, 0, 0, 1, 1, 0])
    gains = np.array([1.0, 0.0, 0.5, 1.0, 0.0, 0.25, 1.0])
    scores = {"champion": np.arange(7.0), "small": np.array([0, 0, 0, 0, np.nan, 0, 0])}
    found = closed_slates(sequences, positions, gains, scores, {3: 2, 4: 2, 5: 3, 6: 2})
    assert found.gains.tolist() == [0.0, 0.25, 0.5, 1.0]
    assert found.positions.tolist() == [0, 1, 0, 1]
    assert found.scores["champion"].tolist() == [1.0, 5.0, 2.0, 0.0]


def test_nothing_closed_gives_no_ranking() -> None:
    nothing = np.empty(0, dtype=np.int64)
    empty = closed_slates(nothing, nothing, np.empty(0), {"champion": np.empty(0)}, {})
    assert ranking([empty]) is None
