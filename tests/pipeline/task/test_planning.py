"""Messages taken at once come to what they come to one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.join.records import Pending
from pipeline.join.tables import Join
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.kuairec import WatchLabel
from pipeline.task import task as module
from pipeline.task.task import Task
from tests.support.builders import (
    CHALLENGERS,
    WEIGHTED,
    Inputs,
    Message,
    Written,
    inputs,
    interaction,
    join_settings,
    label,
    new_model,
    new_task,
    with_weights,
)
from tests.support.consumer import REST, Delivery, Step, steps
from tests.support.examples import examples
from tests.support.join_tables import closed_of, pending_of
from tests.support.plain import Plain
from tests.support.slates import SLATES, slates
from tests.support.streams import policies, streams, tight

Build: TypeAlias = Callable[[], Model]


def run(
    given_inputs: Inputs,
    pieces: list[Step],
    join: JoinSettings,
    at_once: int,
    policy: LabelPolicy | None = None,
    *,
    stream: Stream = KUAIREC,
    build: Build = new_model,
) -> tuple[Task, Written]:
    """All of the inputs in pieces, so many messages at once."""
    with patch.object(module, "MAX_MESSAGES", at_once):
        task, batches = new_task(join, model=build(), policy=policy), []
        delivery = Delivery(task, given_inputs)
        for step in (*pieces, REST):
            delivery.deliver(step)
            batches.append(task.advance(step.limit))
    return task, Written.of(batches, stream)


def assert_as_plain(
    given_inputs: Inputs,
    pieces: list[Step],
    join: JoinSettings,
    policy: LabelPolicy | None = None,
    *,
    stream: Stream = KUAIREC,
    build: Build = new_model,
    sizes: Sequence[int] = (1, 5, 64, 4096),
) -> None:
    """All comes to what it comes to one by one, whatever is taken at once."""
    plain = Plain(given_inputs, join, build(), policy, stream=stream)
    states = set()
    for at_once in sizes:
        task, written = run(given_inputs, pieces, join, at_once, policy, stream=stream, build=build)
        assert written == plain.written
        assert pack(task.model) == pack(plain.model)
        assert +task.counters == +plain.counters
        assert task.stream_time == plain.stream_time
        assert pending_of(task.join) == [Pending.of(each.record) for each in plain.pending]
        assert closed_of(task.join) == remembered(plain, task.join)
        states.add(encode(task.state({})))
    assert len(states) == 1


def remembered(plain: Plain, join: Join) -> list[tuple[int, int, bytes]]:
    """Return number, deadline and digest of the closed events, in their order."""
    return [
        (
            2 * each.outcome + (each.label is None),
            each.until,
            join.digester.digests([join.identify(each.record)]).tobytes(),
        )
        for each in sorted(plain.closed, key=lambda each: each.outcome)
    ]


crowded = st.builds(
    join_settings,
    window=st.sampled_from(["0ms", "100ms", "100ms", "400ms"]),
    early_bytes=st.sampled_from([0, 250, 700_000, 700_000]),
    max_pending=st.sampled_from([1, 3, 6, 500_000]),
    max_closed=st.sampled_from([1, 3, 8, 1_000_000]),
    corrections=st.sampled_from(["off", "off", "add", "replace"]),
)
"""Settings of which many leave little room."""


@examples(200)
@given(
    given_inputs=streams(),
    pieces=st.lists(steps, max_size=10),
    join=crowded,
    policy=policies,
    challengers=st.booleans(),
)
def test_whatever_comes(
    given_inputs: Inputs,
    pieces: list[Step],
    join: JoinSettings,
    policy: LabelPolicy | None,
    challengers: bool,
) -> None:
    others = CHALLENGERS if challengers else {}
    assert_as_plain(given_inputs, pieces, join, policy, build=lambda: new_model(challengers=others))


@examples(100)
@given(given_inputs=streams(), pieces=st.lists(steps, max_size=10), join=crowded, policy=policies)
def test_whatever_weighs(
    given_inputs: Inputs, pieces: list[Step], join: JoinSettings, policy: LabelPolicy | None
) -> None:
    weighted = with_weights(given_inputs)
    assert_as_plain(weighted, pieces, join, policy, stream=WEIGHTED, build=lambda: new_model(weighted=True))


@examples(100)
@given(
    given_inputs=slates(),
    pieces=st.lists(steps, max_size=10),
    join=crowded,
    policy=policies,
    challengers=st.booleans(),
)
def test_whatever_is_shown_together(
    given_inputs: Inputs,
    pieces: list[Step],
    join: JoinSettings,
    policy: LabelPolicy | None,
    challengers: bool,
) -> None:
    join = join.model_copy(update={"max_pending": max(5, join.max_pending)})
    features, others = FeatureSet.of(SLATES), CHALLENGERS if challengers else {}
    assert_as_plain(
        given_inputs,
        pieces,
        join,
        policy,
        stream=SLATES,
        build=lambda: new_model(features=features, challengers=others),
    )


events = st.lists(
    st.tuples(
        st.integers(0, 12),  # later than the event before
        st.integers(-12, 3),  # and moved by this
        st.one_of(st.integers(0, 60), st.none(), st.integers(90, 130)),  # its label's delay
        st.sampled_from([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]),  # what is odd about it
    ),
    min_size=20,
    max_size=80,
)


def mostly_regular(drawn: list[tuple[int, int, int | None, int]]) -> Inputs:
    """Return a stream in which little is odd: repetitions, mismatches, garbage, labels that repeat."""
    now = 1_000
    interactions: list[Message] = []
    labels: list[tuple[int, WatchLabel]] = []
    for number, (later, moved, delay, oddity) in enumerate(drawn):
        now += later
        at, user = now + moved, number % 4
        interactions.append(interaction(number, at, user, number % 5))
        if oddity == 1:
            interactions.append(interaction(number, at, user, number % 5))
        if oddity == 2:
            interactions.append(b"{")
        if delay is not None:
            answer = label(number, at + delay, number % 3, user + (oddity == 3), number % 5)
            labels += [(at + delay, answer)] * (2 if oddity == 4 else 1)
    return inputs(interactions, [each for _, each in sorted(labels, key=lambda pair: pair[0])])


@examples(50)
@given(drawn=events, pieces=st.lists(steps, max_size=10), join=tight)
def test_a_stream_in_which_little_is_odd(
    drawn: list[tuple[int, int, int | None, int]], pieces: list[Step], join: JoinSettings
) -> None:
    assert_as_plain(mostly_regular(drawn), pieces, join)


def test_a_regular_stream_is_joined_together() -> None:
    interactions: list[Message] = [interaction(n, 10 * n) for n in range(3_000)]
    labels: list[Message] = [label(n, 10 * n + 35) for n in range(3_000)]
    task, written = run(inputs(interactions, labels), [], join_settings(), 4096)
    assert (len(written.predictions), len(written.outcomes)) == (3_000, 3_000)
    assert task.counters["labelled"] == task.counters["predictions"] == 3_000


def test_predictions_that_expire_are_joined_together() -> None:
    interactions: list[Message] = [interaction(n, 10 * n) for n in range(3_000)]
    labels: list[Message] = [label(n, 10 * n + 35) for n in range(3_000) if n % 3]
    task, _ = run(inputs(interactions, labels), [], join_settings(), 4096)
    assert (task.counters["labelled"], task.counters["expired"]) == (2_000, 998)
    assert task.join.pending_count == 2
    assert task.counters["crowded_out"] == 0


def test_full_tables_are_joined_together() -> None:
    interactions: list[Message] = [interaction(n, n) for n in range(3_000)]
    labels: list[Message] = [label(n, n + 5) for n in range(0, 3_000, 3)]
    task, _ = run(inputs(interactions, labels), [], join_settings(max_pending=10, max_closed=20), 4096)
    assert task.counters["labelled"] == 1_000
    assert task.counters["expired"] == task.counters["crowded_out"] == 1_991
    assert (task.join.pending_count, len(task.join.closed)) == (9, 20)


def test_labels_of_earlier_batches_stand_among_those_of_this_one() -> None:
    users = range(6)
    interactions: list[Message] = [interaction(user, 1_000 + user, user, user) for user in users]
    later: list[Message] = [interaction(10 + user, 1_080 + user, user, user) for user in users]
    order = (5, 0, 4, 1, 3, 2)
    labels: list[Message] = [label(user, 1_040 + at, user % 2, user, user) for at, user in enumerate(order)]
    first = Step(3, 1, end_seen=False, limit=3)
    assert_as_plain(inputs(interactions + later, labels), [first], join_settings())


def regular_except(oddity: list[tuple[int, WatchLabel]]) -> Inputs:
    """Thirty events whose labels come a little later, and further labels at their times."""
    labels = [(10 * n + 35, label(n, 10 * n + 35)) for n in range(30) if n != 17] + oddity
    labels.sort(key=lambda pair: pair[0])
    return inputs([interaction(n, 10 * n) for n in range(30)], [each for _, each in labels])


def test_a_label_right_before_its_interaction_is_early_all_the_same() -> None:
    given_inputs = regular_except([(170, label(17, 170))])
    assert_as_plain(given_inputs, [], join_settings())
    task, _ = run(given_inputs, [], join_settings(), 4096)
    assert task.counters["early"] == 1


def test_a_label_that_repeats_among_messages_that_are_joined_together_is_a_duplicate() -> None:
    given_inputs = regular_except([(205, label(17, 205)), (205, label(17, 205))])
    assert_as_plain(given_inputs, [], join_settings())
    task, _ = run(given_inputs, [], join_settings(), 4096)
    assert task.counters["duplicate_labels"] == 1


def test_nothing_that_is_unusual_is_taken_by_itself() -> None:
    interactions: list[Message] = [interaction(n, 10 * n) for n in range(3_000)]
    interactions[9:9] = [interaction(3, 90), b"{"]
    labels: list[Message] = [label(n, 10 * n + (0 if n % 7 == 0 else 5)) for n in range(3_000)]
    labels[40:40] = [label(3, 401), b"{", label(5_000, 402), label(41, 403, user_id=9)]
    task, _ = run(inputs(interactions, labels), [], join_settings(), 4096)
    counted = {name: count for name, count in task.counters.items() if count}
    assert counted == {
        "interactions": 3_002,
        "labels": 3_004,
        "predictions": 3_000,
        "labelled": 3_000,
        "early": 432,
        "duplicate_interactions": 1,
        "undecodable": 2,
        "mismatched": 1,
        "orphan": 2,
    }
