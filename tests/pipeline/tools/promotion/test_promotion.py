"""A promoted challenger predicts as before, and all written records can still be derived."""

from __future__ import annotations

import tomllib
from copy import copy
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from forks import ForksSettings
from pipeline.config.settings import Config, Labels
from pipeline.errors import ConfigError, StateError
from pipeline.model.factory import ModelFactory
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.settings_text import challengers_text, learner_text
from pipeline.model.snapshot import pack
from pipeline.records.outputs import Outcome, Prediction
from pipeline.task.task import Task
from pipeline.tools.checkpoint import CommittedState, Group
from pipeline.tools.promotion import Promotion, swapped
from pipeline.tools.promotion.roles import swap, toml_lines
from tests.pipeline.tools.audit.test_audit import outcome_of, prediction_of, raised
from tests.support.builders import CHALLENGERS, LEARNER, model_under, new_model, new_task, run
from tests.support.consumer import REST, Delivery, Step
from tests.support.output_log import OutputLog
from tests.support.recording import Recording, eventful
from tests.support.streams import Impatient

WIDER = cast(ForksSettings, CHALLENGERS["wider"])
AFTER = learner_text(WIDER) | challengers_text({"former": LEARNER, "small": CHALLENGERS["small"]})
STEADY = Step(9, 9, False, 15)


def run_batches(task: Task, log: OutputLog, steps: list[Step]) -> None:
    positions = (task.interactions.position.offset, task.labels.position.offset)
    delivery = Delivery(task, eventful().from_positions(*positions))
    for step in steps:
        delivery.deliver(step)
        log.commit(task, task.advance(step.limit), snapshot=False)


def promoted_halfway(policy: LabelPolicy | None = None) -> OutputLog:
    task = new_task(model=new_model(challengers=CHALLENGERS), policy=policy)
    log = OutputLog(policy=policy)
    log.settings |= challengers_text(CHALLENGERS)
    run_batches(task, log, [STEADY] * 14)
    model = swap(task.model, model_under(AFTER), "wider", "former")
    run_batches(log.go_on_from(model, AFTER), log, [STEADY, REST])
    return log


@pytest.fixture(scope="module")
def log() -> OutputLog:
    return promoted_halfway()


@pytest.fixture
def recorded(log: OutputLog) -> Recording:
    """A run whose records a test may change."""
    fresh = copy(Recording.of(eventful(), log))
    fresh.predictions, fresh.outcomes = list(fresh.predictions), list(fresh.outcomes)
    return fresh


def test_predictions_after_it_are_those_of_one_who_was_champion_from_the_start(log: OutputLog) -> None:
    assert log.state is not None
    [epoch] = log.state.earlier
    always = run(eventful(), model=new_model(WIDER))[1].predictions
    before = run(eventful())[1].predictions
    written = [msgspec.json.decode(value, type=Prediction) for _, value in log.predictions]
    assert 50 < epoch.predictions < len(written) - 50
    for number, prediction in enumerate(written):
        challengers = prediction.challengers
        assert challengers is not None
        plain = msgspec.structs.replace(prediction, challengers=None)
        of_wider, of_first = (msgspec.json.decode(all_[number], type=Prediction) for all_ in (always, before))
        if number < epoch.predictions:
            assert (plain, challengers["wider"]) == (of_first, of_wider.score)
        else:
            assert (plain, challengers["former"]) == (of_wider, of_first.score)


def test_the_model_has_learned_all_outcomes_under_the_swapped_settings(log: OutputLog) -> None:
    """A worker that finds the snapshot damaged learns the outcomes to the same bytes."""
    expected = model_under(AFTER)
    expected.learn_many([msgspec.json.decode(value, type=Outcome) for _, value in log.outcomes])
    task = log.restore()
    assert pack(task.model) == pack(expected)
    damaged = copy(log)
    damaged.snapshots = [b"damaged"] * len(log.snapshots)
    assert pack(damaged.restore().model) == pack(expected)


def test_an_audit_follows_the_switch(recorded: Recording) -> None:
    result = recorded.audit()
    assert result.findings == []
    assert result.checked["predictions derived again"] == len(recorded.predictions)
    assert result.checked["snapshots compared with the model"] == 1
    assert recorded.audit(from_snapshot=True).findings == []
    [epoch] = recorded.state.earlier
    crossing = [
        outcome
        for number in range(epoch.outcomes, len(recorded.outcomes))
        if (outcome := outcome_of(recorded, number)).prediction_sequence < epoch.predictions
    ]
    assert crossing
    assert all("wider" in (outcome.challengers or {}) for outcome in crossing)


