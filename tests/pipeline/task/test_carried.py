"""Numbers that predictions and outcomes carry as interactions have them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.config.settings import Join as JoinSettings
from pipeline.config.stream import CARRIED, KUAIREC, Stream
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.records.output_types import OutputTypes
from tests.pipeline.recovery.test_restoration import WorkerStep, run_with_deaths, worker_steps
from tests.pipeline.task.test_planning import assert_as_plain
from tests.support.builders import (
    ALL,
    Inputs,
    Written,
    feed_all,
    inputs,
    interaction,
    label,
    new_task,
)
from tests.support.consumer import REST, Step, steps
from tests.support.entries import entries
from tests.support.examples import examples
from tests.support.recording import record
from tests.support.streams import policies, streams, tight


def carrying(names: Sequence[str], at: str = "/") -> Stream:
    """KuaiRec's stream, but for numbers of these names that are carried."""
    pointers = {name: f"{at}{name}" for name in names}
    return Stream.model_validate(
        KUAIREC.model_dump() | {"interactions": KUAIREC.interactions.model_dump() | pointers}
    )


STREAM = carrying(CARRIED)
TYPES = OutputTypes.of(STREAM)
NUMBERS: Sequence[dict[str, Any]] = (
    {"propensity": 0.1 + 0.2, "target_propensity": 0, "estimate": -0.5, "target_estimate": 3},
    {"propensity": 1, "target_propensity": 1.0, "estimate": None},
    {},
    {"propensity": 1e-100},
    {"propensity": 0},  # the first of those that are refused
    {"propensity": 1.0000001},
    {"target_propensity": -0.1},
    {"estimate": 2e9},
    {"propensity": "0.5"},
)
USABLE = 4


def with_numbers(given: Inputs, numbers: Sequence[dict[str, Any]] = NUMBERS[:USABLE]) -> Inputs:
    """Return the messages of `STREAM`, interactions with these numbers in turn."""
    decoders = InputDecoders.of(STREAM)

    def extend(number: int, source: RawMessage) -> RawMessage:
        if not (source.value or b"").endswith(b"}") or source.value == b"{}":
            return source
        message = msgspec.json.decode(source.value or b"")
        return source._replace(value=encode(message | numbers[number % len(numbers)]))

    interactions = [extend(number, entry.source) for number, entry in enumerate(given.interactions)]
    return Inputs(
        entries(interactions, decoders.interactions, 10**9),
        entries([entry.source for entry in given.labels], decoders.labels, 10**9),
    )


@cache
def long_stream() -> Inputs:
    """Two hundred events, every tenth without a label."""
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(200)]
    labels = [label(n, 10 * n + 35, n % 3, user_id=n % 5, video_id=n % 7) for n in range(200) if n % 10]
    return inputs(interactions, labels)


def run(given: Inputs) -> tuple[Any, Written]:
    task = new_task()
    feed_all(task, given)
    return task, Written.of([task.advance(ALL)], STREAM)


def test_predictions_and_outcomes_carry_the_numbers_behind_the_features() -> None:
    _, written = run(with_numbers(long_stream()))
    assert len(written.predictions) == 200
    for value in (*written.predictions, *written.outcomes):
        fields = msgspec.json.decode(value)
        expected = dict.fromkeys(CARRIED) | NUMBERS[fields["event_id"] % USABLE]
        assert {name: fields[name] for name in CARRIED} == expected
        names = list(fields)
        assert names[names.index("features") + 1 :][:5] == [*CARRIED, "model_version"]


def test_all_else_is_as_without_them() -> None:
    _, written = run(with_numbers(long_stream()))
    plain = new_task()
    feed_all(plain, long_stream())
    expected = Written.of([plain.advance(ALL)])
    for found, other in zip(
        (*written.predictions, *written.outcomes), (*expected.predictions, *expected.outcomes), strict=True
    ):
        fields = msgspec.json.decode(found)
        assert encode({name: value for name, value in fields.items() if name not in CARRIED}) == other


