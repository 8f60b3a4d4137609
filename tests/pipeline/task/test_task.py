from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.features.binary import TARGET
from pipeline.features.statistics import RunningStatistics
from pipeline.features.tables import Tables
from pipeline.model.model import Model
from pipeline.task.record_queue import Position
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.support.builders import (
    ALL,
    BatchRecords,
    Inputs,
    Message,
    feed_all,
    inputs,
    interaction,
    join_settings,
    label,
    new_task,
    records_of,
    small_learner,
    source,
)
from tests.support.examples import examples
from tests.support.join_tables import pending_of
from tests.support.oracle import expected_run
from tests.support.streams import streams

INPUTS = {"interactions", "labels"}


def play(
    interactions: list[Message], labels: list[Message], **changes: Any
) -> tuple[BatchRecords, Counter[str]]:
    """Process two inputs; return the records, and the counters that are not zero but for those of inputs."""
    task = new_task(join_settings(**changes))
    feed_all(task, inputs(interactions, labels))
    batch = records_of(task.advance(ALL))
    return batch, nonzero(task)


def nonzero(task: Task) -> Counter[str]:
    return Counter({name: count for name, count in task.counters.items() if count and name not in INPUTS})


def faults(batch: BatchRecords) -> list[tuple[str, str, int]]:
    return [
        (dead_letter.fault, dead_letter.source.topic, dead_letter.source.offset)
        for dead_letter in batch.dead_letters
    ]


def test_a_label_joins_its_prediction() -> None:
    batch, counters = play([interaction(1, 10)], [label(1, 20, 0.9)])
    [prediction], [outcome] = batch.predictions, batch.outcomes
    assert counters == {"predictions": 1, "labelled": 1}
    assert (outcome.status, outcome.label, outcome.watch_ratio, outcome.label_timestamp) == (
        "labelled",
        True,
        0.9,
        20,
    )
    for name in ("event_id", "user_id", "video_id", "timestamp", "score", "probability", "features"):
        assert getattr(outcome, name) == getattr(prediction, name)
    assert outcome.correct == (outcome.predicted == outcome.label)
    assert batch.steps == 2


@pytest.mark.parametrize(("ratio", "watched"), [(TARGET.threshold, False), (0.7500001, True), (0.0, False)])
def test_watched_is_above_three_quarters(ratio: float, watched: bool) -> None:
    batch, _ = play([interaction(1, 10)], [label(1, 20, ratio)])
    assert batch.outcomes[0].label is watched


def test_the_first_score_is_nothing_and_its_loss_that_of_a_coin() -> None:
    batch, _ = play([interaction(1, 10)], [label(1, 20)])
    assert batch.predictions[0].score == 0.0
    assert batch.predictions[0].probability == 0.5
    assert batch.outcomes[0].loss == pytest.approx(0.693147, abs=1e-6)


def test_labels_go_first_on_ties() -> None:
    batch, _ = play([interaction(1, 10), interaction(2, 20)], [label(1, 20)])
    assert [prediction.model_version for prediction in batch.predictions] == [0, 1]


def test_an_early_label_waits_for_its_interaction_and_is_learned_with_it() -> None:
    batch, counters = play([interaction(1, 30)], [label(1, 0)])
    assert counters == {"predictions": 1, "early": 1, "labelled": 1}
    assert batch.outcomes[0].label_timestamp == 0


def test_an_early_label_whose_interaction_does_not_come_is_an_orphan() -> None:
    batch, counters = play([interaction(1, 31)], [label(1, 0)])
    assert counters == {"predictions": 1, "early": 1, "orphan": 1}
    assert faults(batch) == [("orphan", "watch-labels", 0)]
    assert batch.dead_letters[0].source == source("watch-labels", 0, label(1, 0))


