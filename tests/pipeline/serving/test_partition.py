"""A partition as a follower holds it, fed by what a task has written, in pieces of any size."""

from __future__ import annotations

import dataclasses
import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StateError
from pipeline.log.outputs import OutcomeChunk
from pipeline.model.settings_text import challengers_text, learner_text
from pipeline.model.shadow import ChallengerSettings
from pipeline.model.snapshot import pack, unpack
from pipeline.records.outcome_decoder import OutcomeDecoder
from pipeline.records.output_types import KUAIREC_TYPES
from pipeline.records.outputs import Outcome
from pipeline.recovery.libraries import BEFORE_NUMBERS, arithmetic_of, note_libraries
from pipeline.serving import partition as partitions
from pipeline.serving.answers import PartitionNotReadyError, Scores
from pipeline.serving.partition import FollowedPartition, LostOutcomesError, Restored
from pipeline.serving.served_model import ServedModel
from pipeline.serving.tables import NoTables
from pipeline.task.state import State
from tests.support.builders import CHALLENGERS, interaction, new_model, new_task, small_learner
from tests.support.consumer import REST, Delivery, Step, steps
from tests.support.examples import examples
from tests.support.output_log import OutputLog
from tests.support.recording import eventful
from tests.support.streams import streams

CANDIDATES = [interaction(0, 9_000, user, video) for user in (1, 2, 99) for video in (1, 3)]


class Written(NamedTuple):
    """What a task has written: outcomes with their offsets, and a state record a batch."""

    outcomes: list[tuple[int, bytes]]
    states: list[State]
    log: OutputLog

    def chunk(self, begin: int, end: int) -> OutcomeChunk:
        """Some of the outcomes, by their place in the topic."""
        part = self.outcomes[begin:end]
        outcomes = OutcomeDecoder(KUAIREC_TYPES).decode([value for _, value in part])
        return OutcomeChunk(outcomes, [offset for offset, _ in part])


def written(
    given_inputs: object, drawn: Sequence[tuple[Step, bool]], challengers: Mapping[str, ChallengerSettings]
) -> Written:
    model = new_model(challengers=challengers)
    task = new_task(model=model)
    log = OutputLog(settings=learner_text(model.learner.settings) | challengers_text(challengers))
    delivery, states = Delivery(task, given_inputs), []  # type: ignore[arg-type]  # drawn by the test
    for step, snapshot in (*drawn, (REST, False)):
        delivery.deliver(step)
        log.commit(task, task.advance(step.limit), snapshot and task.model.outcomes_learned > 0)
        assert log.state is not None
        states.append(log.state)
    return Written(log.outcomes, states, log)


def restored(wrote: Written, state: State | None) -> tuple[Restored, int]:
    """The model of a state record's snapshot, and the place of the first outcome that it has to learn."""
    challengers = CHALLENGERS if "challengers.small.learner" in wrote.log.settings else MappingProxyType({})
    model = new_model(challengers=challengers)
    begin = 0
    if state is not None and state.snapshot is not None:
        unpack(wrote.log.snapshots[state.snapshot.chunks[0]], model)
        offsets = [offset for offset, _ in wrote.outcomes]
        begin = bisect_left(offsets, state.snapshot.outcome_offset)
    settings = wrote.log.settings
    return Restored(ServedModel(0, model, settings, 0, arithmetic=BEFORE_NUMBERS), state, NoTables()), begin


def score(partition: FollowedPartition) -> Scores | None:
    try:
        with partition.lend_model() as model:
            return model.score_candidates(CANDIDATES)
    except PartitionNotReadyError:
        return None


