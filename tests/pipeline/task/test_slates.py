"""Slates: items shown together are predicted by one model, and each has its own outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.errors import StateError
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.settings_text import challengers_text
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.outputs import Outcome
from pipeline.recovery import restoration
from pipeline.task.state import State
from pipeline.task.task import Task
from tests.support.builders import ALL, CHALLENGERS, Inputs, Written, feed_all, join_settings
from tests.support.consumer import REST, Delivery, Step, steps
from tests.support.examples import examples
from tests.support.output_log import OutputLog
from tests.support.slates import SLATES, TYPES, inputs, label, run, slate, slate_task, slates
from tests.support.spilling import small_blocks
from tests.support.streams import policies, tight


@pytest.fixture(autouse=True, scope="module")
def index_short_logs() -> Iterator[None]:
    """Index offsets every three records while reading, where it is every thousand otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restoration, "INDEX_INTERVAL", 3)
        yield


def outcomes_of(written: Written) -> list[Any]:
    return [TYPES.outcomes.decode(value) for value in written.outcomes]


def nonzero(task: Task) -> dict[str, int]:
    return {name: count for name, count in task.counters.items() if count}


def test_one_prediction_has_all_items_and_each_item_an_outcome() -> None:
    task, written = run(
        inputs(
            [slate("a", 10, ["x", "y", "z"]), slate("b", 500, ["x"])],
            [label("a", 20, "y", 0.9), label("a", 30, "x", 0.1)],
        )
    )
    first = msgspec.json.decode(written.predictions[0])
    assert [*first] == ["event_id", "user_id", "timestamp", "items", "model_version", "sequence"]
    assert [each["video_id"] for each in first["items"]] == ["x", "y", "z"]
    assert [*first["items"][0]] == ["video_id", "score", "probability", "predicted", "features"]
    outcomes = outcomes_of(written)
    assert [(each.ids, each.position, each.status) for each in outcomes] == [
        ((1, "y"), 1, "labelled"),
        ((1, "x"), 0, "labelled"),
        ((1, "z"), 2, "expired"),
    ]
    assert {each.prediction_sequence for each in outcomes} == {0}
    assert nonzero(task) == {
        "interactions": 2,
        "labels": 2,
        "predictions": 2,
        "items": 4,
        "labelled": 2,
        "expired": 1,
    }
    state = task.state({})
    assert (state.predictions, state.outcomes, state.pending, state.pending_from) == (2, 3, 1, 1)


def test_all_items_are_scored_before_a_label_that_came_early_is_learned() -> None:
    _, written = run(inputs([slate(1, 30, [1, 2, 3])], [label(1, 20, 1), label(1, 25, 3)]))
    [prediction] = TYPES.predictions_of(written.predictions[0])[:1]
    outcomes = outcomes_of(written)
    assert [(each.position, each.model_version) for each in outcomes] == [(0, 0), (2, 0)]
    assert prediction.model_version == 0
    assert [each.label_timestamp for each in outcomes] == [20, 25]


def test_labels_are_told_apart_by_item_and_refused_by_user() -> None:
    task, written = run(
        inputs(
            [slate(1, 10, [1, 2]), slate(2, 500, [1])],
            [
                label(1, 20, 1),
                label(1, 21, 1),  # once more
                label(1, 22, 2, user_id=5),  # another user's
                label(1, 23, 9),  # of an item that was not shown
            ],
        )
    )
    counts = nonzero(task)
    assert (counts["labelled"], counts["duplicate_labels"], counts["orphan"]) == (1, 1, 1)
    reasons = {letter.fault.value: letter.reason for letter in written.dead_letters}
    assert reasons["orphan"] == "no interaction with this event_id and item came while the label waited"
    assert "mismatched" in reasons


def test_a_slate_of_which_one_item_is_known_is_a_duplicate() -> None:
    task, written = run(
        inputs([slate(1, 10, [1, 2]), slate(1, 11, [2, 3]), slate(1, 12, [4])], [label(1, 20, 2)])
    )
    assert task.counters["duplicate_interactions"] == 1
    assert [TYPES.slates.decoder.decode(each).event_id for each in written.predictions] == [1, 1]  # type: ignore[union-attr]


def test_a_slate_takes_as_much_room_as_it_has_items() -> None:
    task, written = run(inputs([slate(n, n, [1, 2, 3]) for n in range(3)], []), join_settings(max_pending=4))
    assert task.counters["crowded_out"] == 5
    assert [(each.prediction_sequence, each.position) for each in outcomes_of(written)] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
    ]
    state = task.state({})
    assert (state.pending, state.pending_from) == (4, 1)


