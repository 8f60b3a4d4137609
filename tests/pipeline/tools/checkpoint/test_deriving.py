"""A state that is derived from the topics is the one that the worker had written."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import StateError
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.shadow import ChallengerSettings
from pipeline.model.snapshot import pack
from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.names import Fault
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome, Prediction
from pipeline.recovery.libraries import (
    ARITHMETIC_HERE,
    Derivable,
    arithmetic_of,
    derivable_from,
    libraries_here,
    note_libraries,
)
from pipeline.task.input_clock import JUDGES
from pipeline.task.record_queue import Position
from pipeline.task.state import Libraries, LibraryEpoch, SettingsEpoch, State, TableState
from pipeline.tools.audit.dispositions import ANY_TIME
from pipeline.tools.audit.state_check import UNRECORDED
from pipeline.tools.checkpoint.deriving import PartitionLogs, PartitionToDerive, derive_state
from tests.support.builders import (
    CHALLENGERS,
    WEIGHTED,
    Inputs,
    inputs,
    interaction,
    join_settings,
    model_under,
    with_weights,
)
from tests.support.consumer import REST, Step, steps
from tests.support.entries import entries
from tests.support.examples import examples
from tests.support.recording import Recording, changed, eventful, eventful_run, record
from tests.support.slates import SLATES, label, slate, slates
from tests.support.slates import inputs as inputs_of_slates
from tests.support.streams import policies, streams


def logs_of(run: Recording) -> PartitionLogs:
    types = OutputTypes.of(run.stream)
    outcomes = types.outcomes
    return PartitionLogs(
        [(each.offset, one) for each in run.predictions for one in types.predictions_of(each.value or b"")],
        [(each.offset, outcomes.decode(each.value or b"")) for each in run.outcomes],
        [message.dead_letter for message in run.dead_letters],
        run.interactions,
        run.labels,
        lambda _: (),
        lambda name, offset: TableState(offset, 0, name),
    )


def derived(
    run: Recording,
    last: State | None = None,
    offsets: tuple[int, int] | None = None,
    width: str | None = None,
) -> State:
    """Derive the state of a run, without its state record, under settings that may differ."""
    under = run.state.settings | ({} if width is None else {"learner.width": width})
    model = model_under(under, run.stream)
    target = PartitionToDerive(
        partition=0,
        topics=("interactions", "watch-labels"),
        offsets=offsets or (run.state.interactions.offset, run.state.labels.offset),
        settings=under,
        join=join_settings(),
        decoders=InputDecoders.of(run.stream),
        shares=False,
    )
    state, _ = derive_state(target, logs_of(run), model, last, lambda _: None)
    again = model_under(under, run.stream)
    for _, outcome in logs_of(run).outcomes:
        again.learn_one(outcome)
    assert pack(model) == pack(again)
    return state


def comparable(state: State) -> dict[str, object]:
    """Return the fields that are always the same.

    Lower bounds of offsets may differ, two counters and the libraries are not derived, and a repeated label
    of an event whose first label has a dead letter may wait.
    """
    left_out = {"snapshot", "previous", "prediction_offset", "outcome_offset", "waiting", "libraries"}
    fields = {name: value for name, value in msgspec.structs.asdict(state).items() if name not in left_out}
    left_out_counters = {*UNRECORDED, "duplicate_labels"}
    counters = {name: count for name, count in state.counters.items() if name not in left_out_counters}
    waiting_or_repeated = len(state.waiting) + state.counters["duplicate_labels"]
    return fields | {"counters": counters, "waiting or repeated": waiting_or_repeated}


def assert_waits(state: State, run: Recording) -> None:
    """Check that each label that waited in the run waits in its derived state.

    If a label of the same event is an orphan, no output tells which of the others waited, and which were its
    duplicates.
    """
    headers = [message.dead_letter for message in run.dead_letters]
    orphans = {each.offset for each in headers if (each.topic, each.fault) == ("watch-labels", Fault.ORPHAN)}
    unclear = {_event_of(message.value) for message in run.labels if message.offset in orphans}
    waiting = {_event_of(saved.value): saved for saved in state.waiting}
    for saved in run.state.waiting:
        event_id = _event_of(saved.value)
        assert waiting[event_id] == saved or event_id in unclear


def _event_of(value: bytes | None) -> object:
    try:
        return msgspec.json.decode(value or b"", type=WatchLabel).event_id
    except msgspec.DecodeError:
        return None


@examples(100)
@given(
    given_inputs=streams(),
    drawn=st.lists(st.tuples(steps, st.booleans()), min_size=1, max_size=12),
    policy=policies,
    challengers=st.sampled_from([{}, CHALLENGERS]),
    stream=st.sampled_from([KUAIREC, WEIGHTED]),
)
def test_the_state_of_any_run_is_derived_and_audits_clean(
    given_inputs: Inputs,
    drawn: list[tuple[Step, bool]],
    policy: LabelPolicy | None,
    challengers: Mapping[str, ChallengerSettings],
    stream: Stream,
) -> None:
    given_inputs = with_weights(given_inputs) if stream == WEIGHTED else given_inputs
    run = record(given_inputs, drawn, challengers=challengers, policy=policy, stream=stream)
    state = derived(run)
    assert comparable(state) == comparable(run.state)
    assert_waits(state, run)
    run.state, run.snapshot = state, None
    assert run.findings() == []


@pytest.mark.parametrize(
    ("times", "position"),
    [
        ([5_000, 0, 1], {"clock": 5_000, "behind": 2}),
        ([5_000, 4_000, 0, 0, 5_100], {"clock": 5_100, "behind": 1}),
        ([5_000, 99_000, 0, 0, 5_001], {"clock": 5_001, "behind": 1}),
        ([5_000, 99_000, 99_001, 99_002, 60_000], {"clock": 99_002, "behind": 1}),
        ([5_000, *[0] * JUDGES, 1], {"clock": 1}),
    ],
)
def test_the_clocks_of_inputs_are_derived(times: list[int], position: dict[str, int]) -> None:
    given_inputs = inputs([interaction(n, at) for n, at in enumerate(times)], [])
    run = record(given_inputs, [(REST, False)])
    assert run.state.interactions == Position(2 * len(times) - 1, **position)
    assert comparable(derived(run)) == comparable(run.state)
    assert run.findings() == []


def test_so_is_that_of_a_jump_that_was_refused_last() -> None:
    given_inputs = inputs([interaction(n, at) for n, at in enumerate([5_000, 99_000, 5_001])], [])
    run = record(given_inputs, [(Step(3, 0, end_seen=True, limit=2), False)])
    assert run.state.interactions == Position(3, clock=5_000, ahead=99_000)
    assert comparable(derived(run)) == comparable(run.state)


def test_a_label_that_comes_out_of_order_when_its_event_is_forgotten_waits() -> None:
    played = KuaiRecInteraction(1, 0, 0, 909, 10_000)
    labels = [WatchLabel(event, 0, 0, time, 0.0, 0.0) for event, time in ((1, 909), (0, 1010), (1, 1008))]
    sources = [
        RawMessage("watch-labels", 0, offset, b"0", encode(each)) for offset, each in enumerate(labels)
    ]
    given_inputs = Inputs(
        entries([RawMessage("interactions", 0, 0, b"0", encode(played))], INTERACTION_DECODER, ANY_TIME),
        entries(sources, LABEL_DECODER, ANY_TIME),
    )
    run = record(given_inputs, [(Step(1, 3, end_seen=True, limit=10), False)])
    assert [saved.offset for saved in run.state.waiting] == [1, 2]
    assert derived(run).waiting == run.state.waiting


def test_so_is_that_of_a_run_with_every_disposition() -> None:
    run = eventful_run()
    run.change_state(libraries=Libraries(dict(libraries_here())))
    state = derived(run, last=run.state)
    assert run.state.waiting
    assert state.waiting == run.state.waiting
    assert state.libraries == run.state.libraries
    assert state.counters == run.state.counters
    assert comparable(state) == comparable(run.state)


def test_the_epochs_of_the_last_usable_record_are_kept() -> None:
    run = eventful_run()
    ended = SettingsEpoch({"learner.budget": "9"}, predictions=0, outcomes=0)
    last = msgspec.structs.replace(run.state, earlier=[ended])
    assert derived(run, last=last).earlier == [ended]


def of_another_arithmetic(run: Recording) -> None:
    """Change the bits of all predictions, also as their outcomes repeat them."""
    for number in range(len(run.predictions)):
        prediction = msgspec.json.decode(run.predictions[number].value or b"", type=Prediction)
        run.change_prediction(number, score=float(np.nextafter(prediction.score, np.inf)))
    for number in range(len(run.outcomes)):
        outcome = msgspec.json.decode(run.outcomes[number].value or b"", type=Outcome)
        run.change_outcome(number, score=float(np.nextafter(outcome.score, np.inf)))


@pytest.mark.parametrize(
    "noted",
    [
        UNSET,
        Libraries({"numpy": "2.4.6"}),
        Libraries(dict(libraries_here()), [LibraryEpoch({"numpy": "2.4.6"}, 5, 3)]),
    ],
    ids=["none", "another", "another before"],
)
def test_predictions_of_another_arithmetic_are_not_compared_and_end_an_epoch(
    noted: Libraries | UnsetType,
) -> None:
    run = eventful_run()
    of_another_arithmetic(run)
    with pytest.raises(StateError, match="does not follow from the outcomes before it"):
        derived(run)
    state = derived(run, last=msgspec.structs.replace(run.state, libraries=noted))
    assert comparable(state) == comparable(run.state)
    written = note_libraries(state)
    assert derivable_from(written) == Derivable(state.predictions, state.outcomes)
    assert arithmetic_of(written) == ARITHMETIC_HERE


def test_without_a_usable_record_the_libraries_are_those_that_have_derived_all() -> None:
    state = derived(eventful_run())
    assert derivable_from(note_libraries(state)) == Derivable(0, 0)


def test_other_settings_are_refused() -> None:
    run = eventful_run()
    with pytest.raises(StateError, match="does not follow from the outcomes before it under these settings"):
        derived(run, width="3.0")
    with pytest.raises(StateError, match="has other settings than this configuration"):
        derived(run, last=run.state, width="3.0")


def test_a_missing_record_is_named() -> None:
    run = eventful_run()
    del run.predictions[5]
    with pytest.raises(StateError, match="prediction 5 of partition 0 is missing"):
        derived(run)
    run = eventful_run()
    del run.outcomes[0]
    with pytest.raises(StateError, match="outcome 0 of partition 0 is missing"):
        derived(run)


def test_offsets_that_do_not_belong_to_the_outputs_are_refused() -> None:
    run = eventful_run()
    interactions, labels = run.state.interactions.offset, run.state.labels.offset
    with pytest.raises(StateError, match="the group's offsets were set back"):
        derived(run, offsets=(interactions - 20, labels))
    del run.predictions[-1]
    with pytest.raises(StateError, match="there is no prediction of its event, and no dead letter"):
        derived(run)


def test_a_label_that_is_not_accounted_for_is_named() -> None:
    run = eventful_run()
    del run.outcomes[-1]
    with pytest.raises(StateError, match=r"watch-labels, partition 0, offset \d+: .* still waits for it"):
        derived(run)


def test_a_dead_letter_that_is_missing_is_named() -> None:
    run = eventful_run()
    run.dead_letters = [each for each in run.dead_letters if each.dead_letter.fault != "undecodable"]
    with pytest.raises(StateError, match=r"it cannot be used .* but has no dead letter"):
        derived(run)


def test_a_label_of_another_weight_is_not_accounted_for() -> None:
    run = record(with_weights(eventful()), [(REST, False)], join_settings(), stream=WEIGHTED)
    number = next(n for n, each in enumerate(run.outcomes) if b'"labelled"' in (each.value or b""))
    run.change_outcome(number, weight=17.0)
    with pytest.raises(StateError, match=r"does not follow|still waits for it|no dead letter"):
        derived(run)


def test_a_changed_score_is_found() -> None:
    run = eventful_run()
    run.outcomes[40] = changed(run.outcomes[40], Outcome, score=0.125)
    with pytest.raises(StateError, match=r"prediction 4\d of partition 0 does not follow"):
        derived(run)


@examples(100)
@given(
    given_inputs=slates(),
    drawn=st.lists(st.tuples(steps, st.booleans()), min_size=1, max_size=12),
    challengers=st.sampled_from([{}, CHALLENGERS]),
    policy=policies,
)
def test_the_state_of_any_run_of_slates_is_derived_and_audits_clean(
    given_inputs: Inputs,
    drawn: list[tuple[Step, bool]],
    challengers: Mapping[str, ChallengerSettings],
    policy: LabelPolicy | None,
) -> None:
    run = record(given_inputs, drawn, join_settings(), challengers, policy, stream=SLATES)
    state = derived(run)
    assert comparable(state) == comparable(run.state)
    run.state, run.snapshot = state, None
    assert run.findings() == []


def run_of_slates() -> Recording:
    """Slates of three videos: the second's label comes soon, the third's before the slate or not at all."""
    shown = [slate(number, 20 * number, [number % 5, 10, 20 + number % 3]) for number in range(40)]
    shown.insert(4, slate(3, 70, [3, 11]))  # a duplicate
    said = [label(number, 20 * number + 8, 10) for number in range(40)]
    said += [label(50, 790, 3), label(38, 790, 77)]  # of a slate that has not come, and of a video not shown
    return record(inputs_of_slates(shown, said), [(REST, False)], join_settings(), stream=SLATES)


def test_labels_of_items_wait_in_the_derived_state() -> None:
    run = run_of_slates()
    state = derived(run)
    assert [saved.offset for saved in run.state.waiting] == [saved.offset for saved in state.waiting]
    assert len(state.waiting) == 2
    assert state.counters["items"] == run.state.counters["items"] == 120
    assert 0 < state.pending < 120
    assert comparable(state) == comparable(run.state)


def test_a_slate_that_is_missing_is_named() -> None:
    run = run_of_slates()
    del run.predictions[5]
    with pytest.raises(StateError, match="prediction 5 of partition 0 is missing"):
        derived(run)
    run = run_of_slates()
    interactions, labels = run.state.interactions.offset, run.state.labels.offset
    with pytest.raises(StateError, match="the group's offsets were set back"):
        derived(run, offsets=(interactions - 20, labels))


def test_an_item_s_label_that_is_not_accounted_for_is_named() -> None:
    run = run_of_slates()
    labelled = [n for n, each in enumerate(run.outcomes) if b'"labelled"' in (each.value or b"")]
    del run.outcomes[labelled[-1] :]
    with pytest.raises(StateError, match=r"watch-labels, partition 0, offset \d+: .* still waits for it"):
        derived(run)