def test_it_also_does_where_few_labels_are_asked_for() -> None:
    log = promoted_halfway(Impatient(Labels(policy="margin", rate=0.5)))
    run = Recording.of(eventful(), log)
    asked = [prediction_of(run, number).asked for number in range(len(run.predictions))]
    assert {True, False} == set(asked[run.state.earlier[0].predictions :])
    assert run.findings() == []
    assert run.audit(from_snapshot=True).findings == []
    expected = model_under(AFTER)
    expected.learn_many([msgspec.json.decode(value, type=Outcome) for _, value in log.outcomes])
    assert pack(log.restore().model) == pack(expected)


@pytest.mark.parametrize(("shift", "name"), [(-1, "wider"), (0, "former"), (0, "small")])
def test_the_last_bit_of_a_shadow_s_score_is_named_on_both_sides(
    recorded: Recording, shift: int, name: str
) -> None:
    number = recorded.state.earlier[0].predictions + shift
    scores = prediction_of(recorded, number).challengers or {}
    recorded.change_prediction(number, challengers=scores | {name: raised(scores[name])})
    found = recorded.first()
    assert (found.topic, found.offset) == ("predictions", recorded.predictions[number].offset)


CONFIG: dict[str, Any] = {
    "learner": {"memory": float("inf")},
    "challengers": {
        "wider": {"learner": "forks", "budget": "200", "loss": "hinge", "hessian": "gradient"},
        "papers": {"learner": "forks", "preset": "paper"},
        "linear": {"learner": "arow", "r": 2},
    },
}


def configured(**changes: Any) -> Config:
    return Config.model_validate(CONFIG | changes)


def test_what_is_printed_is_what_workers_need() -> None:
    after = swapped(configured(), "wider", "former")
    text = "\n".join(toml_lines(after, ModelFactory(after)))
    read = Config.model_validate(tomllib.loads(text))
    assert ModelFactory(read).settings(2) == ModelFactory(after).settings(2)
    assert text.startswith('[learner]\npreset = "practical"\nbudget = 200\n')
    assert '\n\n[challengers.linear]\nlearner = "arow"\nr = 2.0\n' in text
    assert '[challengers.former]\nlearner = "forks"\npreset = "practical"\nmemory = inf\n' in text
    again = swapped(read, "former", "wider")
    assert ModelFactory(again).settings(2) == ModelFactory(configured()).settings(2)


@pytest.mark.parametrize(
    ("name", "former", "message"),
    [
        ("widest", "former", "there is no challenger 'widest'. Configured are: wider, papers, linear"),
        ("linear", "former", "challengers.linear is a rival (arow)"),
        ("wider", "papers", "--former papers: the name is in use"),
        ("wider", "champion", "--former champion: the name is in use"),
        ("wider", "the old one", "--former the old one: String should match pattern"),
    ],
)
def test_what_cannot_be_swapped_is_named(name: str, former: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        swapped(configured(), name, former)
    assert message in str(caught.value)


def test_without_challengers_the_error_names_their_setting() -> None:
    with pytest.raises(ConfigError, match=r"\[challengers.NAME\]"):
        swapped(Config(), "wider", "former")


def test_a_name_may_be_handed_on() -> None:
    assert list(swapped(configured(), "wider", "wider").challengers) == ["papers", "linear", "wider"]


def group(settings: dict[str, str] | None, members: str | None = None) -> Group:
    """A group of one partition, without Kafka."""

    def refuse_members() -> None:
        if members:
            raise StateError(members)

    committed_state = None if settings is None else CommittedState(7, new_task().state(settings))
    plain = SimpleNamespace(
        config=configured(),
        partitions=1,
        committed_state=lambda _: committed_state,
        refuse_members=refuse_members,
    )
    plain.all_committed_states = lambda: Group.all_committed_states(cast(Group, plain))
    return cast(Group, plain)


def test_a_group_under_other_settings_with_members_or_without_state_is_left_alone() -> None:
    settings = ModelFactory(configured()).settings(1)
    assert Promotion(group(settings), "wider", "former").outcomes == 0
    with pytest.raises(StateError, match="made under other settings"):
        Promotion(group(settings | {"learner.budget": "7"}), "wider", "former")
    with pytest.raises(StateError, match="a worker"):
        Promotion(group(settings, members="a worker"), "wider", "former")
    with pytest.raises(StateError, match="nothing was committed for partition 0 yet"):
        Promotion(group(None), "wider", "former")