@examples(60)
@given(
    streams(),
    st.lists(st.tuples(steps, st.booleans()), min_size=1, max_size=12),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_every_answer_is_that_of_a_model_which_has_learned_so_many_outcomes(
    given_inputs: object, drawn: list[tuple[Step, bool]], with_challengers: bool, seed: int
) -> None:
    """Outcomes and state records come in any pieces; the model never learns beyond a state record."""
    chance = random.Random(seed)
    challengers = CHALLENGERS if with_challengers else MappingProxyType({})
    wrote = written(given_inputs, drawn, challengers)
    first = chance.randrange(len(wrote.states) + 1)
    begin_with = None if first == 0 else wrote.states[first - 1]
    found, place = restored(wrote, begin_with)
    partition = FollowedPartition(0)
    assert score(partition) is None
    partition.restored(found, wrote.outcomes[place][0] if place < len(wrote.outcomes) else 0)
    expected = new_model(challengers=challengers)
    answers: dict[int, list[float]] = {}
    records = [msgspec.json.decode(value, type=Outcome) for _, value in wrote.outcomes]
    answers[0] = [expected.predict(each).score for each in CANDIDATES]
    for outcome in records:
        expected.learn_one(outcome)
        answers[expected.outcomes_learned] = [expected.predict(each).score for each in CANDIDATES]
    next_state, noted = first, begin_with
    while True:
        if chance.random() < 0.4 and place < len(wrote.outcomes):
            count = chance.randrange(1, 6)
            partition.note_outcomes(wrote.chunk(place, place + count))
            place += count
        elif chance.random() < 0.5 and next_state < len(wrote.states):
            noted = wrote.states[next_state]
            partition.note_state(noted)
            next_state += 1
        elif (
            partition.advance() is False and place >= len(wrote.outcomes) and next_state >= len(wrote.states)
        ):
            break
        answer = score(partition)
        if answer is not None:
            assert answer.scores == answers[answer.model_version]
            assert answer.model_version <= (noted.outcomes if noted else 0)
            reached = [each for each in wrote.states[:next_state] if each.outcomes <= answer.model_version]
            assert answer.as_of in {-1, *(each.stream_time for each in reached)}
            assert (answer.as_of == -1) <= (begin_with is None or begin_with.stream_time == -1)
    last = score(partition)
    assert last is not None
    assert last.model_version == len(wrote.outcomes)
    assert last.as_of == wrote.states[-1].stream_time
    partition.note_committed_end(5.0, (wrote.outcomes[-1][0] + 1) if wrote.outcomes else 0)
    partition.advance()
    assert partition.figures().current_at == 5.0
    assert partition.figures().lag == 0
    served = partition._served
    assert served is not None
    assert pack(served._model) == pack(expected)


def eventful_log() -> Written:
    drawn = [(Step(9, 9, False, 15), number == 8) for number in range(24)]
    return written(eventful(), drawn, MappingProxyType({}))


@pytest.fixture
def wrote() -> Written:
    return eventful_log()


def followed(wrote: Written, state: int) -> tuple[FollowedPartition, int]:
    """A partition that has learned what a state record counts, and the place of the next outcome."""
    found, place = restored(wrote, wrote.states[state])
    partition = FollowedPartition(0)
    partition.restored(found, 0)
    end = wrote.states[state].outcomes
    partition.note_outcomes(wrote.chunk(place, end))
    while partition.advance():
        pass
    assert partition.figures().model_version == end
    return partition, end


def test_outcomes_that_are_gone_are_named(wrote: Written) -> None:
    partition, end = followed(wrote, 12)
    partition.note_state(wrote.states[-1])
    partition.note_outcomes(wrote.chunk(end + 3, end + 9))
    with pytest.raises(LostOutcomesError, match=f"outcomes {end} to {end + 2} of partition 0 are not in"):
        partition.advance()
    assert partition.following


def test_a_topic_that_ends_before_what_a_state_record_counts_has_lost_outcomes(
    wrote: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition, end = followed(wrote, 12)
    partition.note_state(wrote.states[-1])
    assert partition.advance() is False
    partition.note_end(wrote.outcomes[end - 1][0] + 2)
    assert partition.advance() is False
    monkeypatch.setattr(partitions, "PATIENCE", -1.0)
    with pytest.raises(LostOutcomesError, match=f"outcomes {end} to"):
        partition.advance()


def test_outcomes_that_contradict_the_model_are_refused(wrote: Written) -> None:
    partition, end = followed(wrote, 12)
    chunk = wrote.chunk(end, end + 3)
    twice = dataclasses.replace(chunk.outcomes, sequences=[end, end, end + 2])
    partition.note_state(wrote.states[-1])
    partition.note_outcomes(chunk._replace(outcomes=twice))
    with pytest.raises(StateError, match=f"the outcomes from {end} on cannot be learned"):
        partition.advance()


def test_a_failed_partition_says_why_until_it_is_restored(wrote: Written) -> None:
    partition, end = followed(wrote, 12)
    partition.fail("its log is gone")
    not_ready = pytest.raises(PartitionNotReadyError, match="partition 0 is not ready: its log is gone")
    with not_ready as raised, partition.lend_model():
        pass
    assert raised.value.retry_after == partitions.RESTORE_PAUSE
    figures = partition.figures()
    assert (figures.state, figures.reason) == ("failed", "its log is gone")
    assert partition.wants_restoration
    assert partition.advance() is False
    found, place = restored(wrote, wrote.states[-1])
    partition.restored(found, 0)
    assert partition.figures().state == "failed"
    partition.note_outcomes(wrote.chunk(place, len(wrote.outcomes)))
    while partition.advance():
        pass
    figures = partition.figures()
    assert (figures.state, figures.reason) == ("following", None)
    assert figures.model_version == len(wrote.outcomes) > end


def test_a_model_answers_where_its_epoch_ended_until_that_of_other_settings_is_restored(
    wrote: Written,
) -> None:
    partition, end = followed(wrote, 24)
    learner = small_learner(budget=6)
    task = wrote.log.install(learner)
    assert wrote.log.state is not None
    began = wrote.log.state
    partition.note_state(began)
    assert partition.advance() is False
    assert (partition.wants_restoration, partition.restore_from) == (True, began)
    answer = score(partition)
    assert answer is not None
    assert (answer.epoch, answer.model_version) == (0, end)
    later = msgspec.structs.replace(began, stream_time=began.stream_time + 7)
    partition.note_state(later)
    model = ServedModel(0, task.model, began.settings, 1, arithmetic=BEFORE_NUMBERS)
    partition.restored(Restored(model, began, NoTables()), 0)
    while partition.advance():
        pass
    answer = score(partition)
    assert answer is not None
    assert (answer.epoch, answer.model_version, answer.as_of) == (1, end, later.stream_time)
    assert answer.scores == [task.model.predict(each).score for each in CANDIDATES]


def test_where_another_arithmetic_begins_the_model_is_restored_as_the_worker_has_restored_it(
    wrote: Written,
) -> None:
    partition, end = followed(wrote, 12)
    began = note_libraries(wrote.states[13])
    partition.note_state(began)
    partition.note_outcomes(wrote.chunk(end, len(wrote.outcomes)))
    assert partition.advance() is False
    assert (partition.wants_restoration, partition.restore_from) == (True, began)
    answer = score(partition)
    assert answer is not None
    assert (answer.arithmetic, answer.model_version) == (BEFORE_NUMBERS, end)
    partition.note_state(msgspec.structs.replace(began, stream_time=began.stream_time + 7))
    model = restored(wrote, began)[0].model
    model.arithmetic = arithmetic_of(began)
    partition.restored(Restored(model, began, NoTables()), wrote.outcomes[model.outcomes_learned][0])
    partition.note_outcomes(wrote.chunk(model.outcomes_learned, len(wrote.outcomes)))
    while partition.advance():
        pass
    answer = score(partition)
    assert answer is not None
    assert (answer.arithmetic, answer.model_version) == (arithmetic_of(began), began.outcomes)
    assert not partition.wants_restoration


def test_a_group_that_has_gone_back_is_restored_anew(wrote: Written) -> None:
    partition, end = followed(wrote, 12)
    partition.note_state(wrote.states[3])
    assert partition.advance() is False
    assert (partition.wants_restoration, partition.restore_from) == (True, None)
    before = wrote.states[3].outcomes
    assert partition.reason == f"the group has gone back from {end} outcomes to {before}"
    assert score(partition) is not None


def test_reading_pauses_while_much_waits(wrote: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    partition, end = followed(wrote, 12)
    monkeypatch.setattr(partitions, "MAX_QUEUED", 4)
    partition.note_outcomes(wrote.chunk(end, end + 6))
    assert partition.full
    assert partition.figures().lag == 6
    for state in wrote.states[13:]:
        partition.note_state(state)
    while partition.advance():
        pass
    partition.note_outcomes(wrote.chunk(end + 6, len(wrote.outcomes)))
    while partition.advance():
        pass
    assert partition.has_room
    assert partition.figures().lag == 0
