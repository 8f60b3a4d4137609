"""Mutated records are refused with an error for users, or restored: a few hundred of each kind."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz import snapshots, state
from tests.fuzz.__main__ import TARGETS, run

CASES = 100


@pytest.mark.parametrize("name", ["state", "snapshots"])
def test_no_case_ends_with_another_error(name: str) -> None:
    outcomes, failed = run(TARGETS[name], range(CASES), seed=7)
    assert not failed
    assert outcomes.total() == CASES
    assert outcomes["refused"] > CASES / 2
    assert outcomes["restored"] > 0


@pytest.mark.slow
def test_each_mutated_message_is_accounted_for() -> None:
    outcomes, failed = run(TARGETS["messages"], range(CASES), seed=7)
    assert not failed
    assert outcomes == {"each message is accounted for": CASES}


def test_a_case_is_repeated_by_its_number() -> None:
    for target in TARGETS.values():
        whole, _ = run(target, range(20), seed=3)
        single = [run(target, range(number, number + 1), seed=3)[0] for number in range(20)]
        assert sum(single, type(whole)()) == whole


def test_an_error_that_is_none_for_users_is_a_failure() -> None:
    def target(rng: Random) -> str:
        if rng.random() < 0.5:
            raise RecursionError
        return "fine"

    outcomes, failed = run(target, range(40), seed=1)
    assert len(failed) == outcomes["FAILED with RecursionError"] > 0


def test_what_a_worker_wrote_is_restored() -> None:
    assert state.restore(state.written().value) == "restored"
    assert {snapshots.restore(subject.data, subject) for subject in snapshots.subjects()} == {"restored"}
