"""The fold: many outcomes together are what they are one by one."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records import Outcome
from pipeline.snapshot import pack
from tests.pipeline.builders import interaction, new_model
from tests.pipeline.test_snapshot import outcome

LONG = 60


@cache
def outcomes() -> list[Outcome]:
    """Outcomes of a stream; each fifth has no label, and each seventh teaches that none came."""
    model, found = new_model(), []
    for number in range(LONG):
        user: int | str = number * 7 % 5 if number % 11 else "näme"
        ratio = (number * 37 % 100) / 50
        made = outcome(model, interaction(number, number, user, number * 3 % 8), ratio > 0.75, ratio)
        if number % 5 == 0:
            made = msgspec.structs.replace(made, label=None, watch_ratio=None, status="expired")
        elif number % 7 == 0:
            made = msgspec.structs.replace(made, label=False, watch_ratio=None, status="expired")
        model.fold(made)
        found.append(made)
    return found


@given(st.sets(st.integers(0, LONG)))
def test_outcomes_folded_together_leave_the_bytes_of_one_by_one(cuts: set[int]) -> None:
    alone, together = new_model(), new_model()
    for made in outcomes():
        alone.fold(made)
    for begin, end in pairwise(sorted({0, LONG} | cuts)):
        together.fold_many(outcomes()[begin:end])
    assert pack(together) == pack(alone)


def test_outcomes_out_of_order_are_refused_and_change_nothing() -> None:
    model = new_model()
    model.fold_many(outcomes()[:20])
    before = pack(model)
    with pytest.raises(ValueError, match="outcome 22 is not the next one, 21"):
        model.fold_many([outcomes()[20], outcomes()[22]])
    assert pack(model) == before
    model.fold_many([])
    assert pack(model) == before
