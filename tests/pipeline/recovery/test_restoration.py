"""A task rebuilt from its state record and the log goes on as if it had never stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import StateError
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.settings_text import challengers_text
from pipeline.model.shadow import ChallengerSettings
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.outputs import Outcome
from pipeline.recovery import restoration
from pipeline.task.state import State
from pipeline.task.task import Task
from tests.support.builders import (
    Inputs,
    Written,
    feed_all,
    inputs,
    interaction,
    join_settings,
    label,
    new_model,
    new_task,
    run,
)
from tests.support.consumer import REST, Delivery, Step, steps
from tests.support.examples import examples
from tests.support.join_tables import closed_among, closed_of, pending_of
from tests.support.output_log import OutputLog
from tests.support.streams import policies, streams, tight


@pytest.fixture(autouse=True, scope="module")
def index_short_logs() -> Iterator[None]:
    """Index offsets every three records while reading, where it is every thousand otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restoration, "INDEX_INTERVAL", 3)
        yield


class WorkerStep(NamedTuple):
    """A batch, what is committed with it, and whether the worker then dies."""

    step: Step
    snapshot: bool
    dies: bool
    loses: bool
    """Whether it dies after one more batch that was not committed."""


worker_steps = st.builds(
    WorkerStep, step=steps, snapshot=st.booleans(), dies=st.booleans(), loses=st.booleans()
)


def same_apart_from_offset_index(state: State) -> bytes:
    """A state record without the offsets, which are lower bounds and depend on what was read."""
    return encode(msgspec.structs.replace(state, prediction_offset=0, outcome_offset=0))


def rebuilt(task: Task, log: OutputLog, join: JoinSettings | None = None) -> Task:
    again = log.restore(join)
    assert same_apart_from_offset_index(again.state({})) == same_apart_from_offset_index(task.state({}))
    assert pack(again.model) == pack(task.model)
    assert closed_of(again.join) == closed_of(task.join)
    assert pending_of(again.join) == pending_of(task.join)
    return again


def run_with_deaths(
    given_inputs: Inputs,
    drawn: list[WorkerStep],
    join: JoinSettings | None = None,
    challengers: Mapping[str, ChallengerSettings] = MappingProxyType({}),
    policy: LabelPolicy | None = None,
    *,
    stream: Stream = KUAIREC,
) -> tuple[Task, OutputLog]:
    join = join or join_settings()
    model = new_model(challengers=challengers, weighted=stream.labels.weighted)
    task, log = new_task(join, model=model, policy=policy), OutputLog(policy=policy, stream=stream)
    log.settings |= challengers_text(challengers)
    delivery = Delivery(task, given_inputs)
    for step, snapshot, dies, loses in (*drawn, WorkerStep(REST, True, True, False)):
        delivery.deliver(step)
        log.commit(task, task.advance(step.limit), snapshot)
        if dies:
            again = rebuilt(task, log, join)
            if loses:
                delivery.deliver(REST)
                task.advance(REST.limit)
            task = again
            positions = (task.interactions.position.offset, task.labels.position.offset)
            delivery = Delivery(task, given_inputs.from_positions(*positions))
    return task, log


@examples(60)
@given(given_inputs=streams(), drawn=st.lists(worker_steps, max_size=15), join=tight, policy=policies)
def test_deaths_do_not_show_in_what_is_written(
    given_inputs: Inputs, drawn: list[WorkerStep], join: JoinSettings, policy: LabelPolicy | None
) -> None:
    whole, expected = run(given_inputs, join, policy=policy)
    task, log = run_with_deaths(given_inputs, drawn, join, policy=policy)
    assert log.written == expected
    assert pack(task.model) == pack(whole.model)
    assert same_apart_from_offset_index(
        msgspec.structs.replace(task.state({}), snapshot=None, previous=None)
    ) == same_apart_from_offset_index(whole.state({}))


@cache
def long_stream() -> Inputs:
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(200)]
    labels = [label(n, 10 * n + 35, n % 3, user_id=n % 5, video_id=n % 7) for n in range(200) if n % 10]
    return inputs(interactions, labels)


