"""Settings in state records are read back exactly; other settings are refused with what to do."""

from __future__ import annotations

import re
import shlex
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import ForksSettings
from pipeline.cli.changes import parse_changes
from pipeline.config.settings import Config
from pipeline.config.stream import KUAIREC
from pipeline.errors import StateError
from pipeline.features.binary import TARGET, BinaryTarget
from pipeline.model.factory import ModelFactory
from pipeline.model.settings_text import kind_from, learner_from, learner_text, target_from, target_text
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.task.state import State
from tests.support.builders import new_task


def settings_of(**learner: Any) -> dict[str, str]:
    return ModelFactory(Config.model_validate({"learner": learner})).settings(1)


def state_under(settings: dict[str, str]) -> State:
    return new_task().state(settings)


def refusal(stored: dict[str, str], current: dict[str, str]) -> str:
    with pytest.raises(StateError) as caught:
        refuse_other_settings(state_under(stored), current)
    return str(caught.value)


positive = st.floats(0.0, 1e300, exclude_min=True)
drawn = st.fixed_dictionaries(
    {},
    optional={
        "budget": st.integers(20, 10**6),
        "width": positive,
        "alpha": positive,
        "linear_alpha": st.none() | positive,
        "offset_column": st.none() | st.integers(0, 7),
        "memory": positive | st.just(float("inf")),
        "clip": positive,
        "loss": st.sampled_from(["logistic", "squared_hinge"]),
        "carry_over": st.booleans(),
        "kernel_columns": st.tuples(st.integers(0, 3), st.integers(4, 8)),
        "seed": st.integers(0, 2**64 - 1),
    },
)


@pytest.mark.parametrize("preset", [ForksSettings.practical, ForksSettings.paper])
@given(changes=drawn)
def test_settings_of_either_preset_come_back_exactly(preset: Any, changes: dict[str, Any]) -> None:
    learner = preset(8, **changes)
    saved = msgspec.json.decode(msgspec.json.encode(state_under(learner_text(learner))), type=State)
    found = learner_from(saved.settings)
    assert found == learner
    assert learner_text(found) == learner_text(learner)


def test_blocks_of_entities_come_back_exactly() -> None:
    learner = ForksSettings.practical(8, linear_columns=(5, 8), entity_blocks=((0, 2), (2, 5)))
    assert learner_from(learner_text(learner)) == learner


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learner.haste": "2"}, "another version of the learner, which differs in learner.haste"),
        ({"learner.budget": "many"}, "no worker wrote these settings"),
        ({"learner.budget": "1"}, "budget = 1 is not accepted"),
    ],
)
def test_settings_that_no_worker_of_this_version_wrote_are_refused(
    wrong: dict[str, str], message: str
) -> None:
    with pytest.raises(StateError, match=message):
        learner_from(settings_of() | wrong)


def test_the_same_settings_are_accepted() -> None:
    refuse_other_settings(state_under(settings_of(budget=80)), settings_of(budget=80))


@pytest.mark.parametrize(
    ("stored", "current"),
    [
        ({}, {"budget": 80}),
        ({"loss": "hinge", "hessian": "gradient"}, {"memory": float("inf"), "sum_kernel": False}),
        ({"preset": "paper"}, {"kernel_columns": (1, 4)}),
    ],
)
def test_where_the_learner_differs_the_command_of_the_message_makes_the_learner_that_is_wanted(
    stored: dict[str, Any], current: dict[str, Any]
) -> None:
    wanted = settings_of(**current)
    message = refusal(settings_of(**stored), wanted)
    assert "take another kafka.group with another kafka.prefix" in message
    [command] = re.findall("`forks rebuild (.*) --install`", message)
    changes = [word for word in shlex.split(command) if word != "--set"]
    named = {name.removeprefix("learner."): value for name, value in parse_changes(changes).items()}
    assert settings_of(**(stored | named)) == wanted
    assert settings_of(**(current | named)) == wanted