def test_what_is_no_number_of_the_range_is_a_dead_letter_that_names_the_field() -> None:
    task, written = run(with_numbers(long_stream(), NUMBERS))
    refused = len(NUMBERS) - USABLE
    assert task.counters["invalid"] == sum(n % len(NUMBERS) >= USABLE for n in range(200))
    reasons = {each.reason for each in written.dead_letters if each.fault.value == "invalid"}
    assert len(reasons) == refused
    assert all("propensity" in each or "estimate" in each for each in reasons)


@examples(40)
@given(given_inputs=streams(), pieces=st.lists(steps, max_size=10), join=tight, policy=policies)
def test_messages_at_once_come_to_what_they_come_to_one_by_one(
    given_inputs: Inputs, pieces: list[Step], join: JoinSettings, policy: LabelPolicy | None
) -> None:
    assert_as_plain(with_numbers(given_inputs, NUMBERS), pieces, join, policy, stream=STREAM)


@examples(40)
@given(given_inputs=streams(), drawn=st.lists(worker_steps, max_size=15), join=tight)
def test_deaths_do_not_show(given_inputs: Inputs, drawn: list[WorkerStep], join: JoinSettings) -> None:
    given_inputs = with_numbers(given_inputs)
    whole = new_task(join)
    feed_all(whole, given_inputs)
    expected = Written.of([whole.advance(ALL)], STREAM)
    task, log = run_with_deaths(given_inputs, drawn, join, stream=STREAM)
    assert log.written == expected
    assert pack(task.model) == pack(whole.model)


def test_a_run_is_clean_and_an_audit_finds_another_number() -> None:
    drawn = [*[(Step(9, 9, False, 15), False)] * 20, (REST, False)]
    recording = record(with_numbers(long_stream()), drawn, stream=STREAM)
    assert recording.findings() == []
    recording.change_outcome(7, propensity=0.7)
    assert "propensity" in recording.first().expected


def test_an_audit_finds_numbers_that_are_not_the_interaction_s() -> None:
    drawn = [*[(Step(9, 9, False, 15), False)] * 20, (REST, False)]
    recording = record(with_numbers(long_stream()), drawn, stream=STREAM)
    for number, source in enumerate(recording.outcomes):
        outcome = TYPES.outcomes.decode(source.value or b"")
        if outcome.event_id == 4:
            recording.change_outcome(number, estimate=-0.25)
    values = [each.value or b"" for each in recording.predictions]
    [prediction] = [number for number, value in enumerate(values) if b'"event_id":4,' in value]
    text = values[prediction].replace(b'"estimate":-0.5', b'"estimate":-0.25')
    recording.predictions[prediction] = recording.predictions[prediction]._replace(value=text)
    assert {each.topic for each in recording.findings()} & {"interactions", "predictions"}


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("target_propensity",), "target_propensity is compared with propensity"),
        (("propensity", "estimate"), "estimate and target_estimate are compared"),
        (("propensity", "estimate", "target_estimate"), "estimate needs propensity and target_propensity"),
    ],
)
def test_numbers_that_say_nothing_alone_are_refused(names: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        carrying(names)


def test_their_names_are_those_of_fields_then() -> None:
    renamed = {"entities": {"user_id": "/user_id", "propensity": "/video_id"}}
    assert Stream.model_validate(KUAIREC.model_dump() | renamed)
    with pytest.raises(ValidationError, match="propensity is the name of another field of outputs"):
        Stream.model_validate(carrying(("propensity",), "/x/").model_dump() | renamed)


def test_they_may_stand_deeper_in_a_message_or_not_at_all() -> None:
    decode = InputDecoders.of(carrying(CARRIED, "/shown/by/")).interactions.decode
    message = msgspec.json.decode(encode(interaction(1, 5)))
    assert decode(encode(message)).carried == (None,) * 4
    found = decode(encode(message | {"shown": {"by": {"propensity": 0.5, "estimate": 2}}}))
    assert found.carried == (0.5, None, 2.0, None)
    assert InputDecoders.of(KUAIREC).interactions.decode(encode(message)).carried == ()