def test_early_labels_without_room_are_orphans_the_oldest_first() -> None:
    size = len(source("watch-labels", 0, label(1, 5)).value or b"") + 1
    batch, counters = play(
        [interaction(2, 9), interaction(1, 9)], [label(1, 5), label(2, 6)], early_bytes=size
    )
    assert faults(batch) == [("orphan", "watch-labels", 0)]
    assert counters == {"predictions": 2, "early": 2, "orphan": 1, "labelled": 1}
    assert [outcome.event_id for outcome in batch.outcomes] == [2]


def test_a_prediction_without_a_label_expires_as_a_negative() -> None:
    batch, counters = play([interaction(1, 0), interaction(2, 101)], [])
    [outcome] = batch.outcomes
    assert counters == {"predictions": 2, "expired": 1}
    assert (outcome.status, outcome.label, outcome.watch_ratio, outcome.label_timestamp) == (
        "expired",
        False,
        None,
        None,
    )
    assert outcome.loss is not None
    assert batch.predictions[1].features[3] > 0, "the user's count has grown by the negative"


def squared_task() -> Task:
    return Task(
        0, Model(small_learner(loss="squared"), Tables(), 3), join_settings(), Position(0), Position(0)
    )


@pytest.mark.parametrize("ratio", [0.0, 0.5, TARGET.threshold, 1.25, 2.0, 300.0])
def test_with_squared_loss_the_watch_ratio_is_learned_and_the_sign_still_says_watched(ratio: float) -> None:
    task, target = squared_task(), min(ratio, TARGET.cap) - TARGET.threshold
    interactions = [interaction(n, 10 * n) for n in range(20)]
    feed_all(task, inputs(interactions, [label(n, 10 * n + 5, ratio) for n in range(20)]))
    batch = records_of(task.advance(ALL))
    assert [outcome.loss for outcome in batch.outcomes] == pytest.approx(
        [(outcome.score - target) ** 2 for outcome in batch.outcomes]
    )
    last = batch.predictions[-1]
    assert last.score == pytest.approx(target, abs=0.1)
    assert last.probability is None
    if ratio != TARGET.threshold:  # a target of 0 is learned up to rounding, of whatever sign
        assert last.predicted == batch.outcomes[-1].label


def test_with_squared_loss_a_missing_label_teaches_a_ratio_of_zero() -> None:
    missing, labelled = squared_task(), squared_task()
    interactions = [interaction(1, 0), interaction(2, 101)]
    feed_all(missing, inputs(interactions, []))
    feed_all(labelled, inputs(interactions, [label(1, 100, 0.0)]))
    batches = [records_of(task.advance(ALL)) for task in (missing, labelled)]
    assert [batch.outcomes[0].status for batch in batches] == ["expired", "labelled"]
    assert batches[0].outcomes[0].loss == TARGET.threshold**2
    assert batches[0].predictions[1].score == batches[1].predictions[1].score != 0.0


def test_or_it_expires_without_teaching_anything() -> None:
    batch, counters = play([interaction(1, 0), interaction(2, 101)], [], on_missing="drop")
    [outcome] = batch.outcomes
    assert counters == {"predictions": 2, "expired": 1}
    assert (outcome.status, outcome.label, outcome.correct, outcome.loss) == ("expired", None, None, None)
    assert batch.predictions[1].features == batch.predictions[0].features
    assert batch.predictions[1].model_version == 1, "it counts as an outcome all the same"


def test_a_label_at_the_end_of_the_window_still_counts_and_one_later_is_late() -> None:
    batch, counters = play([interaction(1, 0), interaction(2, 0)], [label(1, 100), label(2, 101)])
    assert counters == {"predictions": 2, "labelled": 1, "expired": 1, "late": 1}
    assert faults(batch) == [("late", "watch-labels", 2)]


def test_a_label_that_comes_after_the_expiry_is_forgotten_is_early_and_then_an_orphan() -> None:
    batch, counters = play([interaction(1, 0)], [label(1, 201), label(2, 300)])
    assert counters == {"predictions": 1, "expired": 1, "early": 2, "orphan": 1}
    assert faults(batch) == [("orphan", "watch-labels", 0)]


