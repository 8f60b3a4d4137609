from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.statistics import (
    FEATURES,
    PRIOR_WEIGHT,
    RATIO_CAP,
    EntityTotals,
    RunningStatistics,
)


class Play(NamedTuple):
    user: int
    video: int
    label: bool
    ratio: float


plays = st.lists(
    st.builds(
        Play,
        user=st.integers(0, 4),
        video=st.integers(0, 4),
        label=st.booleans(),
        ratio=st.floats(0, 5),
    ),
    max_size=60,
)


def updated(history: list[Play], max_entities: int = 1_000) -> RunningStatistics:
    statistics = RunningStatistics(max_entities)
    for play in history:
        statistics.update(*play)
    return statistics


def smoothed(values: list[float], everything: list[float]) -> float:
    prior = (sum(everything) + 0.5) / (len(everything) + 1)
    return (sum(values) + PRIOR_WEIGHT * prior) / (len(values) + PRIOR_WEIGHT)


def naive_block(own: list[Play], history: list[Play]) -> list[float]:
    """What four features say, from the whole history."""
    mean = smoothed([play.label for play in own], [play.label for play in history])
    ratio = smoothed(
        [min(play.ratio, RATIO_CAP) for play in own], [min(play.ratio, RATIO_CAP) for play in history]
    )
    return [mean, math.log(mean / (1 - mean)), ratio, math.log(1 + len(own))]


@given(history=plays, user=st.integers(0, 5), video=st.integers(0, 5))
def test_features_are_those_of_the_whole_history(history: list[Play], user: int, video: int) -> None:
    features = updated(history).features(user, video)
    users = naive_block([play for play in history if play.user == user], history)
    videos = naive_block([play for play in history if play.video == video], history)
    assert features == pytest.approx([*users, *videos], rel=1e-12, abs=1e-12)


@given(history=plays)
def test_asking_changes_nothing(history: list[Play]) -> None:
    asked, unasked = updated(history), updated(history)
    asked.features(1, 1)
    asked.features("unknown", "unknown")
    assert asked.users.totals == unasked.users.totals
    assert list(asked.users.totals) == list(unasked.users.totals)
    assert asked.features(1, 1) == unasked.features(1, 1)


@given(history=plays, limit=st.integers(1, 4))
def test_only_the_entities_updated_last_are_kept_with_all_their_labels_since(
    history: list[Play], limit: int
) -> None:
    totals = EntityTotals(limit)
    kept: list[int] = []
    sums: dict[int, list[float]] = {}
    for play in history:
        totals.add(play.user, play.label, play.ratio)
        kept = [user for user in kept if user != play.user] + [play.user]
        sums[play.user] = [
            a + b for a, b in zip(sums.get(play.user, [0, 0, 0]), (1, play.label, play.ratio), strict=True)
        ]
        for user in kept[:-limit]:
            del sums[user]
        kept = kept[-limit:]
    assert list(totals.totals) == kept
    assert {user: list(values) for user, values in totals.totals.items()} == sums


def test_a_forgotten_entity_is_like_a_new_one_but_the_rest_remembers_its_labels() -> None:
    statistics = updated([Play(1, 1, True, 2.0), Play(2, 1, False, 0.0)], max_entities=1)
    assert statistics.features(1, 9) == statistics.features(77, 9)
    assert statistics.everything.events == 2


def test_before_the_first_label_every_mean_is_a_half() -> None:
    assert RunningStatistics(10).features("nobody", "nothing") == [0.5, 0.0, 0.5, 0.0] * 2


def test_the_names_are_as_many_as_the_features() -> None:
    assert len(set(FEATURES)) == len(RunningStatistics(10).features(1, 1)) == 8


def test_a_video_on_repeat_counts_no_more_than_one_seen_twice() -> None:
    once, often = updated([Play(1, 1, True, RATIO_CAP)]), updated([Play(1, 1, True, 1e9)])
    assert once.features(1, 1) == often.features(1, 1)


@given(label=st.booleans(), count=st.sampled_from([1, 100, 10_000]))
def test_logits_stay_finite_however_one_sided_the_labels(label: bool, count: int) -> None:
    features = updated([Play(1, 1, label, float(label))] * count).features(1, 1)
    assert all(math.isfinite(value) for value in features)
    assert (features[1] > 0) == label


def test_users_and_videos_of_the_same_id_are_apart_and_so_are_numbers_and_texts() -> None:
    statistics = updated([Play(1, 2, True, 1.0)])
    named = dict(zip(FEATURES, statistics.features(2, 1), strict=True))
    assert named["user_log_count"] == named["video_log_count"] == 0.0
    assert statistics.features("1", "2")[3] == 0.0
