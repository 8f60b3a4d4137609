"""Challengers see the champion's events; their scores are derived, audited and restored as its own are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from forks import ForksSettings
from forks.rivals import NOGD, Standardised
from pipeline.config.settings import Config
from pipeline.errors import ConfigError, StateError
from pipeline.model.factory import ModelFactory
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.rival import RIVALS, parameter_types
from pipeline.model.settings_text import challengers_from, challengers_text
from pipeline.model.snapshot import pack, unpack
from pipeline.records.fields import FEATURES_LENGTH
from pipeline.records.outputs import Outcome, Prediction
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.tools.checkpoint import contents, render_contents
from pipeline.tools.checkpoint.belonging import verify
from tests.pipeline.recovery.test_restoration import run_with_deaths, worker_steps
from tests.pipeline.tools.audit.test_audit import outcome_of, prediction_of, raised
from tests.support.builders import (
    CHALLENGERS,
    WEIGHTED,
    Inputs,
    Written,
    model_under,
    new_model,
    new_task,
    run,
)
from tests.support.consumer import REST, Step, steps
from tests.support.examples import examples
from tests.support.recording import Recording, eventful, record
from tests.support.streams import policies, streams


def challenged(given_inputs: Inputs) -> Written:
    return run(given_inputs, model=new_model(challengers=CHALLENGERS))[1]


@examples(40)
@given(given_inputs=streams(), drawn=st.lists(worker_steps, max_size=15))
def test_neither_batches_nor_restarts_change_what_is_written(given_inputs: Inputs, drawn: list[Any]) -> None:
    assert run_with_deaths(given_inputs, drawn, challengers=CHALLENGERS)[1].written == challenged(
        given_inputs
    )


def predictions_of(written: Written) -> list[Prediction]:
    return [msgspec.json.decode(value, type=Prediction) for value in written.predictions]


def outcomes_of(written: Written) -> list[Outcome]:
    return [msgspec.json.decode(value, type=Outcome) for value in written.outcomes]


def test_a_forks_challenger_scores_as_it_would_as_the_champion() -> None:
    wider = CHALLENGERS["wider"]
    assert isinstance(wider, ForksSettings)
    alone = predictions_of(run(eventful(), model=new_model(wider))[1])
    beside = predictions_of(challenged(eventful()))
    assert [(each.challengers or {})["wider"] for each in beside] == [each.score for each in alone]
    assert len({each.score for each in alone}) > 100


def test_a_challenger_that_uses_the_tables_scores_as_it_would_as_the_champion(tmp_path: Path) -> None:
    (tmp_path / "tags.csv").write_text("video_id,feat\n" + "".join(f'{v},"[{v % 3}]"\n' for v in range(8)))
    features = {"tags": tmp_path / "tags.csv"}
    paper = {"preset": "paper", "budget": 10, "cycle": 5}
    beside = {"a": {"learner": "forks"} | paper, "b": {"learner": "nogd"}}
    ours = ModelFactory(Config.model_validate({"features": features, "challengers": beside}))
    alone = ModelFactory(Config.model_validate({"features": features, "learner": paper}))
    plain = ModelFactory(Config.model_validate({"features": features}))
    beside_ours = predictions_of(run(eventful(), model=ours.new_model())[1])
    champion = predictions_of(run(eventful(), model=alone.new_model())[1])
    assert [(each.challengers or {})["a"] for each in beside_ours] == [each.score for each in champion]
    without = predictions_of(run(eventful(), model=plain.new_model())[1])
    assert [each.score for each in beside_ours] == [each.score for each in without]


@pytest.mark.parametrize("kind", RIVALS)
def test_a_rival_is_refused_beside_weights_only_if_it_takes_none(kind: str) -> None:
    challengers = {"a": {"learner": kind}}
    weighted = {"stream": WEIGHTED.model_dump(), "challengers": challengers}
    if kind != "forgetron":
        model = ModelFactory(Config.model_validate(weighted)).new_model()
        assert model.weighted
        return
    ModelFactory(Config.model_validate({"challengers": challengers}))
    with pytest.raises(ConfigError, match=r"challengers\.a.learner is forgetron, .* weights: the Forgetron"):
        ModelFactory(Config.model_validate(weighted))


def test_the_contents_of_a_snapshot_list_its_challengers() -> None:
    settings = configured(a={"learner": "arow"}).settings(1)
    found = contents(pack(model_under(settings)), settings)
    [challenger] = found.challengers
    width = FEATURES_LENGTH
    assert (challenger.name, challenger.learner) == ("a", "arow")
    assert challenger.bytes == 8 * (width * width + 3 * width)
    console = Console(width=200)
    with console.capture() as captured:
        console.print(render_contents(0, found))
    assert f"a (arow, {challenger.bytes:,} bytes)" in captured.get()


def test_a_rival_scores_as_in_a_plain_loop_over_the_standardised_running_features() -> None:
    written = challenged(eventful())
    rival = Standardised(NOGD(FEATURES_LENGTH, budget=4, rank=2))
    outcomes = iter(outcomes_of(written))
    learned = 0
    for prediction in predictions_of(written):
        for _ in range(prediction.model_version - learned):
            outcome = next(outcomes)
            assert outcome.label is not None
            rival.learn_one(np.array(outcome.features), 1.0 if outcome.label else -1.0)
        learned = prediction.model_version
        assert prediction.challengers is not None
        assert prediction.challengers["small"] == rival.predict_one(np.array(prediction.features))
    assert learned > 100


def test_outcomes_hold_the_scores_of_their_predictions_and_nothing_else_changes() -> None:
    written, without = challenged(eventful()), run(eventful())[1]
    scores = {each.sequence: each.challengers for each in predictions_of(written)}
    for outcome in outcomes_of(written):
        assert list(outcome.challengers or {}) == ["small", "wider"]
        assert outcome.challengers == scores[outcome.prediction_sequence]
    for ours, plain in zip(
        [*predictions_of(written), *outcomes_of(written)],
        [*predictions_of(without), *outcomes_of(without)],
        strict=True,
    ):
        assert msgspec.structs.replace(ours, challengers=None) == plain
    assert not any(b"challengers" in value for value in [*without.predictions, *without.outcomes])


def test_a_snapshot_restores_challengers() -> None:
    task, _ = run(eventful(), model=new_model(challengers=CHALLENGERS))
    copy = new_model(challengers=CHALLENGERS)
    unpack(pack(task.model), copy)
    assert pack(copy) == pack(task.model)
    for others in ({}, {"small": CHALLENGERS["small"]}, {"small": CHALLENGERS["wider"]}):
        with pytest.raises(StateError, match="not of this model"):
            unpack(pack(task.model), new_model(challengers=others))


def test_an_import_is_refused_where_a_challenger_s_state_differs() -> None:
    outcomes = list(enumerate(outcomes_of(challenged(eventful()))))
    trained = new_model(challengers=CHALLENGERS)
    trained.learn_many([outcome for _, outcome in outcomes[:100]])
    data = pack(trained)
    for forged in (False, True):
        candidate = new_model(challengers=CHALLENGERS)
        unpack(data, candidate)
        if forged:
            candidate.challengers["small"].learn_one(np.zeros(FEATURES_LENGTH), 0.0)
            with pytest.raises(StateError, match="is not the model of this log's first 100 outcomes"):
                verify(candidate, new_model(challengers=CHALLENGERS), outcomes, begin=0)
        else:
            assert verify(candidate, new_model(challengers=CHALLENGERS), outcomes, begin=0) == 100


STEADY = [(Step(9, 9, False, 15), number == 8) for number in range(24)]


@pytest.fixture
def recorded() -> Recording:
    return record(eventful(), [*STEADY, (REST, False)], challengers=CHALLENGERS)


@examples(40)
@given(given_inputs=streams(), drawn=st.lists(st.tuples(steps, st.booleans()), max_size=15), policy=policies)
def test_the_audit_of_every_run_finds_nothing(
    given_inputs: Inputs, drawn: list[tuple[Step, bool]], policy: LabelPolicy | None
) -> None:
    run = record(given_inputs, [*drawn, (REST, True)], challengers=CHALLENGERS, policy=policy)
    assert run.findings() == []
    if run.snapshot is not None:
        assert run.audit(from_snapshot=True).findings == []


@pytest.mark.parametrize("name", CHALLENGERS)
def test_the_audit_finds_a_changed_last_bit_of_a_challenger_s_score(recorded: Recording, name: str) -> None:
    scores = prediction_of(recorded, 100).challengers or {}
    recorded.change_prediction(100, challengers=scores | {name: raised(scores[name])})
    found = recorded.first()
    assert (found.topic, found.offset) == ("predictions", recorded.predictions[100].offset)
    assert found.expected.startswith("challengers {")


@pytest.mark.parametrize("other", [None, {"small": 0.5}])
def test_the_audit_finds_an_outcome_whose_scores_are_not_those_of_its_prediction(
    recorded: Recording, other: dict[str, float] | None
) -> None:
    assert outcome_of(recorded, 60).challengers
    recorded.change_outcome(60, challengers=other)
    found = recorded.first()
    assert (found.topic, found.offset) == ("outcomes", recorded.outcomes[60].offset)


def configured(**challengers: Any) -> ModelFactory:
    return ModelFactory(Config.model_validate({"challengers": challengers}))


@pytest.mark.parametrize("kind", RIVALS)
def test_every_rival_can_be_named_and_comes_back_from_a_state_record(kind: str) -> None:
    name = next(name for name, of in sorted(parameter_types(kind).items()) if of is float)
    value = {"confidence": 0.75}.get(name, 0.5)
    factory = configured(other={"learner": kind, name: value}, zero={"learner": "forks", "preset": "paper"})
    text = factory.settings(1)
    assert text["challengers.other.learner"] == kind
    assert text[f"challengers.other.{name}"] == str(value)
    assert challengers_from(text) == factory.challengers
    assert list(model_under(text).challengers) == ["other", "zero"]
    factory.challengers["other"].warm_up()  # type: ignore[union-attr]  # it is a rival
    model, copy = factory.with_saved_settings(text).new_model(), factory.new_model()
    model.learn_many(outcomes_of(run(eventful())[1]))
    unpack(pack(model), copy)
    assert pack(copy) == pack(model)


def test_a_rival_s_loss_is_what_it_is_set_to() -> None:
    model = configured(a={"learner": "ogd", "loss": "squared"}).new_model()
    assert model.challengers["a"].loss == "squared"
    model.learn_many(outcomes_of(run(eventful())[1]))


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # the steps are meant to explode
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_score_that_is_not_finite_becomes_zero_and_does_no_harm() -> None:
    """A record can hold neither infinity nor NaN."""
    wild = configured(a={"learner": "ogd", "loss": "squared", "step": 1e100}).challengers
    recording = record(eventful(), [*STEADY, (REST, False)], challengers=wild)
    scores = [
        (prediction_of(recording, number).challengers or {})["a"]
        for number in range(len(recording.predictions))
    ]
    assert max(map(abs, scores)) > 1e100
    assert scores[-50:] == [0.0] * 50
    assert recording.findings() == []
    assert recording.audit(from_snapshot=True).findings == []


def test_the_order_in_the_file_does_not_matter() -> None:
    one, other = {"learner": "nogd"}, {"learner": "fogd"}
    assert list(configured(b=one, a=other).challengers) == list(configured(a=other, b=one).challengers)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"learner": "nogdd"},
            "challengers.x.learner: there is no learner 'nogdd'; did you mean nogd? Accepted here: forks",
        ),
        (
            {"learner": "nogd", "haste": 2},
            "challengers.x.haste is not a setting. Accepted here: budget, ",
        ),
        ({"learner": "nogd", "budget": "many"}, "challengers.x.budget: Input should be a valid integer"),
        ({"learner": "nogd", "budget": 0}, "challengers.x.budget must be at least 1, not 0"),
        ({"learner": "skegd", "cycle": 0}, "challengers.x.cycle = 0 is not accepted"),
        (
            {"learner": "forks", "haste": 2},
            "challengers.x.haste is not a setting. Accepted here: preset, alpha",
        ),
        ({"learner": "forks", "budget": 1}, "challengers.x.budget = 1 is not accepted"),
        ({"learner": "forks", "preset": "papier"}, "challengers.x.preset: Input should be 'practical' or"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(x=wrong)
    assert message in str(caught.value)


def test_other_challengers_are_refused_with_what_to_do() -> None:
    stored = new_task().state(configured(a={"learner": "nogd"}).settings(1))
    with pytest.raises(StateError) as caught:
        refuse_other_settings(stored, configured(b={"learner": "rbp"}).settings(1))
    message = str(caught.value)
    assert "challengers.a.learner is None, was 'nogd'; challengers.b.learner is 'rbp', was None." in message
    assert "`forks rebuild --install`" in message
    assert "take another kafka.group with another kafka.prefix" in message
    with pytest.raises(StateError, match=r"challengers\.a\.budget is '7', was '50'"):
        refuse_other_settings(stored, configured(a={"learner": "nogd", "budget": 7, "rank": 5}).settings(1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"challengers.a.learner": "nogdd"},
        {"challengers.a.haste": "2"},
        {"challengers.a.budget": "many"},
        {"challengers.a.budget": "0"},
    ],
)
def test_settings_that_no_worker_of_this_version_wrote_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(StateError, match="challenger"):
        challengers_from(challengers_text(configured(a={"learner": "nogd"}).challengers) | wrong)
