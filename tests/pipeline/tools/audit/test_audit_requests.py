"""Decisions are derived again and compared with label requests: each change is found and named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pipeline.config.settings import Labels
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.tools.audit.differences import Finding
from tests.support.builders import CHALLENGERS
from tests.support.consumer import REST, Step
from tests.support.recording import Recording, changed, eventful, eventful_run, record
from tests.support.streams import Impatient

POLICIES = ("random", "margin", "adaptive")


def run_under(name: str, **changes: Any) -> Recording:
    return eventful_run(Labels.model_validate({"policy": name, "rate": 0.4, **changes}))


@pytest.fixture
def run() -> Recording:
    """A run whose records a test may change."""
    return run_under("adaptive")


def prediction_of(run: Recording, number: int) -> Prediction:
    return msgspec.json.decode(run.predictions[number].value or b"", type=Prediction)


def asked(run: Recording, requested: bool) -> int:
    """Return the number of a prediction in the middle whose label was requested, or was not."""
    return next(n for n in range(60, 200) if prediction_of(run, n).asked is requested)


def of_topic(findings: list[Finding], topic: str) -> list[Finding]:
    return [finding for finding in findings if finding.topic == topic]


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("learn_unasked", [False, True])
def test_a_run_is_clean_and_its_decisions_were_looked_at(name: str, learn_unasked: bool) -> None:
    run = run_under(name, learn_unasked=learn_unasked)
    result = run.audit()
    assert result.findings == []
    assert result.checked["decisions to ask for a label derived again"] == len(run.predictions)
    assert result.checked["label requests compared with their prediction"] == len(run.requests)
    assert 20 < len(run.requests) == run.state.counters["asked"] < len(run.predictions)
    assert run.state.counters["unasked"] > 0
    assert run.audit(from_snapshot=True).findings == []


def test_so_is_one_with_challengers() -> None:
    drawn = [(Step(9, 9, False, 15), number == 8) for number in range(24)] + [(REST, False)]
    asking = Impatient(Labels(policy="adaptive", rate=0.4))
    run = record(eventful(), drawn, challengers=CHALLENGERS, policy=asking)
    assert run.findings() == []
    assert prediction_of(run, 0).challengers is not None
    assert 0 < run.state.counters["asked"] < run.state.predictions


def test_another_seed_would_have_decided_otherwise() -> None:
    run = run_under("random")
    run.policy = run_under("random", seed=1).policy
    found = run.first()
    assert found.topic == "predictions"
    assert found.expected.startswith("asked ")


@pytest.mark.parametrize("requested", [False, True])
def test_a_decision_that_was_changed_everywhere_is_named(run: Recording, requested: bool) -> None:
    number = asked(run, requested)
    run.change_prediction(number, asked=not requested)
    found = of_topic(run.findings(), "predictions")[0]
    assert found.offset == run.predictions[number].offset
    assert (found.expected, found.found) == (
        f"asked {str(requested).lower()}",
        f"asked {str(not requested).lower()}",
    )


def test_a_missing_request_is_named_though_the_others_are_numbered_anew(run: Recording) -> None:
    number = prediction_of(run, asked(run, requested=True)).sequence
    index = next(n for n, each in enumerate(run.requests) if request_of(each).prediction_sequence == number)
    del run.requests[index]
    assert run.first().expected == f"sequence {index}"
    for later in range(index, len(run.requests)):
        run.requests[later] = changed(run.requests[later], LabelRequest, sequence=later)
    findings = of_topic(run.findings(), "label-requests")
    assert findings[-1].expected == f"sequences {len(run.requests)} to {len(run.requests)}"
    run.change_state(counters=run.state.counters | {"asked": len(run.requests)})
    findings = run.findings()
    assert (
        of_topic(findings, "label-requests")[0].expected == f"a request for the label of prediction {number}"
    )
    assert of_topic(findings, "checkpoints")[0].expected.startswith("counter asked")


def test_a_missing_last_request_is_named(run: Recording) -> None:
    run.requests.pop()
    found = of_topic(run.findings(), "label-requests")[0]
    last = len(run.requests)
    assert (found.offset, found.expected) == (None, f"sequences {last} to {last}")


def test_a_foreign_request_is_named(run: Recording) -> None:
    number = asked(run, requested=False)
    stray = LabelRequest.of(prediction_of(run, number), len(run.requests))
    offset = run.requests[-1].offset + 1
    run.requests.append(RawMessage("label-requests", 0, offset, str(stray.user_id).encode(), encode(stray)))
    found = of_topic(run.findings(), "label-requests")[0]
    assert (found.offset, found.found) == (offset, f"sequence {len(run.requests) - 1}")
    run.change_state(counters=run.state.counters | {"asked": len(run.requests)})
    found = of_topic(run.findings(), "label-requests")[-1]
    assert (found.offset, found.found) == (offset, f"one for prediction {number}")


@pytest.mark.parametrize(
    "changes", [{"score": 0.125}, {"video_id": 99}, {"timestamp": 1}, {"event_id": "other"}]
)
def test_a_request_that_says_otherwise_than_its_prediction_is_named(
    run: Recording, changes: dict[str, Any]
) -> None:
    run.requests[30] = changed(run.requests[30], LabelRequest, **changes)
    [found] = run.findings()
    [(name, value)] = changes.items()
    assert (found.topic, found.offset) == ("label-requests", run.requests[30].offset)
    assert found.found == f"{name} {encode(value).decode()}"


def test_an_outcome_that_learns_what_was_not_asked_for_is_named(run: Recording) -> None:
    number = next(
        n for n in range(60, 150) if (each := outcome_of(run, n)).asked is False and each.watch_ratio == 1.0
    )
    run.change_outcome(number, label=True)
    found = run.first()
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[number].offset)
    assert (found.expected, found.found) == ("label null", "label true")


def test_an_outcome_that_denies_its_decision_is_named(run: Recording) -> None:
    run.change_outcome(60, asked=not outcome_of(run, 60).asked)
    assert run.first().expected.startswith("asked ")


@pytest.mark.parametrize("counter", ["asked", "unasked"])
def test_a_counter_that_is_wrong_is_named(run: Recording, counter: str) -> None:
    run.change_state(counters=run.state.counters | {counter: run.state.counters[counter] - 1})
    assert of_topic(run.findings(), "checkpoints")[0].expected.startswith(f"counter {counter} ")


def test_where_retention_has_deleted_records_the_rest_is_clean(run: Recording) -> None:
    cut = run.predictions[50].offset
    run.predictions = run.predictions[50:]
    run.log_start_offsets = {"predictions": cut}
    result = run.audit(from_snapshot=True)
    assert result.findings == []
    assert "decisions to ask for a label derived again" not in result.checked
    run.log_start_offsets["label-requests"] = run.requests[40].offset
    run.requests = run.requests[40:]
    assert run.audit(from_snapshot=True).findings == []


def request_of(source: Any) -> LabelRequest:
    return msgspec.json.decode(source.value, type=LabelRequest)


def outcome_of(run: Recording, number: int) -> Outcome:
    return msgspec.json.decode(run.outcomes[number].value or b"", type=Outcome)