@examples(60)
@given(given_inputs=slates())
def test_each_item_has_one_outcome_of_its_own_features_and_version(given_inputs: Inputs) -> None:
    task, written = run(given_inputs)
    predicted = {each.number: each for value in written.predictions for each in TYPES.predictions_of(value)}
    outcomes: list[Outcome] = outcomes_of(written)
    assert max(Counter(each.prediction_number for each in outcomes).values(), default=1) == 1
    for outcome in outcomes:
        prediction = predicted.pop(outcome.prediction_number)
        for name in ("event_id", "ids", "timestamp", "score", "features", "model_version"):
            assert getattr(outcome, name) == getattr(prediction, name)
    assert len(predicted) == task.join.pending_count


@examples(60)
@given(given_inputs=slates(), pieces=st.lists(steps, max_size=20), join=tight, challengers=st.booleans())
def test_any_cut_into_batches_gives_the_same_bytes(
    given_inputs: Inputs, pieces: list[Step], join: JoinSettings, challengers: bool
) -> None:
    whole, expected = run(given_inputs, join, challengers=challengers)
    task = slate_task(join, challengers=challengers)
    delivery, batches = Delivery(task, given_inputs), []
    for step in (*pieces, REST):
        delivery.deliver(step)
        batches.append(task.advance(step.limit))
    assert Written.of(batches, SLATES) == expected
    assert pack(task.model) == pack(whole.model)
    assert encode(task.state({})) == encode(whole.state({}))


class WorkerStep(NamedTuple):
    """A batch, what is committed with it, and whether the worker then dies."""

    step: Step
    snapshot: bool
    dies: bool


worker_steps = st.builds(WorkerStep, step=steps, snapshot=st.booleans(), dies=st.booleans())


def without_offsets(state: State) -> bytes:
    return encode(msgspec.structs.replace(state, prediction_offset=0, outcome_offset=0))


@examples(120)
@given(
    given_inputs=slates(),
    drawn=st.lists(worker_steps, max_size=12),
    join=st.builds(
        join_settings,
        max_pending=st.sampled_from([3, 7, 500_000]),
        max_in_memory=st.sampled_from([1, 3, 200_000]),
        max_closed=st.sampled_from([1, 3, 1_000_000]),
        corrections=st.sampled_from(["off", "add", "replace"]),
    ),
    challengers=st.booleans(),
    policy=policies,
)
def test_deaths_and_what_is_spilled_do_not_show_in_what_is_written(
    given_inputs: Inputs,
    drawn: list[WorkerStep],
    join: JoinSettings,
    challengers: bool,
    policy: LabelPolicy | None,
) -> None:
    whole, expected = run(given_inputs, join, challengers=challengers, policy=policy)
    log = OutputLog(stream=SLATES, policy=policy, make_spilled=lambda: small_blocks(types=TYPES))
    if challengers:
        log.settings |= challengers_text(CHALLENGERS)
    task = slate_task(join, challengers=challengers, policy=policy, spilled=small_blocks(types=TYPES))
    delivery = Delivery(task, given_inputs)
    for step, snapshot, dies in (*drawn, WorkerStep(REST, True, True)):
        delivery.deliver(step)
        log.commit(task, task.advance(step.limit), snapshot)
        if dies:
            again = log.restore(join)
            assert without_offsets(again.state({})) == without_offsets(task.state({}))
            assert pack(again.model) == pack(task.model)
            task = again
            positions = (task.interactions.position.offset, task.labels.position.offset)
            delivery = Delivery(task, given_inputs.from_positions(*positions))
    assert log.written == expected
    assert pack(task.model) == pack(whole.model)
    assert task.counters == whole.counters


def test_a_slate_that_lost_an_item_is_found_when_the_task_is_restored() -> None:
    task = slate_task()
    feed_all(task, inputs([slate(1, 10, [1, 2, 3])], []))
    log = OutputLog(stream=SLATES)
    log.commit(task, task.advance(ALL), snapshot=False)
    offset, value = log.predictions[0]
    record = msgspec.json.decode(value)
    del record["items"][1]
    log.predictions[0] = offset, encode(record)
    with pytest.raises(StateError, match="2 predictions wait for their label where 3 should"):
        log.restore()
