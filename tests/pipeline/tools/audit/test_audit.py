"""A run has no differences, whatever its inputs; a changed output is found and named."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model.label_policy import LabelPolicy
from pipeline.model.snapshot import pack
from pipeline.records.outputs import Outcome, Prediction
from pipeline.recovery.libraries import libraries_here
from pipeline.task.state import Libraries, LibraryEpoch
from tests.support.builders import Inputs
from tests.support.consumer import REST, Step, steps
from tests.support.examples import examples
from tests.support.recording import Recording, changed, eventful_run, record
from tests.support.streams import policies, streams


@pytest.fixture
def run() -> Recording:
    """A run whose records a test may change."""
    return eventful_run()


def test_the_run_has_every_disposition(run: Recording) -> None:
    counters = run.state.counters
    elsewhere = ("invalid", "wrong_key", "asked", "unasked")
    assert min(counters[name] for name in counters if name not in elsewhere) > 0
    assert run.state.waiting
    assert run.state.pending
    assert run.model().learner.state()["stage"] == 2
    assert 0 < run.model().outcomes_learned < run.state.outcomes


def test_a_run_is_clean_and_everything_in_it_was_looked_at(run: Recording) -> None:
    result = run.audit()
    assert result.findings == []
    assert result.checked == {
        "predictions derived again": len(run.predictions),
        "outcomes compared with their prediction": len(run.outcomes),
        "outcomes learned": len(run.outcomes),
        "snapshots compared with the model": 1,
        "dead letters": len(run.dead_letters),
        "messages of interactions with one disposition": len(run.interactions),
        "messages of watch-labels with one disposition": len(run.labels),
        "figures of the state record": 18,
    }


def test_from_a_snapshot_only_what_was_predicted_since_is_derived(run: Recording) -> None:
    result = run.audit(from_snapshot=True)
    assert result.findings == []
    outcomes_learned = run.model().outcomes_learned
    versions = [
        msgspec.json.decode(each.value or b"", type=Prediction).model_version for each in run.predictions
    ]
    assert result.checked["outcomes learned"] == len(run.outcomes) - outcomes_learned
    assert result.checked["predictions derived again"] == sum(
        version >= outcomes_learned for version in versions
    )


@examples(75)
@given(
    given_inputs=streams(),
    drawn=st.lists(st.tuples(steps, st.booleans()), max_size=15),
    policy=policies,
)
def test_every_run_is_clean(
    given_inputs: Inputs, drawn: list[tuple[Step, bool]], policy: LabelPolicy | None
) -> None:
    run = record(given_inputs, [*drawn, (REST, True)], policy=policy)
    assert run.findings() == []
    if run.snapshot is not None:
        assert run.audit(from_snapshot=True).findings == []


@examples(60)
@given(
    given_inputs=streams(),
    drawn=st.lists(st.tuples(steps, st.booleans()), min_size=2, max_size=15),
    policy=policies,
    data=st.data(),
)
def test_so_is_a_run_whose_worker_goes_on_meanwhile(
    given_inputs: Inputs, drawn: list[tuple[Step, bool]], policy: LabelPolicy | None, data: st.DataObject
) -> None:
    """The state record is an earlier one, and later outputs lie behind the stable offset."""
    earlier = record(given_inputs, drawn[: data.draw(st.integers(1, len(drawn) - 1))], policy=policy)
    later = record(given_inputs, [*drawn, (REST, True)], policy=policy)
    later.state, later.snapshot = earlier.state, earlier.snapshot
    later.stable_offset = 0
    assert later.findings() == []


def raised(value: float) -> float:
    """Return the next float, which differs in the last bit or a few."""
    return math.nextafter(value, math.inf)


def prediction_of(run: Recording, number: int) -> Prediction:
    return msgspec.json.decode(run.predictions[number].value or b"", type=Prediction)


def outcome_of(run: Recording, number: int) -> Outcome:
    return msgspec.json.decode(run.outcomes[number].value or b"", type=Outcome)


def test_a_dropped_outcome_is_named(run: Recording) -> None:
    del run.outcomes[60]
    found = run.first()
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[60].offset)
    assert (found.expected, found.found) == ("sequence 60", "sequence 61")


def test_a_dropped_last_outcome_is_named(run: Recording) -> None:
    last = run.outcomes.pop()
    found = run.first()
    assert (found.topic, found.offset) == ("outcomes", None)
    assert f"sequences {len(run.outcomes)} to {len(run.outcomes)}" in found.expected
    assert last.offset > run.outcomes[-1].offset


def test_a_dropped_outcome_whose_successors_are_numbered_anew_is_named(run: Recording) -> None:
    """Sequences and state record fit: then the label has no disposition, and the model is another one."""
    number = next(n for n in range(60, 90) if outcome_of(run, n).status == "labelled")
    gone = outcome_of(run, number)
    del run.outcomes[number]
    for later in range(number, len(run.outcomes)):
        run.change_outcome(later, sequence=later)
    run.change_state(outcomes=run.state.outcomes - 1)
    findings = run.findings()
    assert findings[0].topic in ("predictions", "checkpoints")
    assert any(
        each.topic == "watch-labels" and f"event {gone.event_id}" in each.expected for each in findings
    )


def test_an_outcome_that_is_there_twice_is_named(run: Recording) -> None:
    run.outcomes.insert(61, run.outcomes[60]._replace(offset=run.outcomes[60].offset + 1))
    found = run.first()
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[61].offset)
    assert (found.expected, found.found) == ("sequence 61", "sequence 60")


def test_a_second_outcome_of_a_prediction_is_named(run: Recording) -> None:
    repeated = outcome_of(run, 60)
    run.change_outcome(61, prediction_sequence=repeated.prediction_sequence)
    found = run.first()
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[61].offset)
    assert "which does not" in found.found


def test_the_last_bit_of_a_score_is_named(run: Recording) -> None:
    score = prediction_of(run, 100).score
    run.change_prediction(100, score=raised(score))
    found = run.first()
    assert (found.topic, found.offset) == ("predictions", run.predictions[100].offset)
    assert (found.expected, found.found) == (f"score {score!r}", f"score {raised(score)!r}")


def with_epoch(run: Recording, versions: dict[str, str], predictions: int, outcomes: int) -> None:
    """Let the state record say that the first outputs were computed with other libraries."""
    epoch = LibraryEpoch(versions, predictions, outcomes)
    run.change_state(libraries=Libraries(dict(libraries_here()), [epoch]))


def test_predictions_of_another_arithmetic_are_compared_with_their_outcomes_alone(run: Recording) -> None:
    outcomes_learned = run.model().outcomes_learned
    first = next(
        n for n in range(len(run.predictions)) if prediction_of(run, n).model_version >= outcomes_learned
    )
    with_epoch(run, {"numpy": "2.4.6"}, first + 5, outcomes_learned + 3)
    for number in (3, first, first + 4):  # none of them has an outcome before the others
        other = raised(prediction_of(run, number).score)
        run.change_prediction(number, score=other)
        for n in range(len(run.outcomes)):
            if outcome_of(run, n).prediction_sequence == number:
                run.change_outcome(n, score=other)
    clean = run.audit(from_snapshot=True)
    assert [each for each in clean.findings if each.topic == "predictions"] == []
    assert clean.checked["predictions made with another arithmetic, not derived again"] == first + 5
    assert clean.checked["predictions derived again"] == len(run.predictions) - first - 5
    run.change_prediction(first + 5, score=raised(prediction_of(run, first + 5).score))
    [found] = [each for each in run.audit(from_snapshot=True).findings if each.topic == "predictions"]
    assert found.offset == run.predictions[first + 5].offset


def test_losses_of_another_arithmetic_may_have_other_last_bits_and_no_others(run: Recording) -> None:
    outcomes_learned = run.model().outcomes_learned
    losses = [n for n in range(outcomes_learned, len(run.outcomes)) if outcome_of(run, n).loss]
    before, after = losses[0], losses[-1]
    with_epoch(run, {}, 1, before + 1)
    run.change_outcome(before, loss=raised(outcome_of(run, before).loss or 0.0))
    assert run.audit(from_snapshot=True).findings == []
    loss = outcome_of(run, before).loss or 0.0
    run.change_outcome(before, loss=1.001 * loss)
    assert run.audit(from_snapshot=True).findings[0].offset == run.outcomes[before].offset
    run.change_outcome(before, loss=loss)
    run.change_outcome(after, loss=raised(outcome_of(run, after).loss or 0.0))
    assert run.audit(from_snapshot=True).findings[0].offset == run.outcomes[after].offset


def test_other_compilers_of_the_same_arithmetic_change_no_check(run: Recording) -> None:
    with_epoch(run, {**libraries_here(), "numba": "0.1"}, 100, 60)
    run.change_prediction(50, score=raised(prediction_of(run, 50).score))
    assert run.first().topic == "predictions"


def test_a_changed_feature_is_named_in_prediction_and_outcome(run: Recording) -> None:
    features = outcome_of(run, 60).features
    features[4] = raised(features[4])
    run.change_outcome(60, features=features)
    found = run.first()
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[60].offset)
    assert found.expected.startswith("feature video_label_mean ")
    run = eventful_run()
    run.change_prediction(20, features=[*prediction_of(run, 20).features[:-1], 0.123])
    assert run.first().found == "feature effects_logit 0.123"


@pytest.mark.parametrize("field", ["label", "correct", "predicted", "loss", "probability", "watch_ratio"])
def test_every_field_that_follows_from_others_is_named(run: Recording, field: str) -> None:
    number = next(n for n in range(60, 90) if outcome_of(run, n).status == "labelled")
    value = getattr(outcome_of(run, number), field)
    other = {"label": not value, "correct": not value, "predicted": not value, "watch_ratio": 0.7501}
    run.change_outcome(number, **{field: other.get(field, (value or 0.0) / 2)})
    named = [(each.topic, each.offset) for each in run.findings()]
    assert ("outcomes", run.outcomes[number].offset) in named


@pytest.mark.parametrize("topic", ["predictions", "outcomes"])
def test_a_record_that_no_worker_wrote_is_named(run: Recording, topic: str) -> None:
    sources = getattr(run, topic)
    strays = [
        sources[50]._replace(value=b"{}"),
        sources[50]._replace(value=None),
        changed(sources[-1], Prediction if topic == "predictions" else Outcome, sequence=len(sources)),
    ]
    for stray in strays:
        sources.append(stray._replace(offset=5_000))
        found = run.first()
        assert (found.topic, found.offset) == (topic, 5_000)
        del sources[-1]


def test_a_key_that_is_not_the_user_s_is_named(run: Recording) -> None:
    run.predictions[8] = run.predictions[8]._replace(key=b"9")
    assert run.first().found == "key b'9'"


def test_other_bytes_with_the_same_values_are_named(run: Recording) -> None:
    value = run.predictions[8].value or b""
    run.predictions[8] = run.predictions[8]._replace(value=value + b" ")
    assert run.first().found == "the same values in other bytes"


def test_a_snapshot_of_another_run_is_named(run: Recording) -> None:
    assert run.state.snapshot is not None
    model = run.model()
    other = outcome_of(run, model.outcomes_learned)
    model = run.model()
    model.statistics.update(other.ids, True, 1.0)
    run.snapshot = pack(model)
    found = run.first()
    assert (found.topic, found.offset) == ("checkpoints", run.state.snapshot.chunks[0])
    assert found.found == "tensor effects.everything differs"
    run.snapshot = b"damaged"
    assert "does not decode" in run.first().found


def test_a_snapshot_of_another_run_is_not_what_predictions_came_of_either(run: Recording) -> None:
    model = run.model()
    model.statistics.update((0, 0), True, 1.0)
    run.snapshot = pack(model)
    assert run.audit(from_snapshot=True).findings[0].topic == "predictions"
