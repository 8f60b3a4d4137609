"""Inputs without a disposition, wrong dead letters and a wrong state record are found and named."""

from __future__ import annotations

import msgspec
import pytest

from pipeline.records.dead_letter import Original
from pipeline.records.encoding import encode
from pipeline.records.names import REDRIVEN_HEADER
from pipeline.tools.audit.state_check import UNRECORDED
from pipeline.tools.audit.topic_records import DeadLetterMessage
from tests.support.builders import interaction, label
from tests.support.recording import STATE_OFFSET, Recording, eventful_run


@pytest.fixture
def run() -> Recording:
    """A run whose records a test may change."""
    return eventful_run()


def test_a_prediction_without_an_interaction_is_named(run: Recording) -> None:
    gone = next(each for each in run.interactions if b'"event_id":60,' in (each.value or b""))
    run.interactions.remove(gone)
    [found] = [each for each in run.findings() if each.topic == "predictions"]
    assert "event 60," in found.found


@pytest.mark.parametrize("topic", ["interactions", "watch-labels"])
def test_a_message_without_a_disposition_is_named(run: Recording, topic: str) -> None:
    """A message was inserted, or its output was lost, though the state record counts it as processed."""
    sources = run.interactions if topic == "interactions" else run.labels
    message = interaction(9_999, 600) if topic == "interactions" else label(9_999, 600)
    sources.insert(50, sources[49]._replace(offset=sources[49].offset + 1, key=b"1", value=encode(message)))
    found = run.first()
    assert (found.topic, found.offset) == (topic, sources[50].offset)
    assert "event 9999" in found.expected


@pytest.mark.parametrize("fault", ["undecodable", "orphan", "late", "mismatched", "future"])
def test_a_missing_dead_letter_is_named_by_its_source(run: Recording, fault: str) -> None:
    gone = next(each for each in run.dead_letters if each.dead_letter.fault == fault)
    run.dead_letters.remove(gone)
    findings = run.findings()
    sources = [(each.topic, each.offset) for each in findings]
    assert (gone.dead_letter.topic, gone.dead_letter.offset) in sources or fault in ("late", "mismatched")
    assert any(f"counter {fault}" in each.expected for each in findings)


def test_a_dead_letter_about_a_message_that_does_not_exist_is_named(run: Recording) -> None:
    dead_letter_message = run.dead_letters[0]
    elsewhere = dead_letter_message.dead_letter._replace(
        offset=(dead_letter_message.dead_letter.offset or 0) + 1
    )
    run.dead_letters[0] = dead_letter_message._replace(dead_letter=elsewhere)
    found = [each for each in run.findings() if each.topic == "dead-letters"]
    assert found[0].offset == 0
    assert found[0].found == "no message there"


@pytest.mark.parametrize(
    "changes",
    [{"fault": None}, {"fault": "tired"}, {"topic": "elsewhere"}, {"offset": 10**6}, {"partition": 1}],
)
def test_a_dead_letter_that_no_worker_wrote_is_named(run: Recording, changes: dict[str, object]) -> None:
    dead_letter_message = run.dead_letters[0]
    dead_letter = dead_letter_message.dead_letter._replace(**changes)  # type: ignore[arg-type]  # the values are of the fields' types
    run.dead_letters.append(DeadLetterMessage(dead_letter_message.source._replace(offset=5_000), dead_letter))
    found = run.first()
    assert (found.topic, found.offset) == ("dead-letters", 5_000)


def test_a_dead_letter_that_is_there_twice_is_named(run: Recording) -> None:
    run.dead_letters.append(
        run.dead_letters[0]._replace(source=run.dead_letters[0].source._replace(offset=5_000))
    )
    assert run.first().expected == "one dead letter for each message, the one at 0"


def test_a_dead_letter_with_other_bytes_is_named(run: Recording) -> None:
    dead_letter_message = run.dead_letters[0]
    run.dead_letters[0] = dead_letter_message._replace(
        source=dead_letter_message.source._replace(value=b"other")
    )
    assert any(each.topic == "dead-letters" and each.offset == 0 for each in run.findings())


def test_a_valid_message_with_a_dead_letter_is_named(run: Recording) -> None:
    wrong = run.dead_letters[0].dead_letter._replace(
        fault="invalid", topic="interactions", offset=run.interactions[0].offset
    )
    message = run.interactions[0]
    run.dead_letters.append(DeadLetterMessage(message._replace(topic="dead-letters", offset=5_000), wrong))
    assert any(each.expected == "no dead letter, since the message is valid" for each in run.findings())


