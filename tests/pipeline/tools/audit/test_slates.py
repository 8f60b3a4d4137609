"""An audit of slates: clean runs are clean, and what was changed by hand is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Labels
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.shadow import ChallengerSettings
from pipeline.records.encoding import encode
from pipeline.tools.audit.differences import Finding
from tests.support.builders import CHALLENGERS, Inputs, join_settings
from tests.support.consumer import REST, Step, steps
from tests.support.examples import examples
from tests.support.recording import Recording, changed, record
from tests.support.slates import SLATES, TYPES, inputs, label, slate, slates
from tests.support.streams import Impatient, policies


@pytest.fixture
def given_inputs() -> Inputs:
    """Slates of three videos, of which the second has a label after a while."""
    shown = [slate(number, 20 * number, [number % 5, 10, 20 + number % 3]) for number in range(40)]
    shown.insert(4, slate(3, 70, [3, 11]))  # a duplicate
    said = [label(number, 20 * number + 35, 10, number % 3) for number in range(35)]
    said.append(label(34, 790, 77))  # of a video that was not shown
    return inputs(shown, said)


@pytest.fixture
def run(given_inputs: Inputs) -> Recording:
    """That run."""
    return record(given_inputs, [(REST, True)], join_settings(), stream=SLATES)


@pytest.fixture
def asking(given_inputs: Inputs) -> Recording:
    """The same under a policy, in several batches."""
    drawn = [(Step(5, 5, False, 9), number == 8) for number in range(12)]
    policy = Impatient(Labels(policy="adaptive", rate=0.4))
    return record(given_inputs, [*drawn, (REST, False)], join_settings(), policy=policy, stream=SLATES)


def edit(run: Recording, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the prediction of a slate."""
    source = run.predictions[number]
    found = msgspec.json.decode(source.value or b"")
    change(found)
    run.predictions[number] = source._replace(value=encode(found))


def test_a_run_is_clean_and_every_item_was_derived(run: Recording) -> None:
    result = run.audit()
    assert result.findings == []
    assert result.checked["predictions derived again"] == run.state.counters["items"] == 120
    assert result.checked["outcomes compared with their prediction"] == run.state.outcomes
    assert run.state.counters["duplicate_interactions"] == 1


@examples(40)
@given(
    given_inputs=slates(),
    pieces=st.lists(st.tuples(steps, st.booleans()), max_size=6),
    challengers=st.sampled_from([{}, CHALLENGERS]),
    policy=policies,
    corrections=st.sampled_from(["off", "add", "replace"]),
)
def test_every_run_is_clean(
    given_inputs: Inputs,
    pieces: list[tuple[Step, bool]],
    challengers: dict[str, ChallengerSettings],
    policy: LabelPolicy | None,
    corrections: str,
) -> None:
    drawn, join = [*pieces, (REST, True)], join_settings(corrections=corrections)
    run = record(given_inputs, drawn, join, challengers, policy, stream=SLATES)
    assert run.findings() == []
    if run.snapshot is not None:
        assert run.audit(from_snapshot=True).findings == []


def test_the_score_of_an_item_is_named(run: Recording) -> None:
    edit(run, 20, lambda found: found["items"][1].update(score=0.125))
    found = run.first()
    assert (found.topic, found.offset) == ("predictions", run.predictions[20].offset)
    assert found.found == "score 0.125"


def unlike_its_message(finding: Finding) -> bool:
    """Whether a difference is that of prediction 20 and its interaction."""
    return finding.topic == "predictions" and finding.found.startswith(
        "event 20, of which there is no message"
    )


def test_an_item_that_is_gone_is_named(run: Recording) -> None:
    edit(run, 20, lambda found: found["items"].pop())
    findings = run.findings()
    assert any("which does not" in each.found for each in findings if each.topic == "outcomes")
    assert any(unlike_its_message(each) for each in findings)


def test_another_order_of_items_is_named(run: Recording) -> None:
    edit(run, 20, lambda found: found["items"].reverse())
    assert any(unlike_its_message(each) for each in run.findings())