def test_a_repeated_interaction_is_counted_and_dropped_pending_or_closed() -> None:
    batch, counters = play([interaction(1, 0), interaction(1, 0), interaction(1, 50)], [label(1, 20)])
    assert counters == {"predictions": 1, "labelled": 1, "duplicate_interactions": 2}
    assert not batch.dead_letters


def test_a_repeated_label_is_counted_and_dropped_waiting_or_joined() -> None:
    batch, counters = play([interaction(1, 10)], [label(1, 5), label(1, 6), label(1, 20), label(1, 30)])
    assert counters == {"predictions": 1, "early": 1, "labelled": 1, "duplicate_labels": 3}
    assert not batch.dead_letters
    assert batch.outcomes[0].label_timestamp == 5


def test_a_label_of_another_user_or_video_is_mismatched_and_the_right_one_still_joins() -> None:
    batch, counters = play(
        [interaction(1, 10)], [label(1, 20, user_id=2), label(1, 25, video_id=2), label(1, 30)]
    )
    assert counters == {"predictions": 1, "mismatched": 2, "labelled": 1}
    assert faults(batch) == [("mismatched", "watch-labels", 0), ("mismatched", "watch-labels", 2)]


def test_an_early_label_of_another_user_is_mismatched_when_the_interaction_comes() -> None:
    batch, counters = play([interaction(1, 10)], [label(1, 5, user_id=2)])
    assert counters == {"predictions": 1, "early": 1, "mismatched": 1}
    assert not batch.outcomes


def test_garbage_becomes_dead_letters_with_its_message_and_disturbs_nothing() -> None:
    bad: list[Message] = [None, b"", b"{", b"{}", b"\xff"]
    batch, counters = play([*bad, interaction(1, 10)], [*bad, label(1, 20)])
    assert counters == {"predictions": 1, "labelled": 1, "undecodable": 8, "invalid": 2}
    assert len(batch.dead_letters) == 10
    assert all(dead_letter.reason for dead_letter in batch.dead_letters)
    kept = [
        dead_letter.source for dead_letter in batch.dead_letters if dead_letter.source.topic == "interactions"
    ]
    assert kept == [source("interactions", 2 * offset, value) for offset, value in enumerate(bad)]


def test_a_wrong_clock_expires_nothing() -> None:
    interactions: list[Message] = [interaction(1, 0), interaction(2, 50_000), interaction(3, 20)]
    batch, counters = play(interactions, [label(1, 30)])
    assert counters == {"predictions": 2, "labelled": 1, "future": 1}
    assert faults(batch) == [("future", "interactions", 2)]


def test_a_jump_that_the_next_message_confirms_moves_time() -> None:
    interactions: list[Message] = [interaction(1, 0), interaction(2, 50_000), interaction(3, 50_001)]
    batch, counters = play(interactions, [])
    assert counters == {"predictions": 3, "expired": 1}
    assert [prediction.event_id for prediction in batch.predictions] == [1, 2, 3]


NOW = 10**8
MONTH = 60_000
"""Much more than `join.max_jump`."""


@pytest.mark.parametrize("first", [1, 0])
def test_a_device_in_1970_costs_its_own_messages_and_no_other(first: int) -> None:
    """Every tenth message is of 1970. The first of all may be: there is nothing to compare it with."""
    events = range(first, 300 + first)
    old = [n for n in events if n % 10 == 0]
    interactions = [interaction(n, n if n in old else NOW + 10 * n) for n in events]
    labels = [label(n, n + 1 if n in old else NOW + 10 * n + 5) for n in events]
    given_inputs, join = inputs(interactions, labels), join_settings()
    task = new_task()
    feed_all(task, given_inputs)
    batch = records_of(task.advance(ALL))
    refused = 30 if first else 29
    kept = len(events) - refused
    assert nonzero(task) == {"predictions": kept, "labelled": kept, "past": 2 * refused}
    assert Counter(faults(batch)) == Counter(
        ("past", topic, 2 * place)
        for topic in ("interactions", "watch-labels")
        for place, n in enumerate(events)
        if n in old and place
    )
    expected = expected_run(given_inputs, join)
    assert faults(batch) == expected.dead_letters
    assert +task.counters == expected.counters
    assert Task.restore(task.state({}), task.model, join).counters == task.counters