def test_where_more_than_the_learner_differs_the_message_names_no_rebuild() -> None:
    current = settings_of(budget=80) | {"tables": "others"}
    message = refusal(settings_of(), current)
    assert "tables is 'others', was" in message
    assert "rebuild" not in message


def labels_settings(**labels: Any) -> dict[str, str]:
    settings = ModelFactory(Config.model_validate({"labels": labels})).settings(1)
    return {name: value for name, value in settings.items() if name.startswith("labels.")}


def test_outputs_depend_on_no_policy_setting_where_all_labels_are_learned() -> None:
    """State records without settings of a policy stay valid."""
    assert labels_settings() == labels_settings(rate=0.5, seed=3) == {}


def test_another_policy_or_none_is_refused() -> None:
    stored = settings_of() | labels_settings(policy="random", seed=3)
    assert len(stored) == len(settings_of()) + 4
    message = refusal(stored, settings_of() | labels_settings(policy="random", seed=4))
    assert "labels.seed is '4', was '3'" in message
    assert "rebuild" not in message
    assert "labels.policy is None, was 'random'" in refusal(stored, settings_of())


def test_a_group_of_before_there_were_effects_is_told_how_to_go_on() -> None:
    before, after = (
        ModelFactory(Config.model_validate({"features": {"kind": kind}})).settings(1)
        for kind in ("running", "effects")
    )
    new = {"features.kind", "learner.linear_alpha", "learner.offset_column", "learner.tracking"}
    assert before.keys() == after.keys() - new
    message = refusal(before, after)
    assert "features.kind is 'effects', was 'running'" in message
    assert 'Set features.kind = "running" to go on with those, or take another kafka.group' in message
    assert 'Set features.kind = "effects" to go on with those' in refusal(after, before)


def test_a_group_of_before_there_was_tracking_is_told_how_to_go_on_and_may_be_rebuilt() -> None:
    before, after = settings_of(tracking=False), settings_of()
    assert before.keys() == after.keys() - {"learner.tracking"}
    message = refusal(before, after)
    assert "learner.tracking is 'True', was 'False'. Go back to those" in message
    assert "`forks rebuild --set learner.tracking=true --install`" in message
    assert "`forks rebuild --set learner.tracking=false --install`" in refusal(after, before)
    assert not learner_from(before).tracking
    assert learner_from(after).tracking


def stream_settings(**changes: Any) -> dict[str, str]:
    definition = KUAIREC.model_dump()
    for section, change in changes.items():
        definition[section] = change if section == "entities" else definition[section] | change
    return ModelFactory(Config.model_validate({"stream": definition})).settings(1)


def test_another_target_and_other_names_are_refused_by_name() -> None:
    kuairec = settings_of()
    assert not [name for name in kuairec if name.startswith("stream.")]
    message = refusal(kuairec, stream_settings(target={"above": 0.5, "cap": 1.0}))
    assert "stream.target.above is '0.5', was '0.75'; stream.target.cap is '1.0', was '2.0'" in message
    assert "forks rebuild" not in message
    message = refusal(kuairec, stream_settings(entities={"user_id": "/user_id", "item_id": "/video_id"}))
    assert "stream.names is 'user_id, item_id, watch_ratio', was 'user_id, video_id, watch_ratio'" in message
    # Where a field is in a message is no matter of outputs.
    moved = stream_settings(entities={"user_id": "/user/id", "video_id": "/video_id"})
    assert moved == kuairec


def test_a_target_is_read_back_exactly_and_damaged_ones_are_refused() -> None:
    for target in (TARGET, BinaryTarget(0.1, 3.3, 0.7)):
        assert target_from(target_text(target)) == target
    with pytest.raises(StateError, match=r"with the setting stream\.target\.kind, which is unknown"):
        target_from({"stream.target.kind": "ordinal"})
    with pytest.raises(StateError, match="no worker wrote these settings of a target"):
        target_from({"stream.target.above": "half"})


def test_an_unknown_kind_of_features_is_refused() -> None:
    with pytest.raises(StateError, match="running features of the kind 'fast', which is unknown"):
        kind_from(settings_of() | {"features.kind": "fast"})
