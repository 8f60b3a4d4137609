"""Running statistics, one by one and in batches, against plain ones, and their guarantees."""

from __future__ import annotations

import math
import tracemalloc
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import ForksSettings
from pipeline.config.feature_layout import FeatureKind
from pipeline.config.stream import KUAIREC
from pipeline.features import effects, statistics_loop, statistics_run, totals
from pipeline.features.binary import TARGET
from pipeline.features.feature_set import EFFECTS, FEATURES, RUNNING, FeatureSet
from pipeline.features.statistics import Floats, RunningStatistics
from pipeline.features.tags import TagLists
from pipeline.model.warm_up import warm_up
from pipeline.records.fields import FEATURES_LENGTH, Id
from pipeline.records.outputs import EffectSums, EntityCounts, Share
from tests.support.plain_statistics import PlainStatistics
from tests.support.threads import runs_beside

TAGS: dict[Id, list[int]] = {0: [2], 1: [2, 0], 2: [5], 3: [], "three": [0, 5, 5]}
"""Tags by video: one video has none, others are not known, and no video has tag 1, 3 or 4."""

RUNNING_SET = FeatureSet.of(KUAIREC, "running")


def statistics_of(kind: FeatureKind) -> RunningStatistics:
    return RunningStatistics(10, TagLists(TAGS), FeatureSet.of(KUAIREC, kind))


class Play(NamedTuple):
    user: Id
    video: Id
    label: bool
    ratio: float

    @property
    def counted(self) -> tuple[tuple[Id, Id], bool, float]:
        """What is counted of it."""
        return (self.user, self.video), self.label, self.ratio


ids = st.integers(0, 5) | st.sampled_from(["1", "three"])
plays = st.lists(
    st.builds(Play, user=ids, video=ids, label=st.booleans(), ratio=st.floats(0, 5)), max_size=60
)


class Steps(NamedTuple):
    """Plays, and the order in which their features are looked up and their labels counted."""

    plays: list[Play]
    order: list[int]
    cuts: set[int]
    """Steps before which a batch ends."""


@st.composite
def steps(draw: st.DrawFn) -> Steps:
    events = draw(plays)
    order = draw(st.permutations(range(2 * len(events))))
    return Steps(events, list(order), draw(st.sets(st.integers(0, len(order)), max_size=8)))


limits = st.integers(1, 8)


def one_by_one(statistics: RunningStatistics | PlainStatistics, drawn: Steps) -> dict[int, list[float]]:
    """Return the features of each play at the step that looks them up."""
    found = {}
    for number in drawn.order:
        play = drawn.plays[number % len(drawn.plays)]
        if number < len(drawn.plays):
            found[number] = statistics.features((play.user, play.video))
        else:
            statistics.update(*play.counted)
    return found


def in_batches(statistics: RunningStatistics, drawn: Steps) -> Floats:
    """Return the features of all plays, run in batches that end at the cuts."""
    n = len(drawn.plays)
    users, videos = [play.user for play in drawn.plays], [play.video for play in drawn.plays]
    labels = np.array([play.label for play in drawn.plays], dtype=np.bool_)
    ratios = np.array([play.ratio for play in drawn.plays], dtype=np.float64)
    out = np.full((n, FEATURES_LENGTH), np.nan)
    for begin, end in pairwise(sorted({0, *drawn.cuts, len(drawn.order)})):
        order = np.array(drawn.order[begin:end], dtype=np.int64)
        found = statistics.run(order, [users, videos], labels, ratios)
        looked_up = ~np.isnan(found[:, 0])
        assert set(np.flatnonzero(looked_up)) == {number for number in order.tolist() if number < n}
        out[looked_up] = found[looked_up]
    return out


def state_of(statistics: RunningStatistics) -> list[object]:
    """Return the whole state, entities in the order of eviction."""
    both = [table.state() for table in statistics.tables]
    effects: list[object] = []
    if statistics.effects is not None:
        state = statistics.effects.state(*(table.rows() for table in statistics.tables))
        effects = [array.tolist() for array in state]
    return [(entities, rows.tolist()) for entities, rows in both] + [
        statistics.tags.tolist(),
        statistics.everything.tolist(),
        *effects,
    ]


