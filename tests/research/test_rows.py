from __future__ import annotations

import csv
import io

import pytest

from research.experiments import as_csv, rows_of
from research.harness.learners import spec_of
from research.harness.printed import Printed
from research.harness.streams import Permuted
from research.harness.trials import Result, StreamTrial, Trial
from tests.research.invented import Invented

PRINTED = {"one": {"A": Printed(10.0, 1.0, 0.5)}}


def trial(stream: str, learner: str, run: int, **key_columns: float) -> Trial:
    spec = spec_of(learner, "perceptron", 50)
    return StreamTrial(Permuted(Invented(stream)), spec, run, tuple(key_columns.items()))


def result(mistakes: float) -> Result:
    return {"mistakes": mistakes, "mistakes_authors": mistakes - 1.0, "majority": 30.0, "seconds": 0.25}


def test_runs_become_mean_and_deviation_beside_the_papers_figure() -> None:
    found = [(trial("one", "A", 0), result(10.0)), (trial("one", "B", 0), result(40.0))]
    found += [(trial("one", "A", 1), result(20.0)), (trial("two", "A", 0), result(7.0))]
    rows = rows_of(found, PRINTED)
    assert [(row.stream, row.learner, row.runs) for row in rows] == [
        ("one", "A", 2),
        ("one", "B", 1),
        ("two", "A", 1),
    ]
    assert rows[0].as_object() == {
        "stream": "one",
        "learner": "A",
        "budget": 50,
        "runs": 2,
        "mistakes": 15.0,
        "mistakes_sd": 5.0,
        "mistakes_authors": 14.0,
        "mistakes_authors_sd": 5.0,
        "majority": 30.0,
        "seconds": 0.25,
        "seconds_sd": 0.0,
        "paper": 10.0,
        "paper_sd": 1.0,
        "paper_seconds": 0.5,
    }
    assert rows[1].as_object()["paper"] is None


def test_trials_with_other_key_columns_are_rows_of_their_own() -> None:
    rows = rows_of(
        [(trial("one", "A", 0, rate=0.5), result(1.0)), (trial("one", "A", 0, rate=0.1), result(2.0))], {}
    )
    assert [row.as_object()["rate"] for row in rows] == [0.5, 0.1]


def test_what_an_experiment_does_not_measure_is_null() -> None:
    (row,) = rows_of([(trial("one", "A", 0), {"seconds": 2.0})], {})
    assert row.as_object()["mistakes"] is None
    assert row.as_object()["majority"] is None


def test_a_csv_has_all_columns_of_all_rows() -> None:
    found = [(trial("one", "A", 0), result(10.0)), (trial("two", "A", 0), {**result(20.0), "place_1": 50.0})]
    lines = list(csv.DictReader(io.StringIO(as_csv(rows_of(found, PRINTED)))))
    assert [line["place_1"] for line in lines] == ["", "50.0"]
    assert [line["paper"] for line in lines] == ["10.0", ""]
    assert float(lines[1]["mistakes"]) == pytest.approx(20.0)
