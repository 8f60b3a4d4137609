"""What all rivals with a budget, and those of the same family, have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forks.rivals import BOGD, BPAS, FOGD, NOGD, RBP, Forgetron, Projectron, ProjectronPlus, SkeGD
from forks.rivals.base.budgeted import Budgeted
from tests.forks.rivals.naive import stream

BUDGET = 12
BUDGETED: dict[str, Callable[..., Budgeted]] = {
    kind.__name__: kind for kind in (BOGD, BPAS, NOGD, RBP, Forgetron, Projectron, ProjectronPlus, SkeGD)
}


@pytest.mark.parametrize("name", BUDGETED)
def test_no_more_points_are_stored_than_the_budget(name: str) -> None:
    settings: dict[str, Any] = {"cycle": 7} if name == "SkeGD" else {}
    learner = BUDGETED[name](3, budget=BUDGET, width=1.5, **settings)
    most = 0
    for x, y in stream(300):
        learner.learn_one(x, y)
        assert learner.stored <= BUDGET
        state = learner.state()
        points = [np.asarray(state["points"]).T, np.asarray(state.get("kernel_points", np.empty((0, 3))))]
        stored = sum(int(block.any(axis=1).sum()) for block in points)
        assert stored == learner.stored
        most = max(most, stored)
    assert most == BUDGET


@pytest.mark.parametrize("name", BUDGETED)
def test_a_state_of_another_budget_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="state"):
        BUDGETED[name](3, budget=BUDGET).with_state(BUDGETED[name](3, budget=BUDGET + 1).state())


@pytest.mark.parametrize("name", BUDGETED)
@pytest.mark.parametrize("settings", [{"budget": 0}, {"width": 0.0}], ids=str)
def test_a_setting_that_all_have_is_named_when_out_of_range(name: str, settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(settings))} .*must be"):
        BUDGETED[name](3, **settings)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("aggressiveness", lambda: BPAS(3, aggressiveness=0.0)),
        ("budget", lambda: BOGD(3, budget=1)),
        ("decay", lambda: BOGD(3, decay=-1.0)),
        ("decay", lambda: BOGD(3, step=0.5, decay=2.0)),
        ("frequencies", lambda: FOGD(3, frequencies=0)),
        ("largest", lambda: BOGD(3, largest=0.0)),
        ("norm", lambda: ProjectronPlus(3, norm=0.0)),
        ("rank", lambda: NOGD(3, rank=0)),
        ("rank", lambda: NOGD(3, budget=5, rank=6)),
        ("seed", lambda: BOGD(3, seed=-1)),
        ("seed", lambda: FOGD(3, seed=-1)),
        ("seed", lambda: RBP(3, seed=-1)),
        ("step", lambda: BOGD(3, step=0.0)),
        ("step", lambda: FOGD(3, step=0.0)),
        ("step", lambda: NOGD(3, step=0.0)),
        ("width", lambda: FOGD(3, width=0.0)),
    ],
)
def test_a_setting_out_of_range_is_named(field: str, make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        make()