@given(drawn=steps(), limit=limits)
def test_features_and_totals_are_those_of_the_plain_statistics(drawn: Steps, limit: int) -> None:
    compiled, plain = RunningStatistics(limit, TagLists(TAGS), RUNNING_SET), PlainStatistics(limit, TAGS)
    found, expected = one_by_one(compiled, drawn), one_by_one(plain, drawn)
    assert found == expected
    for entities, others in zip(compiled.tables, (plain.users, plain.videos), strict=True):
        kept, rows = entities.state()
        assert kept == list(others)
        assert rows.tolist() == [list(values) for values in others.values()]
    assert compiled.everything.tolist() == [list(plain.everything)]
    assert compiled.tags.tolist() == [list(plain.tags.get(tag, (0.0, 0.0, 0.0))) for tag in range(6)]


@given(drawn=steps(), limit=limits, kind=st.sampled_from(sorted(FEATURES)))
def test_batches_change_no_bit(drawn: Steps, limit: int, kind: FeatureKind) -> None:
    features = FeatureSet.of(KUAIREC, kind)
    alone, together = (RunningStatistics(limit, TagLists(TAGS), features) for _ in range(2))
    found = one_by_one(alone, drawn)
    assert in_batches(together, drawn).tolist() == [found[event] for event in range(len(drawn.plays))]
    assert state_of(together) == state_of(alone)


shared_counts = st.lists(
    st.builds(
        lambda video, labels, more, ratios: EntityCounts(video, labels + more, labels, ratios),
        ids,
        st.integers(0, 9),
        st.integers(0, 9),
        st.floats(0, 9),
    ),
    max_size=12,
)


@given(history=plays, later=plays, counts=shared_counts, limit=limits)
def test_shared_counts_are_added_as_the_plain_statistics_add_them(
    history: list[Play], later: list[Play], counts: list[EntityCounts], limit: int
) -> None:
    compiled, plain = RunningStatistics(limit, TagLists(TAGS), RUNNING_SET), PlainStatistics(limit, TAGS)
    for statistics in (compiled, plain):
        for play in history:
            statistics.update(*play.counted)
        statistics.merge_shared([Share(1, 0, 1, counts, [])])
        for play in later:
            statistics.update(*play.counted)
    kept, rows = compiled.tables[1].state()
    assert kept == list(plain.videos)
    assert rows.tolist() == [list(values) for values in plain.videos.values()]
    assert compiled.tables[0].state()[0] == list(plain.users)
    assert compiled.everything.tolist() == [list(plain.everything)]
    assert compiled.tags.tolist() == [list(plain.tags.get(tag, (0.0, 0.0, 0.0))) for tag in range(6)]
    for video in range(6):
        assert compiled.features((1, video)) == plain.features((1, video))


def updated(history: list[Play], max_entities: int = 1_000) -> RunningStatistics:
    statistics = RunningStatistics(max_entities, TagLists(TAGS), RUNNING_SET)
    for play in history:
        statistics.update(*play.counted)
    return statistics


def named(values: list[float]) -> dict[str, float]:
    return dict(zip(RUNNING, values, strict=True))


@given(history=plays)
def test_looking_features_up_changes_nothing(history: list[Play]) -> None:
    read, untouched = updated(history), updated(history)
    read.features((1, 1))
    read.features(("unknown", "unknown"))
    assert state_of(read) == state_of(untouched)


@given(history=plays, limit=limits, later=steps())
def test_restored_statistics_go_on_with_the_same_bits(history: list[Play], limit: int, later: Steps) -> None:
    statistics = updated(history, limit)
    copies = updated(later.plays, limit), updated(later.plays, limit)
    for copy in copies:
        for entities, others in zip(statistics.tables, copy.tables, strict=True):
            others.restore(*entities.state())
        copy.tags[:], copy.everything[:] = statistics.tags, statistics.everything
        assert state_of(copy) == state_of(statistics)
    found = one_by_one(statistics, later)
    assert one_by_one(copies[0], later) == found
    assert in_batches(copies[1], later).tolist() == [found[event] for event in range(len(later.plays))]
    for copy in copies:
        assert state_of(copy) == state_of(statistics)