def test_a_device_a_year_ahead_costs_its_own_messages_and_no_other() -> None:
    times = [NOW + 10 * n + 12 * MONTH * (n % 10 == 5) for n in range(300)]
    interactions, labels = (
        [make(n, time + after) for n, time in enumerate(times)]
        for make, after in ((interaction, 0), (label, 9))
    )
    _, counters = play([*interactions], [*labels])
    assert counters == {"predictions": 270, "labelled": 270, "future": 60}


@pytest.mark.parametrize("together", [1, 3])
def test_months_between_events_cost_nothing(together: int) -> None:
    times = [NOW + MONTH * month + n for month in range(12) for n in range(together)]
    interactions, labels = (
        [make(n, time + after) for n, time in enumerate(times)]
        for make, after in ((interaction, 0), (label, 9))
    )
    batch, counters = play([*interactions], [*labels])
    count = len(times)
    assert counters == {"predictions": count, "labelled": count}
    versions = [prediction.model_version for prediction in batch.predictions]
    assert versions == [n - n % together for n in range(count)], "each month has learned those before it"


def test_a_tick_moves_stream_time_forward_only() -> None:
    task = new_task()
    encoder = RecordEncoder()
    feed_all(task, inputs([interaction(1, 50)], [label(9, 50)]))
    encoder.encode(task.advance(ALL))
    assert task.punctuate(150, ALL).dead_letters[0].fault == "orphan"
    assert task.punctuate(10, ALL).empty
    assert task.stream_time == 150
    [outcome] = records_of(task.punctuate(151, ALL), encoder).outcomes
    assert outcome.status == "expired"
    assert task.counters["expired"] == 1


def test_what_a_jump_of_time_lets_expire_comes_in_batches_before_the_message_that_moved_time() -> None:
    task = new_task()
    feed_all(task, inputs([*(interaction(n, n) for n in range(5)), interaction(9, 500)], [label(8, 1)]))
    first, encoder = task.advance(6), RecordEncoder()
    encoder.encode(first)
    assert first.steps == 6
    processed = task.interactions.position.offset
    batches = [records_of(task.advance(2), encoder) for _ in range(4)]
    assert [[outcome.event_id for outcome in batch.outcomes] for batch in batches] == [
        [0, 1],
        [2, 3],
        [4],
        [],
    ]
    assert faults(batches[2]) == [("orphan", "watch-labels", 0)]
    assert [prediction.event_id for prediction in batches[3].predictions] == [9]
    assert task.interactions.position.offset == processed + 2


def test_stream_time_stands_until_all_that_is_overdue_is_closed() -> None:
    task = new_task()
    feed_all(task, inputs([interaction(n, n) for n in range(3)], []))
    task.advance(ALL)
    assert [(task.punctuate(500, 2).steps, task.stream_time) for _ in range(2)] == [(2, 2), (1, 500)]


def test_a_prediction_that_is_crowded_out_is_an_expired_one_and_counted_besides() -> None:
    interactions: list[Message] = [interaction(n, n) for n in range(4)]
    batch, counters = play(interactions, [label(0, 10), label(3, 10)], max_pending=2)
    assert counters == {"predictions": 4, "expired": 2, "crowded_out": 2, "late": 1, "labelled": 1}
    assert [(outcome.event_id, outcome.status) for outcome in batch.outcomes] == [
        (0, "expired"),
        (1, "expired"),
        (3, "labelled"),
    ]


def test_a_label_that_waits_comes_before_the_crowd() -> None:
    _, counters = play([interaction(1, 10), interaction(2, 11)], [label(2, 5)], max_pending=1)
    assert counters == {"predictions": 2, "early": 1, "labelled": 1}