@pytest.mark.parametrize("redriven", [0, 1, 2])
def test_each_message_that_was_sent_back_accounts_for_one_dead_letter(run: Recording, redriven: int) -> None:
    """Two messages with the same bytes have dead letters that a mended definition would not make."""
    value, place = encode(interaction(9_999, 600)), len(run.interactions) - 1
    following = run.interactions[place]
    copies = [following._replace(offset=following.offset - n, value=value, headers=[]) for n in (2, 1)]
    for copy in copies:
        wrong = run.dead_letters[0].dead_letter._replace(
            fault="invalid", topic="interactions", partition=0, offset=copy.offset
        )
        source = copy._replace(topic="dead-letters", offset=5_000 + copy.offset)
        run.dead_letters.append(DeadLetterMessage(source, wrong))
    header = [(REDRIVEN_HEADER, b"dead-letters/0/1")]
    sent = [following._replace(value=value, headers=header) for _ in range(redriven)]
    run.interactions[place - 2 :] = [*copies, *sent]
    found = [each for each in run.findings() if each.expected == "no dead letter, since the message is valid"]
    assert len(found) == 2 - redriven


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


@pytest.mark.parametrize("counter", sorted({*eventful_run().state.counters} - {*UNRECORDED}))
def test_a_counter_that_is_off_is_named(run: Recording, counter: str) -> None:
    right = run.state.counters[counter]
    run.change_state(counters={**run.state.counters, counter: right + 1})
    [found] = [each for each in run.findings() if each.topic == "checkpoints"]
    assert found.offset == STATE_OFFSET
    assert (found.expected, found.found) == (
        f"counter {counter} {right}, by the topics",
        f"counter {counter} {right + 1}",
    )


def test_a_waiting_label_that_has_a_dead_letter_as_well_is_named(run: Recording) -> None:
    [saved] = run.state.waiting
    message = next(each for each in run.labels if each.offset == saved.offset)
    dead_letter = run.dead_letters[0].dead_letter._replace(
        fault="orphan", topic=saved.topic, offset=saved.offset
    )
    run.dead_letters.append(
        DeadLetterMessage(message._replace(topic="dead-letters", offset=5_000), dead_letter)
    )
    assert run.first().offset == 5_000


def test_a_waiting_label_that_is_another_is_named(run: Recording) -> None:
    [saved] = run.state.waiting
    run.change_state(waiting=[msgspec.structs.replace(saved, key=b"other")])
    assert run.first().found == "other bytes"


def test_inputs_that_retention_has_deleted_are_not_missed(run: Recording) -> None:
    log_start_offsets = {"interactions": run.interactions[60].offset, "watch-labels": run.labels[60].offset}
    del run.interactions[:60], run.labels[:60]
    run.log_start_offsets = log_start_offsets
    assert run.findings() == []


def test_outputs_that_retention_has_deleted_are_not_missed_from_a_snapshot(run: Recording) -> None:
    del run.predictions[:10], run.outcomes[:5]
    run.log_start_offsets = {"predictions": run.predictions[0].offset, "outcomes": run.outcomes[0].offset}
    assert run.audit(from_snapshot=True).findings == []
    assert "without which nothing after it can be derived" in run.first().expected


def test_a_topic_that_retention_has_emptied_is_not_missed(run: Recording) -> None:
    run.predictions.clear()
    run.log_start_offsets = {"predictions": 10**4}
    assert run.audit(from_snapshot=True).findings == []
    run.log_start_offsets = {}
    assert run.audit(from_snapshot=True).findings[0].topic == "predictions"


def cut(run: Recording, number: int, **original: object) -> None:
    """Cut a dead letter to two bytes of its value."""
    source, dead_letter = run.dead_letters[number]
    known = Original.of(source.value)._replace(**original)  # type: ignore[arg-type]  # the values are of the fields' types
    part = source._replace(value=None if source.value is None else source.value[:2])
    run.dead_letters[number] = DeadLetterMessage(part, dead_letter._replace(original=known))


def test_dead_letters_that_are_cut_belong_to_their_messages(run: Recording) -> None:
    """Also those of labels, whose events are then known from the inputs alone."""
    assert {"orphan", "mismatched"} <= {each.dead_letter.fault for each in run.dead_letters}
    for number in range(len(run.dead_letters)):
        cut(run, number)
    assert run.findings() == []


@pytest.mark.parametrize("original", [{"length": 10**6}, {"sha256": "0" * 64}])
def test_a_dead_letter_that_is_cut_and_names_another_message_is_named(
    run: Recording, original: dict[str, object]
) -> None:
    cut(run, 0, **original)
    assert (run.first().topic, run.first().offset) == ("dead-letters", 0)


@pytest.mark.parametrize("fault", ["orphan", "mismatched"])
def test_a_repeated_label_is_known_though_the_dead_letter_of_the_first_is_cut(
    run: Recording, fault: str
) -> None:
    number, letter = next(
        (number, each.dead_letter)
        for number, each in enumerate(run.dead_letters)
        if each.dead_letter.fault == fault
    )
    cut(run, number)
    at = next(at for at, each in enumerate(run.labels) if each.offset == letter.offset)
    run.labels.insert(at + 1, run.labels[at]._replace(offset=run.labels[at].offset + 1))
    assert [each for each in run.findings() if each.topic == "watch-labels"] == []
