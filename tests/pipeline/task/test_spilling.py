"""Where predictions wait for their label does not show in what is written."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.errors import StateError
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.settings_text import challengers_text
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.fields import Id
from pipeline.records.outputs import Prediction
from pipeline.recovery import restoration
from pipeline.task import task as module
from pipeline.task.state import State
from pipeline.task.task import Task
from tests.support.builders import (
    CHALLENGERS,
    Inputs,
    Message,
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
from tests.support.output_log import OutputLog
from tests.support.spilling import small_blocks
from tests.support.streams import policies, streams


@pytest.fixture(autouse=True, scope="module")
def index_short_logs() -> Iterator[None]:
    """Index offsets every three records while reading, where it is every thousand otherwise."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(restoration, "INDEX_INTERVAL", 3)
        yield


class WorkerStep(NamedTuple):
    """A batch, and whether the worker then dies, so that what it has spilled is lost."""

    step: Step
    snapshot: bool
    dies: bool


worker_steps = st.builds(WorkerStep, step=steps, snapshot=st.booleans(), dies=st.booleans())
SMALL_STEPS = (WorkerStep(Step(4, 4, True, 4), False, False),) * 40
"""What is left comes in small pieces, so that something is spilled between them."""
few_in_memory = st.builds(
    join_settings,
    window=st.sampled_from(["0ms", "100ms", "1s"]),
    max_in_memory=st.sampled_from([1, 2, 5]),
    max_pending=st.sampled_from([1, 3, 10, 500_000]),
    max_closed=st.sampled_from([1, 3, 1_000_000]),
    max_jump=st.just("365d"),
)


def without_offset_index(state: State) -> bytes:
    """Return a state record without what depends on the batches: snapshots, and lower bounds of offsets."""
    return encode(
        msgspec.structs.replace(state, prediction_offset=0, outcome_offset=0, snapshot=None, previous=None)
    )


def written_with_spilling(
    given_inputs: Inputs,
    drawn: list[WorkerStep],
    join: JoinSettings,
    policy: LabelPolicy | None = None,
    *,
    at_once: int = 64,
    challengers: bool = False,
) -> tuple[Task, OutputLog]:
    """Run a stream in pieces; after each, spill what is beyond `max_in_memory`."""
    competitors = CHALLENGERS if challengers else {}
    log = OutputLog(policy=policy, make_spilled=small_blocks)
    log.settings |= challengers_text(competitors)
    model = new_model(challengers=competitors)
    task = new_task(join, model=model, policy=policy, spilled=small_blocks())
    delivery = Delivery(task, given_inputs)
    with patch.object(module, "MAX_MESSAGES", at_once):
        for step, snapshot, dies in (*drawn, *SMALL_STEPS, WorkerStep(REST, True, True)):
            delivery.deliver(step)
            log.commit(task, task.advance(step.limit), snapshot)
            assert len(task.join.pending) <= join.max_in_memory
            assert len(log.encoder) == len(task.join.pending)
            if dies:
                again = log.restore(join)
                assert without_offset_index(again.state({})) == without_offset_index(task.state({}))
                task = again
                positions = (task.interactions.position.offset, task.labels.position.offset)
                delivery = Delivery(task, given_inputs.from_positions(*positions))
    return task, log


def assert_no_difference(
    given_inputs: Inputs,
    drawn: list[WorkerStep],
    join: JoinSettings,
    policy: LabelPolicy | None = None,
    *,
    challengers: bool = False,
) -> None:
    model = new_model(challengers=CHALLENGERS if challengers else {})
    plain, expected = run(given_inputs, join, model=model, policy=policy)
    for at_once in (1, 5, 64):
        task, log = written_with_spilling(
            given_inputs, drawn, join, policy, at_once=at_once, challengers=challengers
        )
        assert log.written == expected
        assert pack(task.model) == pack(plain.model)
        assert without_offset_index(task.state({})) == without_offset_index(plain.state({}))


@examples(60)
@given(
    given_inputs=streams(jumps=False),
    drawn=st.lists(worker_steps, max_size=15),
    join=few_in_memory,
    policy=policies,
)
def test_whatever_comes(
    given_inputs: Inputs, drawn: list[WorkerStep], join: JoinSettings, policy: LabelPolicy | None
) -> None:
    assert_no_difference(given_inputs, drawn, join, policy)


@examples(20)
@given(given_inputs=streams(jumps=False), drawn=st.lists(worker_steps, max_size=10), join=few_in_memory)
def test_challengers_scores_are_spilled_too(
    given_inputs: Inputs, drawn: list[WorkerStep], join: JoinSettings
) -> None:
    assert_no_difference(given_inputs, drawn, join, challengers=True)


def dense(drawn: list[tuple[int, int, int | None]]) -> Inputs:
    """Return events of which many wait at once, with equal times, disorder, and late and double labels."""
    now, interactions, labels = 1_000, list[Message](), list[tuple[int, Message]]()
    for number, (later, moved, delay) in enumerate(drawn):
        now += later
        at = now + moved
        interactions.append(interaction(number % 50, at, number % 4, number % 5))
        if delay is not None:
            known = at + delay
            labels.append((known, label(number % 50, known, number % 3, number % 4, number % 5)))
            if delay % 7 == 0:
                labels.append((known + 5, label(number % 50, known + 5, 1.0, number % 4, number % 5)))
    return inputs(interactions, [each for _, each in sorted(labels, key=itemgetter(0))])


