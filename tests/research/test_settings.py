"""The settings of the papers' experiments, as learners get them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from forks import Forks, ForksSettings
from forks.rivals import FOGD
from research.experiments import EXPERIMENTS, adversary, fixed_budget
from research.harness.learners import LearnerSpec
from tests.research.invented import noise


def settings_of(learner_specs: Sequence[LearnerSpec], name: str) -> ForksSettings:
    learner = next(spec for spec in learner_specs if spec.name == name).make(24, 7)
    assert isinstance(learner, Forks)
    return learner.settings


def test_sizes_follow_the_budget_as_section_5_1_says_and_stage_one_stores_twice_as_many() -> None:
    found = settings_of(fixed_budget.learner_specs(1_000, 50.0), "FORKS")
    expected = ForksSettings.paper(
        24, budget=100, sketch_size=50, landmarks=10, rank=5, cycle=300, width=50.0, seed=7
    )
    assert found == expected
    assert (found.alpha, found.sigma, found.eta, found.blocks, found.step) == (0.01, 0.5, 0.0, 1, 0.2)
    shorter = settings_of(fixed_budget.learner_specs(1_000, 50.0), "FORKS, stage 1 of B")
    assert (shorter.budget, shorter.sketch_size) == (50, 50)


def test_large_sets_have_a_larger_budget() -> None:
    found = settings_of(fixed_budget.learner_specs(59_535, 100.0), "FORKS")
    assert (found.budget, found.sketch_size, found.landmarks, found.rank) == (200, 100, 20, 10)
    assert found.cycle == 17_860


def test_the_adversarys_settings_are_those_of_section_5_2() -> None:
    found = settings_of(adversary.learner_specs(5_000, 50.0), "FORKS")
    assert (found.budget, found.sketch_size, found.landmarks, found.rank, found.cycle) == (
        400,
        150,
        30,
        20,
        24,
    )
    assert settings_of(adversary.learner_specs(10_000, 50.0), "FORKS").cycle == 49
    reset = settings_of(adversary.learner_specs(5_000, 50.0), "FORKS practical, reset")
    assert (reset.carry_over, reset.cycle, reset.budget, reset.tracking) == (False, 24, 200, False)
    assert settings_of(adversary.learner_specs(5_000, 50.0), "FORKS practical").tracking


@pytest.mark.parametrize(
    "spec",
    [*fixed_budget.learner_specs(300, 2.0), *adversary.learner_specs(5_000, 2.0)],
    ids=lambda spec: spec.name,
)
def test_each_spec_repeats_the_same_run(spec: LearnerSpec) -> None:
    once, again = spec.run_stream(noise(130), 3), spec.run_stream(noise(130), 3)
    assert once.wrong.tolist() == again.wrong.tolist()


@pytest.mark.parametrize(("name", "stored"), [("NOGD", 50), ("SkeGD", 100), ("FORKS", 100)])
def test_a_first_stage_lasts_until_the_points_are_there(name: str, stored: int) -> None:
    (spec,) = (one for one in fixed_budget.learner_specs(300, 0.1) if one.name == name)
    result = spec.run_stream(noise(300), 3)  # in so narrow a kernel each point has a loss
    assert stored <= result.stage_one <= stored + 1


def test_fourier_features_are_of_four_budgets_frequencies() -> None:
    (fogd,) = (one for one in fixed_budget.learner_specs(300, 2.0) if one.name == "FOGD")
    learner = fogd.make(3, 7)
    assert isinstance(learner, FOGD)
    assert learner.features == 2 * 4 * 50


@pytest.mark.parametrize("name", ["FORKS", "FORKS practical", "FORKS as published", "SkeGD", "NOGD"])
def test_a_change_of_a_preset_is_a_change_of_the_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (spec,) = (one for one in fixed_budget.learner_specs(300, 2.0) if one.name == name)
    before = spec.key()
    assert before == spec.key()
    real = ForksSettings.__repr__  # stands for any default of a preset that came to be another
    monkeypatch.setattr(ForksSettings, "__repr__", lambda self: real(self).replace("alpha=", "alpha=9"))
    assert (spec.key() == before) is (name == "NOGD")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_the_paper_prints_is_of_streams_that_are_run(name: str) -> None:
    experiment = EXPERIMENTS[name]
    if experiment.printed:
        assert set(experiment.printed) & set(experiment.streams)
