from __future__ import annotations

import math
from typing import Any

import pytest

from forks import ForksSettings


@pytest.mark.parametrize("preset", [ForksSettings.practical, ForksSettings.paper])
def test_presets_stand_for_small_and_large_budgets(preset: Any) -> None:
    for budget in (10, 50, 200):
        settings = preset(5, budget=budget)
        assert settings.rank <= settings.landmarks < settings.budget
        assert settings.budget - settings.blocks < settings.sketch_size <= settings.budget


def test_the_paper_preset_has_the_papers_parameters() -> None:
    settings = ForksSettings.paper(3, budget=100)
    assert (settings.sketch_size, settings.landmarks, settings.rank, settings.blocks) == (100, 20, 10, 1)
    assert (settings.alpha, settings.sigma, settings.eta) == (0.01, 0.5, 0.0)
    assert (settings.step, settings.decay, settings.loss) == (0.2, 0.01, "hinge")


def test_features_count_the_intercept_and_only_the_columns_given() -> None:
    settings = ForksSettings.practical(20, linear_columns=(12, 20), rank=7)
    assert settings.linear_features == 9
    assert settings.features == 16
    assert ForksSettings.paper(20, rank=7).features == 7


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("dimension", 0, ">= 1"),
        ("budget", 1, ">= 2"),
        ("landmarks", 100, "from 1 to 99"),
        ("memory", 0.0, "> 0"),
        ("memory", math.nan, "> 0"),
        ("rank", 51, "from 1 to 50"),
        ("rank", 2.0, "an integer"),
        ("sketch_size", 50, "multiple of blocks = 4"),
        ("cycle", 0, ">= 1"),
        ("blocks", 0, ">= 1"),
        ("refresh", -1, ">= 0"),
        ("seed", -1, ">= 0|from 0"),
        ("seed", 2**64, "from 0"),
        ("width", 0.0, "> 0"),
        ("alpha", math.nan, "> 0"),
        ("linear_alpha", 0.0, "> 0, or None"),
        ("linear_alpha", math.inf, "> 0, or None"),
        ("offset_column", 8, "from 0 to 7"),
        ("offset_column", -1, "from 0 to 7"),
        ("offset_column", True, "an integer"),
        ("sigma", -0.5, ">= 0"),
        ("eta", math.inf, ">= 0"),
        ("clip", 0.0, "> 0"),
        ("step", math.inf, "> 0"),
        ("decay", 5.0, "below 1 / step"),
        ("loss", "log", "logistic, hinge, squared_hinge, squared"),
        ("hessian", "full", "gradient, curvature"),
        ("bounded", 1, "true or false"),
        ("tracking", 1, "true or false"),
        ("linear_columns", (3, 3), "start < stop <= dimension = 8"),
        ("kernel_columns", (0, 9), "start < stop <= dimension = 8"),
        ("kernel_columns", (1, 2, 3), "start < stop <= dimension = 8"),
        ("entity_blocks", ((1, 3),), "from 0 on"),
        ("entity_blocks", ((0, 3), (4, 5)), "each beginning where the one before ends"),
        ("entity_blocks", ((0, 3), (3, 9)), "within kernel_columns"),
    ],
)
def test_an_error_names_the_field_and_what_is_accepted(field: str, value: Any, accepted: str) -> None:
    changes = {"dimension": 8, "budget": 100, "blocks": 4} | {field: value}
    if field == "blocks":
        changes["sketch_size"] = 100
    with pytest.raises(ValueError, match=rf"^{field} = .*({accepted})"):
        ForksSettings.practical(**changes)


def test_hinge_has_no_curvature_to_learn_with() -> None:
    with pytest.raises(ValueError, match="hessian"):
        ForksSettings.practical(8, loss="hinge")
    assert ForksSettings.practical(8, loss="hinge", hessian="gradient").loss == "hinge"


def test_changes_are_tracked_where_scores_are_log_odds_and_have_a_linear_part() -> None:
    hinge: dict[str, Any] = {"loss": "hinge", "hessian": "gradient"}
    assert ForksSettings.practical(8).tracking
    for changes in (hinge, {"loss": "squared"}, {"sum_kernel": False}, {"tracking": False}):
        assert not ForksSettings.practical(8, **changes).tracking
    assert not ForksSettings.paper(8).tracking
    for changes in (hinge, {"loss": "squared"}, {"sum_kernel": False}):
        with pytest.raises(ValueError, match=r"^tracking = True .* false without sum_kernel"):
            ForksSettings.practical(8, **changes, tracking=True)


def test_an_offset_lies_behind_entity_blocks() -> None:
    with pytest.raises(ValueError, match=r"^offset_column = 1 .* from 2 to 4"):
        ForksSettings.paper(5, entity_blocks=((0, 2),), offset_column=1)


def test_the_linear_part_does_not_see_entity_blocks() -> None:
    with pytest.raises(ValueError, match=r"linear_columns = \(0, 8\) .* from 5 on"):
        ForksSettings.practical(8, entity_blocks=((0, 3), (3, 5)))
    assert ForksSettings.practical(8, entity_blocks=((0, 3), (3, 5)), linear_columns=(5, 8)).entity_stop == 5
    assert ForksSettings.paper(8, entity_blocks=((0, 8),)).entity_stop == 8
