from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from research.experiments import Store, StoreError
from research.harness.trials import KeyColumns, Result, Trial


@dataclass(frozen=True)
class Counted:
    """A trial whose result is its number."""

    number: int
    stream: str = "numbers"
    learner: str = "counter"
    budget: int | None = None
    key_columns: KeyColumns = ()

    def key(self) -> dict[str, int]:
        return {"number": self.number}

    def result(self) -> Result:
        return {"mistakes": 1.0 / self.number}


def filled(path: Path, *numbers: int) -> None:
    with Store(path) as store:
        for number in numbers:
            trial: Trial = Counted(number)
            store.add(trial, trial.result())


def test_results_come_back_to_the_bit(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    filled(file, 3, 7)
    with Store(file) as store:
        assert [store.get(Counted(number)) for number in (3, 7, 9)] == [
            {"mistakes": 1.0 / 3.0},
            {"mistakes": 1.0 / 7.0},
            None,
        ]
        assert not store.dropped
    assert [json.loads(line)["cell"] for line in file.read_text().splitlines()] == [
        {"number": 3},
        {"number": 7},
    ]


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_line_that_was_cut_short_is_dropped_and_can_be_written_again(tmp_path: Path, kept: int) -> None:
    file = tmp_path / "results.jsonl"
    filled(file, 3, 7)
    whole = file.read_bytes()
    first, second, _ = whole.split(b"\n")
    file.write_bytes(first + b"\n" + second[:kept])
    with Store(file) as store:
        assert store.dropped
        assert store.get(Counted(3)) is not None
        assert store.get(Counted(7)) is None
        store.add(Counted(7), Counted(7).result())
    assert file.read_bytes() == whole


def test_a_result_is_on_file_before_the_next_one_is_worked_out(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    with Store(file) as store:
        store.add(Counted(3), Counted(3).result())
        assert json.loads(file.read_text())["result"] == {"mistakes": 1.0 / 3.0}


@pytest.mark.parametrize("line", ["{}", "[]", "seven", '{"cell": {}, "result": {"mistakes": "few"}}'])
def test_a_line_that_is_no_result_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "results.jsonl"
    filled(file, 3)
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(StoreError, match=r"results\.jsonl, line 2: not a result"), Store(file):
        pass


def test_two_do_not_write_into_one_file(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    with Store(file), pytest.raises(StoreError, match="another process"), Store(file):
        pass
    filled(file, 3)  # the lock went with the first
