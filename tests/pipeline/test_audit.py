"""A run audits clean, whatever came in; whatever is changed in its topics is found and named."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.audit.evidence import Buried
from pipeline.audit.ledger import Finding
from pipeline.records import Outcome, Prediction, encode
from pipeline.snapshot import pack
from tests.pipeline.builders import Inputs, Message, inputs, interaction, label, new_task
from tests.pipeline.consumer import REST, Delivery, Step, steps
from tests.pipeline.output_log import OutputLog
from tests.pipeline.recording import STATE_OFFSET, Recording, changed
from tests.pipeline.streams import streams


def record(given_inputs: Inputs, drawn: list[tuple[Step, bool]]) -> Recording:
    """Run batch by batch, each with a snapshot or without."""
    task, log = new_task(), OutputLog()
    delivery = Delivery(task, given_inputs)
    for step, snapshot in drawn:
        delivery.deliver(step)
        log.commit(task, task.advance(step.limit), snapshot and task.model.folded > 0)
    return Recording.of(given_inputs, log)


def eventful() -> Inputs:
    """Two hundred events with every fate in them, and a few that still wait at the end."""
    shown: list[Message] = []
    labels: list[Message] = []
    for n in range(200):
        user, video, at = n % 5, n % 7, 10 * n
        shown.append(interaction(n, at, user, video))
        if n % 10:
            labels.append(label(n, at + 35, n % 3, user, video))
        if n % 40 == 7:
            shown.append(interaction(n, at, user, video))
            labels.append(label(n, at + 36, n % 3, user, video))
        if n % 50 == 3:
            labels.append(label(1_000 + n, at + 35))
            labels.append(label(n - 3, at + 150, 1.0, (n - 3) % 5, (n - 3) % 7))
        if n % 50 == 11:
            labels.append(label(n - 1, at + 35, 1.0, 4, 6))
        if n % 60 == 30:
            shown.append(b"{")
            labels.append(None)
            shown.append(interaction(2_000 + n, at + 5_000))
    shown.append(interaction(3_001, 2_010))
    labels.append(label(3_000, 2_020))
    return inputs(shown, labels)


@cache
def _eventful_run() -> Recording:
    return record(
        eventful(), [(Step(9, 9, False, 15), number == 8) for number in range(24)] + [(REST, False)]
    )


@pytest.fixture
def run() -> Recording:
    """A run to be sabotaged."""
    whole = copy(_eventful_run())
    for name in ("interactions", "labels", "predictions", "outcomes", "dead_letters"):
        setattr(whole, name, list(getattr(whole, name)))
    return whole


def test_the_run_has_every_fate_in_it(run: Recording) -> None:
    counters = run.state.counters
    assert min(counters[case] for case in counters if case not in ("invalid", "wrong_key")) > 0
    assert run.state.waiting
    assert run.state.pending
    assert run.model().learner.state()["stage"] == 2
    assert 0 < run.model().folded < run.state.outcomes


def test_a_run_is_clean_and_everything_in_it_was_looked_at(run: Recording) -> None:
    ledger = run.audit()
    assert ledger.findings == []
    assert ledger.checked == {
        "predictions derived again": len(run.predictions),
        "outcomes compared with their prediction": len(run.outcomes),
        "outcomes folded": len(run.outcomes),
        "snapshots compared with the fold": 1,
        "dead letters": len(run.dead_letters),
        "messages of interactions with one fate": len(run.interactions),
        "messages of watch-labels with one fate": len(run.labels),
        "figures of the state record": 16,
    }


def test_from_a_snapshot_only_what_was_predicted_since_is_derived(run: Recording) -> None:
    ledger = run.audit(from_snapshot=True)
    assert ledger.findings == []
    folded = run.model().folded
    versions = [
        msgspec.json.decode(each.value or b"", type=Prediction).model_version for each in run.predictions
    ]
    assert ledger.checked["outcomes folded"] == len(run.outcomes) - folded
    assert ledger.checked["predictions derived again"] == sum(version >= folded for version in versions)


@settings(max_examples=150)
@given(given_inputs=streams(), drawn=st.lists(st.tuples(steps, st.booleans()), max_size=15))
def test_every_run_is_clean(given_inputs: Inputs, drawn: list[tuple[Step, bool]]) -> None:
    run = record(given_inputs, [*drawn, (REST, True)])
    assert run.findings() == []
    if run.snapshot is not None:
        assert run.audit(from_snapshot=True).findings == []


@settings(max_examples=60)
@given(
    given_inputs=streams(),
    drawn=st.lists(st.tuples(steps, st.booleans()), min_size=2, max_size=15),
    data=st.data(),
)
def test_so_is_a_run_whose_worker_goes_on_meanwhile(
    given_inputs: Inputs, drawn: list[tuple[Step, bool]], data: st.DataObject
) -> None:
    """The state record is an earlier one, and later outputs lie behind what it covers."""
    earlier = record(given_inputs, drawn[: data.draw(st.integers(1, len(drawn) - 1))])
    later = record(given_inputs, [*drawn, (REST, True)])
    later.state, later.snapshot = earlier.state, earlier.snapshot
    later.covered = 0
    assert later.findings() == []


Sabotage = Callable[[Recording], object]
Place = tuple[str, int | None]


def raised(value: float) -> float:
    """The next number: only the last bit differs, or nearly so."""
    return math.nextafter(value, math.inf)


def prediction_of(run: Recording, number: int) -> Prediction:
    return msgspec.json.decode(run.predictions[number].value or b"", type=Prediction)


def outcome_of(run: Recording, number: int) -> Outcome:
    return msgspec.json.decode(run.outcomes[number].value or b"", type=Outcome)


def first(run: Recording) -> Finding:
    findings = run.findings()
    assert findings, "the sabotage was not found"
    return findings[0]


def test_a_dropped_outcome_is_named(run: Recording) -> None:
    del run.outcomes[60]
    found = first(run)
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[60].offset)
    assert (found.expected, found.found) == ("sequence 60", "sequence 61")


def test_a_dropped_last_outcome_is_named(run: Recording) -> None:
    last = run.outcomes.pop()
    found = first(run)
    assert (found.topic, found.offset) == ("outcomes", None)
    assert f"sequences {len(run.outcomes)} to {len(run.outcomes)}" in found.expected
    assert last.offset > run.outcomes[-1].offset


def test_a_dropped_outcome_whose_successors_are_numbered_anew_is_named(run: Recording) -> None:
    """Sequences and state record are made to fit: then the label has no fate, and the fold is another one."""
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
    found = first(run)
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[61].offset)
    assert (found.expected, found.found) == ("sequence 61", "sequence 60")


def test_a_second_outcome_of_a_prediction_is_named(run: Recording) -> None:
    repeated = outcome_of(run, 60)
    run.change_outcome(61, prediction_sequence=repeated.prediction_sequence)
    found = first(run)
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[61].offset)
    assert "which does not" in found.found


def test_the_last_bit_of_a_score_is_named(run: Recording) -> None:
    score = prediction_of(run, 100).score
    run.change_prediction(100, score=raised(score))
    found = first(run)
    assert (found.topic, found.offset) == ("predictions", run.predictions[100].offset)
    assert (found.expected, found.found) == (f"score {score!r}", f"score {raised(score)!r}")


def test_a_changed_feature_is_named_in_prediction_and_outcome(run: Recording) -> None:
    features = outcome_of(run, 60).features
    features[4] = raised(features[4])
    run.change_outcome(60, features=features)
    found = first(run)
    assert (found.topic, found.offset) == ("outcomes", run.outcomes[60].offset)
    assert found.expected.startswith("feature video_label_mean ")
    run = copy(_eventful_run())
    run.predictions = list(run.predictions)
    run.change_prediction(20, features=[*prediction_of(run, 20).features[:-1], 0.123])
    assert first(run).found == "feature video_tag_ratio_mean 0.123"


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
        found = first(run)
        assert (found.topic, found.offset) == (topic, 5_000)
        del sources[-1]


def test_a_key_that_is_not_the_user_s_is_named(run: Recording) -> None:
    run.predictions[8] = run.predictions[8]._replace(key=b"9")
    assert first(run).found == "key b'9'"


def test_other_bytes_with_the_same_values_are_named(run: Recording) -> None:
    value = run.predictions[8].value or b""
    run.predictions[8] = run.predictions[8]._replace(value=value + b" ")
    assert first(run).found == "the same values in other bytes"


def test_a_prediction_without_an_interaction_is_named(run: Recording) -> None:
    gone = next(each for each in run.interactions if b'"event_id":60,' in (each.value or b""))
    run.interactions.remove(gone)
    [found] = [each for each in run.findings() if each.topic == "predictions"]
    assert "event 60," in found.found


@pytest.mark.parametrize("topic", ["interactions", "watch-labels"])
def test_a_message_without_a_fate_is_named(run: Recording, topic: str) -> None:
    """A message that was put in, or whose output was lost: the state record says that it was processed."""
    sources = run.interactions if topic == "interactions" else run.labels
    message = interaction(9_999, 600) if topic == "interactions" else label(9_999, 600)
    sources.insert(50, sources[49]._replace(offset=sources[49].offset + 1, key=b"1", value=encode(message)))
    found = first(run)
    assert (found.topic, found.offset) == (topic, sources[50].offset)
    assert "event 9999" in found.expected


@pytest.mark.parametrize("fault", ["undecodable", "orphan", "late", "mismatched", "future"])
def test_a_missing_dead_letter_is_named_by_its_source(run: Recording, fault: str) -> None:
    gone = next(each for each in run.dead_letters if each.letter.fault == fault)
    run.dead_letters.remove(gone)
    findings = run.findings()
    sources = [(each.topic, each.offset) for each in findings]
    assert (gone.letter.topic, gone.letter.offset) in sources or fault in ("late", "mismatched")
    assert any(f"counter {fault}" in each.expected for each in findings)


def test_a_dead_letter_about_a_message_that_does_not_exist_is_named(run: Recording) -> None:
    buried = run.dead_letters[0]
    elsewhere = buried.letter._replace(offset=(buried.letter.offset or 0) + 1)
    run.dead_letters[0] = buried._replace(letter=elsewhere)
    found = [each for each in run.findings() if each.topic == "dead-letters"]
    assert found[0].offset == 0
    assert found[0].found == "no message there"


@pytest.mark.parametrize(
    "changes",
    [{"fault": None}, {"fault": "tired"}, {"topic": "elsewhere"}, {"offset": 10**6}, {"partition": 1}],
)
def test_a_dead_letter_that_no_worker_wrote_is_named(run: Recording, changes: dict[str, object]) -> None:
    buried = run.dead_letters[0]
    letter = buried.letter._replace(**changes)  # type: ignore[arg-type]  # the values are of the fields' types
    run.dead_letters.append(Buried(buried.source._replace(offset=5_000), letter))
    found = first(run)
    assert (found.topic, found.offset) == ("dead-letters", 5_000)


def test_a_dead_letter_that_is_there_twice_is_named(run: Recording) -> None:
    run.dead_letters.append(
        run.dead_letters[0]._replace(source=run.dead_letters[0].source._replace(offset=5_000))
    )
    assert first(run).expected == "one dead letter a message, that at 0"


def test_a_dead_letter_with_other_bytes_is_named(run: Recording) -> None:
    buried = run.dead_letters[0]
    run.dead_letters[0] = buried._replace(source=buried.source._replace(value=b"other"))
    assert any(each.topic == "dead-letters" and each.offset == 0 for each in run.findings())


def test_a_good_message_that_was_buried_is_named(run: Recording) -> None:
    wrong = run.dead_letters[0].letter._replace(
        fault="invalid", topic="interactions", offset=run.interactions[0].offset
    )
    message = run.interactions[0]
    run.dead_letters.append(Buried(message._replace(topic="dead-letters", offset=5_000), wrong))
    assert any(each.expected == "a fate as a valid message" for each in run.findings())


def test_a_snapshot_of_another_run_is_named(run: Recording) -> None:
    assert run.state.snapshot is not None
    model = run.model()
    other = outcome_of(run, model.folded)
    model = run.model()
    model.statistics.update(other.user_id, other.video_id, True, 1.0)
    run.snapshot = pack(model)
    found = first(run)
    assert (found.topic, found.offset) == ("checkpoints", run.state.snapshot.chunks[0])
    assert found.found == "tensor plain differs"
    run.snapshot = b"damaged"
    assert "does not decode" in first(run).found


def test_a_snapshot_of_another_run_is_not_what_predictions_came_of_either(run: Recording) -> None:
    model = run.model()
    model.statistics.update(0, 0, True, 1.0)
    run.snapshot = pack(model)
    assert run.audit(from_snapshot=True).findings[0].topic == "predictions"


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("topic", ["interactions", "labels"])
def test_an_input_offset_moved_by_one_is_named(run: Recording, topic: str, by: int) -> None:
    position = getattr(run.state, topic)
    run.change_state(**{topic: msgspec.structs.replace(position, offset=position.offset + by)})
    assert any("right behind its last processed message" in each.expected for each in run.findings())


@pytest.mark.parametrize(
    "name", ["outcomes", "predictions", "pending", "pending_from", "stream_time", "prediction_offset"]
)
def test_a_figure_of_the_state_record_that_is_off_is_named(run: Recording, name: str) -> None:
    distance = {"stream_time": -200, "prediction_offset": 100}.get(name, 1)
    run.change_state(**{name: getattr(run.state, name) + distance})
    assert run.findings()


@pytest.mark.parametrize("case", sorted({*_eventful_run().state.counters} - {"early"}))
def test_a_counter_that_is_off_is_named(run: Recording, case: str) -> None:
    right = run.state.counters[case]
    run.change_state(counters={**run.state.counters, case: right + 1})
    [found] = run.findings()
    assert (found.topic, found.offset) == ("checkpoints", STATE_OFFSET)
    assert (found.expected, found.found) == (
        f"counter {case} {right}, by the topics",
        f"counter {case} {right + 1}",
    )


def test_a_waiting_label_that_was_buried_as_well_is_named(run: Recording) -> None:
    [saved] = run.state.waiting
    message = next(each for each in run.labels if each.offset == saved.offset)
    letter = run.dead_letters[0].letter._replace(fault="orphan", topic=saved.topic, offset=saved.offset)
    run.dead_letters.append(Buried(message._replace(topic="dead-letters", offset=5_000), letter))
    assert first(run).offset == 5_000


def test_a_waiting_label_that_is_another_is_named(run: Recording) -> None:
    [saved] = run.state.waiting
    run.change_state(waiting=[msgspec.structs.replace(saved, key=b"other")])
    assert first(run).found == "other bytes"


def test_inputs_that_retention_has_taken_are_not_missed(run: Recording) -> None:
    begins = {"interactions": run.interactions[60].offset, "watch-labels": run.labels[60].offset}
    del run.interactions[:60], run.labels[:60]
    run.begins = begins
    assert run.findings() == []


def test_outputs_that_retention_has_taken_are_not_missed_from_a_snapshot(run: Recording) -> None:
    del run.predictions[:10], run.outcomes[:5]
    run.begins = {"predictions": run.predictions[0].offset, "outcomes": run.outcomes[0].offset}
    assert run.audit(from_snapshot=True).findings == []
    assert "without which nothing after it can be derived" in first(run).expected