dense_streams = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 5, 20]),  # later than the event before
        st.sampled_from([0, 0, 0, 0, -40, 30]),  # and moved by this
        st.one_of(st.integers(0, 120), st.none()),  # its label's delay
    ),
    min_size=20,
    max_size=70,
).map(dense)


@examples(50)
@given(
    given_inputs=dense_streams, drawn=st.lists(worker_steps, max_size=5), join=few_in_memory, policy=policies
)
def test_many_that_wait(
    given_inputs: Inputs, drawn: list[WorkerStep], join: JoinSettings, policy: LabelPolicy | None
) -> None:
    assert_no_difference(given_inputs, drawn, join, policy)


def mostly_answered() -> Inputs:
    """Return 400 events of which nine of ten have labels soon, and the others none."""
    interactions = [interaction(n, 10 * n, n % 5, n % 7) for n in range(400)]
    answers = [label(n, 10 * n + 200, n % 3, n % 5, n % 7) for n in range(400) if n % 10]
    return inputs(interactions, answers)


def test_what_is_closed_makes_room() -> None:
    task, _ = written_with_spilling(
        mostly_answered(),
        [WorkerStep(Step(10, 10, False, 20), False, False)] * 50,
        join_settings(window="1h", max_in_memory=2),
    )
    spilled = task.join.spilled
    assert spilled is not None
    assert task.join.pending_count == 40
    assert len(spilled) >= 38
    assert spilled._columns.dead <= len(spilled) + 3


def long_waits(events: int) -> Inputs:
    """Return events whose labels come much later, the last first in each tenth; each seventh has none."""
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(events)]
    numbers = sorted(range(events), key=lambda n: (n // 10, -n))
    answers = [
        label(n, 10 * events + 10 * place, n % 3, user_id=n % 5, video_id=n % 7)
        for place, n in enumerate(numbers)
        if n % 7
    ]
    return inputs(interactions, answers)


def test_long_waits_with_a_restart_in_the_middle() -> None:
    pieces = [WorkerStep(Step(20, 20, False, 30), n == 7, n == 11) for n in range(30)]
    assert_no_difference(
        long_waits(200), pieces, join_settings(window="1h", max_in_memory=10, max_jump="365d")
    )


def test_spilled_predictions_that_expire_are_joined_together() -> None:
    task, _ = written_with_spilling(
        mostly_answered(),
        [WorkerStep(Step(40, 40, False, 100), False, False)] * 10,
        join_settings(window="1s", max_in_memory=2),
        at_once=4096,
    )
    assert (task.counters["labelled"], task.counters["expired"]) == (360, 32)


def test_spilled_predictions_without_room_are_joined_together() -> None:
    task = new_task(join_settings(window="1h", max_in_memory=2, max_pending=10), spilled=small_blocks())
    log, delivery = OutputLog(), Delivery(task, inputs([interaction(n, n) for n in range(3_000)], []))
    delivery.deliver(Step(10, 0, True, 10))
    log.commit(task, task.advance(10), False)
    assert task.join.spilled
    delivery.deliver(REST)
    log.commit(task, task.advance(100_000), False)
    assert task.counters["crowded_out"] == 2_990


def test_ids_that_look_alike_are_events_of_their_own() -> None:
    alike: list[Id] = [7, "7", -7, "-7", "s7", "i7", "\U0001f600", 2**63 - 1, -(2**63), "x" * 256]
    interactions = [interaction(event_id, 10 * n) for n, event_id in enumerate(alike)]
    answers = [label(event_id, 500 + n) for n, event_id in enumerate(reversed(alike))]
    pieces = [WorkerStep(Step(3, 1, False, 10), False, False) for _ in range(5)]
    join = join_settings(window="1h", max_in_memory=1)
    assert_no_difference(inputs(interactions, answers), pieces, join)
    task, _ = written_with_spilling(inputs(interactions, answers), pieces, join)
    assert task.counters["labelled"] == len(alike)


def test_a_spilled_record_that_no_worker_wrote_is_named() -> None:
    given_inputs = inputs([interaction(n, 10 * n) for n in range(4)], [label(9, 100)])
    task, log = new_task(join_settings(max_in_memory=1), spilled=small_blocks()), OutputLog()
    delivery = Delivery(task, given_inputs)
    delivery.deliver(Step(4, 1, False, 4))
    log.commit(task, task.advance(4), False)
    assert task.join.spilled is not None
    stored = task.join.spilled._store
    stored.write(0, b"[")
    with pytest.raises(StateError, match="prediction 0"):
        task.join.spilled.read(np.zeros(1, dtype=np.int64))


def test_what_is_in_memory_is_never_looked_for_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short windows cost nothing."""
    monkeypatch.setattr("pipeline.join.spill.SpilledPredictions.find", None)
    given_inputs = long_waits(50)
    task = new_task(join_settings(window="1h", max_jump="365d"), spilled=small_blocks())
    feed_all(task, given_inputs)
    log = OutputLog()
    log.commit(task, task.advance(10**6), False)
    assert [msgspec.json.decode(text, type=Prediction).sequence for _, text in log.predictions] == [
        *range(50)
    ]