def test_another_position_of_an_outcome_is_named(run: Recording) -> None:
    number = next(n for n, each in enumerate(run.outcomes) if b'"position":1' in (each.value or b""))
    run.change_outcome(number, position=2)
    assert run.first().topic == "outcomes"


def test_other_bytes_with_the_same_values_are_named(run: Recording) -> None:
    source = run.predictions[5]
    run.predictions[5] = source._replace(value=(source.value or b"").replace(b',"items"', b', "items"'))
    assert run.first().found == "the same values in other bytes"


def test_a_label_of_which_nothing_became_is_named_though_other_items_have_outcomes(run: Recording) -> None:
    lost = run.labels[-1]
    value = label(34, 800, 20 + 34 % 3)
    run.labels.append(lost._replace(offset=lost.offset + 2, value=value))
    position = msgspec.structs.replace(run.state.labels, offset=lost.offset + 3)
    run.change_state(labels=position)
    assert any(each.topic == "watch-labels" and each.found == "none" for each in run.findings())


@pytest.mark.parametrize("counter", ["items", "labelled", "expired", "predictions"])
def test_a_counter_that_is_off_is_named(run: Recording, counter: str) -> None:
    run.change_state(counters=run.state.counters | {counter: run.state.counters[counter] + 1})
    assert f"counter {counter}" in run.first().found


def test_each_item_s_decision_is_derived_and_has_its_request(asking: Recording) -> None:
    result = asking.audit()
    assert result.findings == []
    assert result.checked["decisions to ask for a label derived again"] == 120
    assert result.checked["label requests compared with their prediction"] == len(asking.requests)
    assert 20 < len(asking.requests) == asking.state.counters["asked"] < 100
    assert asking.state.counters["unasked"] > 0


def asked_of(run: Recording, number: int) -> list[bool]:
    """Return whether the label of each item of a slate is asked for."""
    return [each["asked"] for each in msgspec.json.decode(run.predictions[number].value or b"")["items"]]


def test_a_decision_about_an_item_that_was_changed_is_named(asking: Recording) -> None:
    number = next(n for n in range(20, 40) if asked_of(asking, n)[2])
    edit(asking, number, lambda found: found["items"][2].update(asked=False))
    found = asking.first()
    assert (found.topic, found.offset) == ("predictions", asking.predictions[number].offset)
    assert (found.expected, found.found) == ("asked true", "asked false")


def test_a_request_for_another_item_of_the_slate_is_named(asking: Recording) -> None:
    number = next(n for n in range(20, 40) if asked_of(asking, n)[1:] == [True, False])
    place = next(
        n
        for n, each in enumerate(asking.requests)
        if (request := TYPES.requests.decode(each.value or b"")).prediction_sequence == number
        and request.in_slate == (1,)
    )
    asking.requests[place] = changed(asking.requests[place], TYPES.label_request, position=2)
    found, other = [each for each in asking.findings() if each.topic == "label-requests"]
    assert found.expected == f"a request for the label of prediction {number}, position 1"
    assert other.found == f"one for prediction {number}, position 2"


def test_a_request_that_names_another_item_is_named(asking: Recording) -> None:
    source = asking.requests[10]
    request = msgspec.json.decode(source.value or b"") | {"video_id": 99}
    asking.requests[10] = source._replace(value=encode(request))
    [found] = asking.findings()
    assert (found.topic, found.found) == ("label-requests", "video_id 99")


def test_of_requests_that_retention_has_left_each_is_compared(asking: Recording) -> None:
    place = next(
        n
        for n, each in enumerate(asking.requests)
        if n > 10 and TYPES.requests.decode(each.value or b"").in_slate != (0,)
    )
    asking.log_start_offsets = {"label-requests": asking.requests[place].offset}
    asking.requests = asking.requests[place:]
    result = asking.audit()
    assert result.findings == []
    assert result.checked["label requests compared with their prediction"] == len(asking.requests)