def test_an_evicted_entity_is_like_a_new_one_but_its_labels_still_count_in_the_global_mean() -> None:
    statistics = updated([Play(1, 1, True, 2.0), Play(2, 1, False, 0.0)], max_entities=1)
    assert statistics.features((1, 9)) == statistics.features((77, 9))
    assert statistics.everything[0, totals.EVENTS] == 2


def test_before_the_first_label_every_mean_is_a_half() -> None:
    running = RunningStatistics(10, features=RUNNING_SET)
    assert running.features(("nobody", "nothing")) == [0.5, 0.0, 0.5, 0.0] * 2 + [0.5, 0.5]
    found = dict(zip(EFFECTS, RunningStatistics(10).features(("nobody", "nothing")), strict=True))
    assert found["user_label_mean"] == found["video_label_mean"] == found["video_tag_value_mean"] == 0.5
    assert found["user_effect"] == found["video_effect"] == found["effects_logit"] == 0.0
    assert found["user_noise"] == found["video_noise"] == pytest.approx(math.sqrt(0.5), abs=1e-6)


def test_the_names_are_as_many_as_the_features() -> None:
    for kind, names in FEATURES.items():
        assert len(set(names)) == len(statistics_of(kind).features((1, 1))) == FEATURES_LENGTH


def test_both_kinds_have_means_and_counts_at_the_same_places() -> None:
    statistics = {kind: statistics_of(kind) for kind in FEATURES}
    for each in statistics.values():
        each.update((1, 1), True, 1.5)
    found = {kind: each.features((1, 1)) for kind, each in statistics.items()}
    for name in ("user_label_mean", "user_log_count", "video_label_mean", "video_log_count"):
        place = RUNNING.index(name)
        assert EFFECTS[place] == name
        assert found["effects"][place] == found["running"][place] > 0.0


def test_a_video_on_repeat_counts_no_more_than_one_seen_twice() -> None:
    once, often = updated([Play(1, 1, True, TARGET.cap)]), updated([Play(1, 1, True, 1e9)])
    assert once.features((1, 1)) == often.features((1, 1))


@given(label=st.booleans(), count=st.sampled_from([1, 100, 10_000]))
def test_logits_stay_finite_however_one_sided_the_labels(label: bool, count: int) -> None:
    features = updated([Play(1, 1, label, float(label))] * count).features((1, 1))
    assert all(math.isfinite(value) for value in features)
    assert (features[1] > 0) == label


def test_users_and_videos_of_the_same_id_are_apart_and_so_are_numbers_and_texts() -> None:
    statistics = updated([Play(1, 2, True, 1.0)])
    of_others = named(statistics.features((2, 1)))
    assert of_others["user_log_count"] == of_others["video_log_count"] == 0.0
    assert statistics.features(("1", "2"))[3] == 0.0


@given(history=plays, tags=st.sampled_from([None, TagLists({}), TagLists({9: [1]})]))
def test_a_video_without_known_tags_has_its_plain_means_twice(
    history: list[Play], tags: TagLists | None
) -> None:
    statistics = RunningStatistics(1_000, tags, RUNNING_SET)
    for play in history:
        statistics.update(*play.counted)
    for video in range(5):
        found = named(statistics.features((1, video)))
        assert found["video_tag_label_mean"] == found["video_label_mean"]
        assert found["video_tag_value_mean"] == found["video_value_mean"]


def test_a_new_video_starts_from_the_mean_of_videos_with_its_tags() -> None:
    statistics = updated([Play(1, 0, True, 2.0), Play(2, 0, True, 2.0), Play(3, 2, False, 0.0)])
    prior, ratio_prior = 2.5 / 4, 4.5 / 4
    alike = named(statistics.features((9, 1)))  # has video 0's tag 2, and 0, which has no labels
    assert alike["video_label_mean"] == prior
    assert alike["video_tag_label_mean"] == pytest.approx((2 + 10 * prior) / 12)
    assert alike["video_tag_value_mean"] == pytest.approx((4 + 10 * ratio_prior) / 12)


