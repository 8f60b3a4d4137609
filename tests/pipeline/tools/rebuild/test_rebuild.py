"""Outcomes that are learned again under other settings give the predictions of these settings."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import given
from rich.console import Console
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Config, Labels
from pipeline.errors import ConfigError, StateError
from pipeline.features.binary import TARGET
from pipeline.features.tables import Tables
from pipeline.model.factory import ModelFactory
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.outputs import Outcome, Prediction
from pipeline.recovery.settings_check import Changes
from pipeline.task.batch import Batch
from pipeline.task.record_queue import Position
from pipeline.task.state import State
from pipeline.task.task import Task
from pipeline.tools.checkpoint import CommittedState, Group
from pipeline.tools.rebuild import PartitionRebuild, Rebuild, compare, render
from pipeline.tools.relearning import SCORED_OUTCOME, ScoredOutcomes, relearn
from tests.support.builders import (
    ALL,
    Inputs,
    feed_all,
    inputs,
    interaction,
    join_settings,
    label,
    new_task,
    records_of,
    small_learner,
)
from tests.support.examples import examples
from tests.support.streams import Impatient, streams

OTHERS: list[dict[str, Any]] = [
    {},
    {"budget": 6, "rank": 3, "landmarks": 3},
    {"memory": 20.0, "width": 0.7},
    {"preset": "paper", "width": 3.0},
]


def model(changes: dict[str, Any]) -> Model:
    return Model(small_learner(**changes), Tables(), 3)


def run(given_inputs: Inputs, changes: dict[str, Any]) -> tuple[Task, Batch]:
    task = Task(0, model(changes), join_settings(), Position(0), Position(0))
    feed_all(task, given_inputs)
    return task, task.advance(ALL)


def as_written(batch: Batch) -> tuple[Iterator[Prediction], list[Outcome]]:
    """Decode the records as they stand in their topics."""
    predictions, outcomes, *_ = records_of(batch)
    return iter(predictions), outcomes


def assert_it_is_as_it_would_have_been(given_inputs: Inputs, changes: dict[str, Any]) -> None:
    _, ran = run(given_inputs, {})
    other, expected = run(given_inputs, changes)
    rebuilt = model(changes)
    scored_outcomes = np.fromiter(relearn(rebuilt, *as_written(ran)), SCORED_OUTCOME)
    assert scored_outcomes["running"].tolist() == [outcome.score for outcome in records_of(ran).outcomes]
    assert scored_outcomes["rebuilt"].tolist() == [outcome.score for outcome in records_of(expected).outcomes]
    assert pack(rebuilt) == pack(other.model)


@examples(40)
@given(given_inputs=streams())
@pytest.mark.parametrize("changes", OTHERS[:2])
def test_any_stream_comes_out_as_it_would_have_under_those_settings(
    given_inputs: Inputs, changes: dict[str, Any]
) -> None:
    assert_it_is_as_it_would_have_been(given_inputs, changes)


def long_stream() -> Inputs:
    """Inputs with late, early and missing labels."""
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(200)]
    delays = [-15, 35, 0, 80, 35]
    known = [label(n, 10 * n + delays[n % 5], n % 3, n % 5, n % 7) for n in range(2, 200) if n % 11]
    known.sort(key=lambda each: each.timestamp)
    return inputs(interactions, known)


@pytest.mark.parametrize("changes", OTHERS)
def test_so_does_a_long_one_whose_feature_map_changes(changes: dict[str, Any]) -> None:
    assert_it_is_as_it_would_have_been(long_stream(), changes)


def test_missing_records_are_named() -> None:
    _, batch = run(long_stream(), {})
    predictions, outcomes = as_written(batch)
    remaining = (each for each in predictions if each.sequence != 7)
    [row] = [each for each in outcomes if each.prediction_sequence == 7]
    with pytest.raises(StateError, match=rf"prediction 7 of outcome {row.sequence} is missing"):
        list(relearn(model({}), remaining, outcomes))
    with pytest.raises(StateError, match="outcome 9 is missing: outcome 10 comes instead"):
        list(relearn(model({}), as_written(batch)[0], outcomes[:9] + outcomes[10:]))


def test_a_label_that_was_not_learned_counts_for_both_models() -> None:
    given_inputs = long_stream()
    task = new_task(policy=Impatient(Labels(policy="random", rate=0.3)))
    feed_all(task, given_inputs)
    batch = task.advance(ALL)
    rebuilt = model({})
    predictions, outcomes = as_written(batch)
    found = np.fromiter(relearn(rebuilt, predictions, outcomes), SCORED_OUTCOME)
    written = records_of(batch).outcomes
    came = [outcome.watch_ratio is not None for outcome in written]
    assert found["labelled"].tolist() == came
    assert found["watch_ratio"].tolist() == [outcome.watch_ratio or 0.0 for outcome in written]
    assert any(outcome.label is None for outcome, learned in zip(written, came, strict=True) if learned)
    assert found["rebuilt"].tolist() == [outcome.score for outcome in written]
    assert pack(rebuilt) == pack(task.model)


def test_predictions_out_of_order_are_named() -> None:
    _, batch = run(long_stream(), {})
    predictions, outcomes = as_written(batch)
    *others, last = sorted(predictions, key=lambda each: each.sequence == 22)  # it has no label, and expires
    with pytest.raises(StateError, match="prediction 22 was made by version"):
        list(relearn(model({}), iter([*others[:27], last, *others[27:]]), outcomes))


def scored_outcomes(*rows: tuple[int, float, float, bool, bool]) -> ScoredOutcomes:
    """Scored outcomes of rows of timestamp, both scores, watched and labelled."""
    return np.array([(at, ran, now, float(w), known) for at, ran, now, w, known in rows], SCORED_OUTCOME)


def test_every_labelled_event_of_all_partitions_counts_by_its_time() -> None:
    first = scored_outcomes(
        (3, 1.0, -1.0, True, True), (5, 9.0, 9.0, False, False), (9, -1.0, -2.0, True, True)
    )
    second = scored_outcomes((4, 2.0, -0.5, False, True), (8, -2.0, -3.0, False, True))
    partition_rebuilds = [PartitionRebuild(0, 3, None, None), PartitionRebuild(1, 2, 2, True)]
    found = compare([first, second], partition_rebuilds, ("logistic", "hinge"), {}, target=TARGET, window=2)
    assert found.running is not None
    assert found.rebuilt is not None
    assert found.events == 4
    assert [piece.mistakes for piece in found.running.windows] == [0.5, 0.5]
    assert [piece.mistakes for piece in found.rebuilt.windows] == [0.5, 0.5]
    assert (found.running.total.auc, found.rebuilt.total.auc) == (0.5, 0.5)
    assert found.running.total.log_loss == pytest.approx(
        np.mean(np.log1p(np.exp([-1.0, 2.0, -2.0, 1.0]))), abs=1e-12
    )
    assert found.rebuilt.total.log_loss is None
    assert found.rebuilt.total.loss == pytest.approx(np.mean([2.0, 0.5, 0.0, 3.0]))


def rendered(*partition_rebuilds: PartitionRebuild, rows: ScoredOutcomes) -> str:
    console = Console(width=100)
    with console.capture() as captured:
        changes: Changes = {"learner.budget": ("160", "200")} if partition_rebuilds[0].same is None else {}
        console.print(
            render(compare([rows], partition_rebuilds, ("logistic", "logistic"), changes, target=TARGET))
        )
    return captured.get()


def test_text_says_what_differs_and_what_became_of_the_snapshots() -> None:
    rows = scored_outcomes((3, 1.0, -1.0, True, True), (4, 2.0, -0.5, False, True))
    text = rendered(PartitionRebuild(0, 2, 2, None), rows=rows)
    assert "learner.budget 200 (was 160)" in text
    assert "50.00%" in text
    assert "unchanged settings" in rendered(PartitionRebuild(0, 2, 2, True), rows=rows)
    assert "after 2 identical to the group's snapshot" in rendered(PartitionRebuild(0, 2, 2, True), rows=rows)
    assert "after 2 not identical to the group's snapshot" in rendered(
        PartitionRebuild(0, 2, 2, False), rows=rows
    )
    assert "No label was joined yet" in rendered(PartitionRebuild(0, 0, None, None), rows=scored_outcomes())


def test_text_says_how_workers_get_the_settings_that_were_installed() -> None:
    console = Console(width=100)
    found = compare([scored_outcomes()], [], ("logistic", "logistic"), {}, target=TARGET)
    with console.capture() as captured:
        console.print(render(msgspec.structs.replace(found, installed=['preset = "paper"', "width = 2.0"])))
    text = "\n".join(line.strip() for line in captured.get().splitlines())
    assert "Put this into forks.toml before you start its workers" in text
    assert '[learner]\npreset = "paper"\nwidth = 2.0' in text


def group(state: State | None, challengers: dict[str, Any] | None = None, **configured: Any) -> Group:
    """A group of one partition, without Kafka and members."""
    config = Config.model_validate({"learner": configured, "challengers": challengers or {}})
    committed_state = None if state is None else CommittedState(7, state)
    plain = SimpleNamespace(
        config=config, partitions=1, committed_state=lambda _: committed_state, refuse_members=lambda: None
    )
    plain.all_committed_states = lambda: Group.all_committed_states(cast(Group, plain))
    return cast(Group, plain)


def state_under(**learner: Any) -> State:
    return new_task().state(ModelFactory(Config.model_validate({"learner": learner})).settings(1))


@pytest.mark.parametrize("configured", [{}, {"budget": 40}, {"memory": 7.0}])
def test_the_running_model_is_that_of_the_state_records_whatever_is_configured(
    configured: dict[str, Any],
) -> None:
    changes = Rebuild(group(state_under(), **configured), {"budget": 40}, check=False).changes
    assert changes["learner.budget"] == ("160", "40")
    assert ("learner.memory" in changes) == ("memory" in configured)


def test_a_check_of_the_running_model_needs_its_settings() -> None:
    with pytest.raises(
        StateError, match=r"learner.budget is '40', was '160'.*rebuild --set learner.budget=40"
    ):
        Rebuild(group(state_under(), budget=40), {}, check=True)


def test_challengers_are_those_of_the_configuration_whatever_the_group_has() -> None:
    plan = Rebuild(group(state_under(), {"a": {"learner": "nogd"}}), {}, check=False)
    assert plan.changes == {"challengers.a.learner": (None, "nogd")}
    plan.refuse_install()
    assert list(plan.factory.new_model().challengers) == ["a"]
    with pytest.raises(StateError, match=r"challengers\.a\.learner is 'nogd', was None"):
        Rebuild(group(state_under(), {"a": {"learner": "nogd"}}), {}, check=True)


def test_what_does_not_differ_or_has_no_state_is_not_installed() -> None:
    with pytest.raises(ConfigError, match="there is nothing to install"):
        Rebuild(group(state_under(budget=40)), {"budget": 40}, check=False).refuse_install()
    with pytest.raises(StateError, match="nothing was committed for partition 0 yet"):
        Rebuild(group(None), {"budget": 40}, check=False).refuse_install()
    Rebuild(group(state_under()), {"budget": 40}, check=False).refuse_install()


def test_only_settings_of_the_learner_may_differ() -> None:
    result = CliRunner().invoke(app, ["rebuild", "--set", "join.window=1h", "--bootstrap", "127.0.0.1:1"])
    assert isinstance(result.exception, ConfigError)
    assert "--set join.window: only settings of the learner" in str(result.exception)