@cache
def long_run() -> tuple[Task, Written]:
    """Return the task after the whole stream, which nothing changes, and what it has written."""
    return run(long_stream())


@examples(12)
@given(drawn=st.lists(worker_steps, max_size=30))
def test_so_it_is_for_a_long_stream_whose_feature_map_changes(drawn: list[WorkerStep]) -> None:
    whole, expected = long_run()
    assert whole.model.learner.state()["stage"] == 2
    task, log = run_with_deaths(long_stream(), drawn)
    assert log.written == expected
    assert pack(task.model) == pack(whole.model)


@examples(60)
@given(given_inputs=streams(), drawn=st.lists(worker_steps, min_size=1, max_size=15))
def test_offset_index_entries_never_lie_above_their_records(
    given_inputs: Inputs, drawn: list[WorkerStep]
) -> None:
    _, log = run_with_deaths(given_inputs, drawn)
    assert log.state is not None
    needed = [(log.state.prediction_offset, log.state.pending_from, log.predictions)]
    needed.append((log.state.outcome_offset, log.state.outcomes_from, log.outcomes))
    for indexed, sequence, topic in needed:
        assert all(offset >= indexed for offset, _ in topic[sequence:])


def test_reading_starts_near_what_is_needed_not_at_the_beginning() -> None:
    task, log = new_task(), OutputLog()
    delivery = Delivery(task, long_stream())
    for _ in range(40):
        delivery.deliver(Step(5, 5, False, 10))
        log.commit(task, task.advance(10), snapshot=True)
    assert log.state is not None
    assert log.state.snapshot is not None
    bounds = (log.state.prediction_offset, log.state.outcome_offset, log.state.snapshot.outcome_offset)
    assert min(bounds) > 100


def test_an_id_used_again_after_it_was_forgotten_is_restored_as_the_later_one() -> None:
    """Reading starts below what is needed, so an outcome of the id's first use is read as well."""
    interactions = [interaction(1, 0), interaction(2, 10), interaction(1, 400), interaction(3, 440)]
    labels = [label(1, 5), label(2, 100), label(1, 420)]
    task, log = new_task(), OutputLog()
    feed_all(task, inputs(interactions, labels))
    log.commit(task, task.advance(REST.limit), snapshot=False)
    again = rebuilt(task, log)
    assert closed_among(again.join, [1, 2, 3]) == {1: 2 * 2}
    for each in (task, again):
        feed_all(each, inputs([], [label(1, 470), label(9, 5_000), label(9, 5_600)]))
        each.advance(REST.limit)
        assert each.counters["duplicate_labels"] == 1
        assert not each.join.closed


def test_an_outcome_is_needed_as_long_as_an_older_prediction_waits_though_its_event_is_forgotten() -> None:
    """Without it, its prediction, read again from the older one on, would seem to wait."""
    interactions = [interaction(1, 50), interaction(2, 60), interaction(3, 131)]
    task, log = new_task(), OutputLog()
    feed_all(task, inputs(interactions, [label(2, 30), label(3, 135), label(9, 140)]))
    while not (batch := task.advance(1)).empty:
        log.commit(task, batch, snapshot=True)
    assert [each.event_id for each in pending_of(task.join)] == [1]
    assert [*closed_among(task.join, [1, 2, 3])] == [3]
    rebuilt(task, log)


def test_an_event_that_is_forgotten_as_soon_as_it_is_closed_is_so_in_both() -> None:
    task, log = new_task(), OutputLog()
    labels = [label(9, 1_001), label(2, 860)]
    feed_all(task, inputs([interaction(1, 1_000), interaction(2, 950)], labels))
    log.commit(task, task.advance(REST.limit), snapshot=False)
    assert task.counters["labelled"] == 1
    rebuilt(task, log)


