"""How messages fall into batches must not show in what is written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.support.builders import (
    ALL,
    Inputs,
    Written,
    inputs,
    interaction,
    join_settings,
    label,
    new_task,
    records_of,
    run,
)
from tests.support.consumer import REST, Delivery, Step, steps
from tests.support.entries import queued
from tests.support.examples import examples
from tests.support.streams import policies, streams, tight


def run_in_pieces(
    given_inputs: Inputs,
    pieces: list[Step],
    join: JoinSettings | None = None,
    policy: LabelPolicy | None = None,
) -> tuple[Task, Written]:
    task = new_task(join, policy=policy)
    delivery = Delivery(task, given_inputs)
    batches = []
    for step in (*pieces, REST):
        delivery.deliver(step)
        batches.append(task.advance(step.limit))
        assert batches[-1].steps <= step.limit
    return task, Written.of(batches)


@examples(150)
@given(given_inputs=streams(), pieces=st.lists(steps, max_size=25), join=tight, policy=policies)
def test_any_cut_into_batches_gives_the_same_bytes(
    given_inputs: Inputs, pieces: list[Step], join: JoinSettings, policy: LabelPolicy | None
) -> None:
    whole, expected = run(given_inputs, join, policy=policy)
    task, written = run_in_pieces(given_inputs, pieces, join, policy)
    assert written == expected
    assert pack(task.model) == pack(whole.model)
    assert encode(task.state({})) == encode(whole.state({}))


@examples(20)
@given(pieces=st.lists(steps, max_size=40), policy=policies)
def test_so_it_is_for_a_long_stream_whose_feature_map_changes(
    pieces: list[Step], policy: LabelPolicy | None
) -> None:
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(300)]
    labels = [label(n, 10 * n + 35, n % 3, user_id=n % 5, video_id=n % 7) for n in range(300) if n % 10]
    given_inputs = inputs(interactions, labels)
    whole, expected = run(given_inputs, policy=policy)
    assert whole.model.learner.state()["stage"] == 2
    assert whole.counters["expired"] > 0
    task, written = run_in_pieces(given_inputs, pieces, policy=policy)
    assert written == expected
    assert pack(task.model) == pack(whole.model)


def test_a_batch_takes_no_more_than_its_limit() -> None:
    task = new_task()
    delivery = Delivery(task, inputs([interaction(n, n) for n in range(5)], []))
    delivery.deliver(REST)
    assert [task.advance(2).steps for _ in range(4)] == [2, 2, 1, 0]
    assert task.advance(2).empty


def test_the_merge_waits_for_an_input_that_may_have_more() -> None:
    task = new_task(join_settings())
    task.interactions.feed(queued(inputs([interaction(1, 5)], []).interactions))
    assert task.advance(10).empty
    task.labels.at_end = True
    encoder = RecordEncoder()
    predictions = records_of(task.advance(10), encoder).predictions
    assert [prediction.event_id for prediction in predictions] == [1]
    task.labels.feed(queued(inputs([], [label(1, 9)]).labels))
    assert task.advance(10).empty, "more interactions may come before the label"
    task.interactions.at_end = True
    assert [outcome.event_id for outcome in records_of(task.advance(10), encoder).outcomes] == [1]


@given(given_inputs=streams(), limit=st.integers(0, 40))
def test_a_task_that_is_rewound_and_fed_again_goes_on_as_if_nothing_had_been(
    given_inputs: Inputs, limit: int
) -> None:
    whole, expected = run(given_inputs)
    task = new_task()
    batches = []
    for most in (limit, ALL):
        task.rewind()
        for queue, entries in (
            (task.interactions, given_inputs.interactions),
            (task.labels, given_inputs.labels),
        ):
            left = [entry for entry in entries if entry.source.offset >= queue.position.offset]
            queue.feed(queued(left))
            queue.at_end = True
        batches.append(task.advance(most))
    assert Written.of(batches) == expected
    assert encode(task.state({})) == encode(whole.state({}))