def test_a_label_counts_once_for_each_tag_of_its_video() -> None:
    statistics = updated([Play(1, 1, True, 1.0), Play(1, "three", False, 0.5), Play(1, 77, True, 1.0)])
    zeros = [0.0, 0.0, 0.0]
    expected = [[2.0, 1.0, 1.5], zeros, [1.0, 1.0, 1.0], zeros, zeros, [1.0, 0.0, 0.5]]
    assert statistics.tags.tolist() == expected


def test_memory_is_bounded_however_many_users_come() -> None:
    limit, part = 2_000, 20_000
    statistics = RunningStatistics(limit)
    order = np.arange(2 * part)
    labels, ratios = np.ones(part, dtype=np.bool_), np.ones(part)

    def count_new_users(first_user: int) -> int:
        users = range(first_user, first_user + part)
        statistics.run(order, [users, [0] * part], labels, ratios)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        count_new_users(0)
        early, *later = [count_new_users(number * part) for number in range(1, 7)]
    finally:
        tracemalloc.stop()
    assert len(statistics.tables[0]) == limit
    assert len(statistics.tables[0].totals) == len(statistics.tables[0].ring) < 2 * (1 + limit + part)
    assert max(later) < early + 100_000  # 100,000 more users came, of more than 100 bytes each


def test_memory_grows_with_the_entities_there_are_not_with_their_limit() -> None:
    statistics = RunningStatistics(1_000_000)
    for user in range(5_000):
        statistics.update((user, 0), True, 1.0)
    assert 5_000 < len(statistics.tables[0].totals) <= 10_240
    assert statistics.tables[0].state()[1].tolist() == [[1.0, 1.0, 1.0]] * 5_000


def test_restoring_too_many_entities_or_one_twice_is_refused() -> None:
    users = RunningStatistics(2).tables[0]
    for entities in ([1, 1], [1, 2, 3]):
        with pytest.raises(ValueError, match="at most 2 fit, each once"):
            users.restore(entities, np.zeros((len(entities), 3)))


@pytest.mark.parametrize(
    ("order", "videos", "message"),
    [
        ([0, 4], [1, 1], r"from 0 to 3, for 2 events"),
        ([-1], [1, 1], r"from 0 to 3, for 2 events"),
        ([0], [1], r"must have one length, not \[2, 1, 2, 2, 2, 2\]"),
    ],
)
def test_steps_and_columns_that_do_not_fit_are_refused(
    order: list[int], videos: list[Id], message: str
) -> None:
    statistics = updated([Play(1, 1, True, 1.0)])
    before = state_of(statistics)
    with pytest.raises(ValueError, match=message):
        statistics.run(np.array(order), [[7, 8], videos], np.ones(2, dtype=np.bool_), np.ones(2))
    assert state_of(statistics) == before


def test_warming_up_compiles_all_that_is_used_later() -> None:
    warm_up(ForksSettings.practical(FEATURES_LENGTH, budget=4, landmarks=2, rank=2, cycle=3))
    kernels: tuple[Any, ...] = (
        *(statistics_loop.run_statistics, statistics_loop.make_features, effects.merge_shared),
        *(totals.merge_everything, totals.merge_tags, totals.merge_shared),
    )
    compiled = [kernel.signatures for kernel in kernels]
    before = [list(signatures) for signatures in compiled]
    assert all(before)
    for kind in FEATURES:
        statistics = statistics_of(kind)
        statistics.update(("a", 1), True, 1.0)
        statistics.features((1, 1))
        labels, ratios = np.array([True, False]), np.array([1.0, 0.0])
        statistics.run(np.array([1, 0, 3, 2]), [["a", 2], [3, "b"]], labels, ratios)
        sums = [EffectSums(0.5, 1.0, 0.25, 0.125)]
        statistics.merge_shared([Share(1, 0, 2, [EntityCounts("c", 2, 1, 0.5)], [], sums)])
    assert [kernel.signatures for kernel in kernels] == before


def test_other_threads_run_while_a_batch_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 10_000
    statistics = RunningStatistics(100)
    ids, order = [number % 50 for number in range(n)], np.arange(2 * n)
    labels, ratios = np.ones(n, dtype=np.bool_), np.ones(n)
    assert runs_beside(
        monkeypatch,
        statistics_run,
        "run_statistics",
        lambda: statistics.run(order, [ids, ids], labels, ratios),
    )