oracle_settings = st.builds(
    join_settings,
    window=st.sampled_from(["0ms", "50ms", "100ms"]),
    early=st.sampled_from(["0ms", "30ms", "200ms"]),
    early_bytes=st.sampled_from([0, 150, 400, 256_000]),
    max_pending=st.sampled_from([1, 2, 5, 500_000]),
    max_closed=st.sampled_from([1, 2, 5, 1_000_000]),
    on_missing=st.sampled_from(["negative", "drop"]),
    max_jump=st.sampled_from(["365d", "1s", "200ms"]),
)


@examples(250)
@given(given_inputs=streams(), join=oracle_settings)
def test_the_join_does_what_a_slow_search_through_all_that_happened_does(
    given_inputs: Inputs, join: Any
) -> None:
    task = new_task(join)
    feed_all(task, given_inputs)
    batch = records_of(task.advance(ALL))
    expected = expected_run(given_inputs, join)
    assert [(each.event_id, each.timestamp) for each in batch.predictions] == [
        (each.record.event_id, each.record.timestamp) for each in expected.predicted
    ]
    assert [(outcome.status, outcome.event_id) for outcome in batch.outcomes] == expected.outcomes
    assert faults(batch) == expected.dead_letters
    assert +task.counters == expected.counters
    assert [early.source for early in task.join.early_labels] == [entry.source for entry in expected.waiting]
    assert {each.event_id for each in pending_of(task.join)} == {
        each.record.event_id for each in expected.predicted if not each.closed
    }
    assert len(task.join.pending) <= join.max_pending
    assert len(task.join.closed) <= join.max_closed


@examples(100)
@given(given_inputs=streams())
def test_every_message_has_exactly_one_disposition(given_inputs: Inputs) -> None:
    task = new_task()
    feed_all(task, given_inputs)
    batch = records_of(task.advance(ALL))
    count = task.counters
    read = Counter(dead_letter.source.topic for dead_letter in batch.dead_letters)
    assert count["interactions"] == len(given_inputs.interactions)
    assert count["labels"] == len(given_inputs.labels)
    assert len(given_inputs) <= batch.steps <= len(given_inputs) + count["expired"] + count["orphan"]
    assert count["interactions"] == (
        count["predictions"] + count["duplicate_interactions"] + read["interactions"]
    )
    assert count["labels"] == (
        count["labelled"] + count["duplicate_labels"] + len(task.join.early_labels) + read["watch-labels"]
    )
    assert count["predictions"] == count["labelled"] + count["expired"] + len(task.join.pending)
    offsets = [(dead_letter.source.topic, dead_letter.source.offset) for dead_letter in batch.dead_letters]
    assert len(offsets) == len(set(offsets))
    assert count["predictions"] == len(batch.predictions)
    assert count["labelled"] + count["expired"] == len(batch.outcomes) == task.model.outcomes_learned


@examples(100)
@given(given_inputs=streams())
def test_sequences_have_no_gaps_and_features_are_those_of_the_outcomes_before(given_inputs: Inputs) -> None:
    task = new_task()
    feed_all(task, given_inputs)
    batch = records_of(task.advance(ALL))
    assert [each.sequence for each in batch.predictions] == list(range(len(batch.predictions)))
    assert [each.sequence for each in batch.outcomes] == list(range(len(batch.outcomes)))
    for prediction in batch.predictions:
        statistics = RunningStatistics(max_entities=3)
        for outcome in batch.outcomes[: prediction.model_version]:
            assert outcome.label is not None
            statistics.update(outcome.ids, outcome.label, outcome.watch_ratio or 0.0)
        assert prediction.features == statistics.features(prediction.ids)


@examples(50)
@given(given_inputs=streams())
def test_a_state_record_does_not_change_when_the_task_goes_on(given_inputs: Inputs) -> None:
    task = new_task()
    feed_all(task, given_inputs)
    task.advance(5)
    state = task.state({})
    before = repr(state)
    task.advance(ALL)
    assert repr(state) == before