@pytest.fixture
def log() -> OutputLog:
    """A log of several batches: 3 predictions wait at its end, and the snapshot is an older one."""
    task, log = new_task(), OutputLog()
    interactions = [interaction(n, 10 * n) for n in range(30)]
    delivery = Delivery(task, inputs(interactions, [label(n, 10 * n + 25) for n in range(30)]))
    for number in range(6):
        delivery.deliver(Step(5, 5, number == 5, REST.limit))
        log.commit(task, task.advance(10), snapshot=number == 1)
    assert log.state is not None
    assert log.state.snapshot is not None
    assert 0 < log.state.snapshot.outcomes_learned < log.state.outcomes
    assert log.state.pending >= 2
    log.restore()
    return log


def test_a_missing_outcome_is_named(log: OutputLog) -> None:
    assert log.state is not None
    assert log.state.snapshot is not None
    for missing in range(
        min(log.state.snapshot.outcomes_learned, log.state.outcomes_from), log.state.outcomes
    ):
        damaged = OutputLog(log.predictions, list(log.outcomes), snapshots=log.snapshots, state=log.state)
        del damaged.outcomes[missing]
        with pytest.raises(StateError, match=rf"outcome {missing} of partition 0 is missing"):
            damaged.restore()


def test_outcomes_that_begin_too_late_are_named(log: OutputLog) -> None:
    assert log.state is not None
    assert log.state.snapshot is not None
    first = min(log.state.snapshot.outcomes_learned, log.state.outcomes_from)
    del log.outcomes[: first + 1]
    offset, _ = log.outcomes[0]
    with pytest.raises(
        StateError, match=rf"outcome {first} of partition 0 is missing before offset {offset}"
    ):
        log.restore()


def test_a_missing_prediction_is_named(log: OutputLog) -> None:
    assert log.state is not None
    for missing in range(log.state.pending_from, log.state.predictions):
        damaged = OutputLog(list(log.predictions), log.outcomes, snapshots=log.snapshots, state=log.state)
        del damaged.predictions[missing]
        with pytest.raises(StateError, match=rf"prediction {missing} of partition 0 is missing"):
            damaged.restore()


def test_outcomes_that_only_the_join_needs_are_missed_although_the_snapshot_has_them_all() -> None:
    task, log = new_task(), OutputLog()
    feed_all(task, inputs([interaction(1, 0), interaction(2, 10)], [label(1, 5), label(2, 15)]))
    log.commit(task, task.advance(REST.limit), snapshot=True)
    log.restore()
    log.outcomes.clear()
    with pytest.raises(StateError, match="outcome 0 of partition 0 is missing at the end"):
        log.restore()


@pytest.mark.parametrize("topic", ["prediction", "outcome"])
def test_a_record_beyond_the_state_record_is_named_with_its_offset(log: OutputLog, topic: str) -> None:
    assert log.state is not None
    slots, sequence = {
        "prediction": (log.predictions, log.state.predictions),
        "outcome": (log.outcomes, log.state.outcomes),
    }[topic]
    stray = slots[-1][1].replace(
        b'"sequence":%d}' % (sequence - 1),
        b'"sequence":%d}' % sequence,
    )
    slots.append((7_000, stray))
    with pytest.raises(StateError, match=rf"{topic} {sequence} of partition 0 at offset 7000 is not covered"):
        log.restore()


@pytest.mark.parametrize("topic", ["prediction", "outcome"])
def test_a_record_written_twice_is_named_with_its_offset(log: OutputLog, topic: str) -> None:
    slots = {"prediction": log.predictions, "outcome": log.outcomes}[topic]
    slots.append((7_000, slots[-1][1]))
    with pytest.raises(StateError, match=rf"{topic} \d+ of partition 0 at offset 7000 is not covered"):
        log.restore()


def test_an_outcome_of_another_prediction_does_not_add_up(log: OutputLog) -> None:
    offset, value = log.outcomes[-1]
    outcome = msgspec.json.decode(value, type=Outcome)
    other = msgspec.structs.replace(outcome, prediction_sequence=outcome.prediction_sequence + 1)
    log.outcomes[-1] = (offset, encode(other))
    assert log.state is not None
    waiting_instead = msgspec.structs.replace(log.state, pending=log.state.pending + 1)
    log.state = waiting_instead
    with pytest.raises(StateError, match=r"predictions wait for their label where \d+ should"):
        log.restore()
