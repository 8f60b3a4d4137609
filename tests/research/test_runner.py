from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from research.experiments import Store, run_missing
from research.harness.trials import KeyColumns, Result


@dataclass(frozen=True)
class Step:
    """A trial whose result is the process that ran it, and the number of its BLAS threads."""

    number: int
    fails: bool = False
    stream: str = "steps"
    learner: str = "stepper"
    budget: int | None = None
    key_columns: KeyColumns = ()

    def key(self) -> dict[str, int]:
        return {"number": self.number}

    def result(self) -> Result:
        if self.fails:
            raise ArithmeticError("no result")
        threads = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
        return {"number": self.number, "process": os.getpid(), "threads": max(threads)}


def complete_all(file: Path, trials: list[Step], jobs: int) -> tuple[list[Result | None], list[int]]:
    updates: list[int] = []
    with Store(file) as store:
        run_missing(trials, store, jobs, updates.append)
        return [store.get(trial) for trial in trials], updates


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_each_trial_runs_once_and_is_reported_when_it_is_done(tmp_path: Path, jobs: int) -> None:
    trials = [Step(number) for number in range(4)]
    found, updates = complete_all(tmp_path / "results.jsonl", trials[:1], 1)
    before = found[0]
    found, updates = complete_all(tmp_path / "results.jsonl", trials, jobs)
    assert updates == [1, 2, 3, 4]
    assert found[0] == before
    assert [one["number"] for one in found if one] == [0, 1, 2, 3]
    here = {one["process"] == os.getpid() for one in found[1:] if one}
    assert here == {jobs == 1}
    assert {one["threads"] for one in found if one} == {1}
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_done_before_a_failure_is_kept(tmp_path: Path, jobs: int) -> None:
    file = tmp_path / "results.jsonl"
    with pytest.raises(ArithmeticError):
        complete_all(file, [Step(0), Step(1, fails=True)], jobs)
    found, updates = complete_all(file, [Step(0), Step(1)], 1)
    assert None not in found
    assert updates[-1] == 2
