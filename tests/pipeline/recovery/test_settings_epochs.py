"""A partition goes on under other settings that were installed, and all records can still be derived."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import ForksSettings
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.snapshot import pack
from pipeline.records.outputs import Outcome, Prediction
from pipeline.task.task import Task
from tests.pipeline.tools.audit.test_audit import raised
from tests.support.builders import Inputs, new_task, small_learner
from tests.support.consumer import REST, Delivery, Step, steps
from tests.support.examples import examples
from tests.support.output_log import OutputLog
from tests.support.recording import Recording, eventful
from tests.support.streams import policies, streams

WIDER = small_learner(budget=6, rank=3, landmarks=3)
QUICK = small_learner(memory=20.0, width=0.7)
HINGE = small_learner(preset="paper", width=3.0)
LEARNERS = [QUICK, WIDER, HINGE]


def run_in_epochs(
    given_inputs: Inputs,
    epochs: list[list[tuple[Step, bool]]],
    learners: Sequence[ForksSettings] = LEARNERS,
    policy: LabelPolicy | None = None,
) -> tuple[Task, OutputLog]:
    """Batch by batch, each with a snapshot or without; each epoch has other settings than the one before."""
    task, log = new_task(policy=policy), OutputLog(policy=policy)
    for number, batches in enumerate(epochs):
        if number:
            task = log.install(learners[(number - 1) % len(learners)])
        positions = (task.interactions.position.offset, task.labels.position.offset)
        delivery = Delivery(task, given_inputs.from_positions(*positions))
        for step, snapshot in batches:
            delivery.deliver(step)
            log.commit(task, task.advance(step.limit), snapshot)
    return task, log


batches = st.lists(st.tuples(steps, st.booleans()), min_size=1, max_size=6)


@examples(40)
@given(given_inputs=streams(), epochs=st.lists(batches, min_size=2, max_size=4), policy=policies)
def test_every_run_in_settings_epochs_is_clean(
    given_inputs: Inputs, epochs: list[list[tuple[Step, bool]]], policy: LabelPolicy | None
) -> None:
    _, log = run_in_epochs(given_inputs, [*epochs, [(REST, False)]], policy=policy)
    run = Recording.of(given_inputs, log)
    assert len(run.state.earlier) == len(epochs)
    assert run.findings() == []
    assert run.audit(from_snapshot=True).findings == []


@examples(40)
@given(given_inputs=streams(), epochs=st.lists(batches, min_size=2, max_size=3))
def test_a_restart_after_an_install_is_as_good_as_ever_also_where_snapshots_are_damaged(
    given_inputs: Inputs, epochs: list[list[tuple[Step, bool]]]
) -> None:
    task, log = run_in_epochs(given_inputs, epochs)
    again = log.restore()
    assert again.earlier == task.earlier
    assert pack(again.model) == pack(task.model)
    log.snapshots[-1] = b"damaged"
    assert pack(log.restore().model) == pack(task.model)
    log.snapshots = [b"damaged"] * len(log.snapshots)
    assert pack(log.restore().model) == pack(task.model)


def test_a_damaged_snapshot_is_not_replaced_by_one_of_the_epoch_before() -> None:
    """Its arrays would fit: the settings differ in no size."""
    _, log = run_in_epochs(eventful(), [[(Step(9, 9, False, 15), True)] * 8])
    installed = log.install(QUICK)
    log.snapshots[-1] = b"damaged"
    assert pack(log.restore().model) == pack(installed.model)


@pytest.fixture(scope="module")
def recorded() -> Recording:
    """Three epochs over a stream with every disposition; predictions of each wait when the next begins."""
    steady = [(Step(9, 9, False, 15), False)] * 8
    task, log = run_in_epochs(eventful(), [steady, steady, [*steady, (REST, False)]])
    assert task.model.learner.settings == WIDER
    return Recording.of(eventful(), log)


@pytest.fixture
def run(recorded: Recording) -> Recording:
    """A copy that a test may change."""
    fresh = copy(recorded)
    fresh.predictions, fresh.outcomes = list(recorded.predictions), list(recorded.outcomes)
    return fresh


def test_every_prediction_of_every_epoch_is_derived(run: Recording) -> None:
    result = run.audit()
    assert result.findings == []
    assert result.checked["predictions derived again"] == len(run.predictions)
    assert result.checked["outcomes learned"] == len(run.outcomes)
    assert result.checked["snapshots compared with the model"] == 1
    first, second = run.state.earlier
    assert 0 < first.outcomes < second.outcomes < run.state.outcomes
    assert 0 < first.predictions < second.predictions < run.state.predictions


def test_from_the_installed_snapshot_only_the_present_epoch_is_derived(run: Recording) -> None:
    result = run.audit(from_snapshot=True)
    assert result.findings == []
    assert (
        result.checked["predictions derived again"]
        == run.state.predictions - run.state.earlier[-1].predictions
    )
    assert result.checked["outcomes compared with their prediction"] == len(run.outcomes)


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_the_last_bit_of_a_score_is_named_in_whichever_epoch(run: Recording, epoch: int) -> None:
    ends = [each.predictions for each in run.state.earlier] + [run.state.predictions]
    number = ends[epoch] - 1
    score = msgspec.json.decode(run.predictions[number].value or b"", type=Prediction).score
    run.change_prediction(number, score=raised(score))
    found = run.first()
    assert (found.topic, found.offset) == ("predictions", run.predictions[number].offset)
    assert (found.expected, found.found) == (f"score {score!r}", f"score {raised(score)!r}")


@pytest.mark.parametrize("changes", [{"predictions": 1}, {"predictions": -1}])
def test_a_border_that_was_moved_by_one_is_noticed(run: Recording, changes: dict[str, int]) -> None:
    first, *others = run.state.earlier
    moved = {name: getattr(first, name) + by for name, by in changes.items()}
    run.change_state(earlier=[msgspec.structs.replace(first, **moved), *others])
    assert run.first().topic == "predictions"


def test_without_its_epochs_a_run_is_not_clean(run: Recording) -> None:
    run.change_state(earlier=[])
    assert run.first().topic == "predictions"


def test_a_loss_is_that_of_the_model_that_learned() -> None:
    """A prediction under logistic loss may have its outcome when hinge loss is in force."""
    steady = [(Step(9, 9, False, 15), False)] * 6
    _, log = run_in_epochs(eventful(), [steady, [(REST, False)]], [HINGE])
    run = Recording.of(eventful(), log)
    assert run.findings() == []
    [epoch] = run.state.earlier
    since = [msgspec.json.decode(value, type=Outcome) for _, value in log.outcomes[epoch.outcomes :]]
    crossing = [outcome for outcome in since if outcome.prediction_sequence < epoch.predictions]
    assert crossing
    for outcome in crossing:
        assert outcome.probability is not None
        assert outcome.loss == max(0.0, 1.0 - (outcome.score if outcome.label else -outcome.score))
