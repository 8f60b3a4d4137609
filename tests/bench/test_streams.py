"""Files of other trades: what is read of them, what each learner is told, and what its figures say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from bench import streams
from bench.options import Options
from bench.stream_figures import LIMIT, Run, constant, figures
from bench.stream_own import run_own
from bench.stream_river import MODELS, river_learners
from bench.stream_tables import CLICKED, READERS, STEP, Table, tables
from bench.stream_vowpal import lines
from bench.streams import Progress, compare
from pipeline.config.target_settings import RegressionSettings
from pipeline.errors import ConfigError

MINUTES = RegressionSettings(kind="regression", name="minutes", offset=30.0, scale=10.0, cap=60.0)


def table(rows: int = 40) -> Table:
    """Every third site is clicked on."""
    numbers = np.arange(rows)
    return Table(
        "clicks",
        CLICKED,
        (numbers % 3 == 0).astype(np.float64),
        STEP * numbers,
        {"site": [f"s {number % 3}" for number in numbers], "app": ["a:b"] * rows},
        numbers={"price": np.where(numbers % 2 == 0, 0.5, np.nan)},
        logarithms=frozenset({"price"}),
    )


def minutes(rows: int = 40) -> Table:
    """The same events, each of which takes some minutes."""
    return replace(
        table(rows), target=MINUTES, labels=np.array([20.0 + 10.0 * (row % 3) for row in range(rows)])
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two rows of each file."""
    folder = tmp_path / "files"
    folder.mkdir()
    categories = "\t".join(f"v{number}" for number in range(25))
    counts = "\t".join(map(str, range(12)))
    names = "id,click,hour,C1,site_id"
    texts = {
        "criteo.tsv": f"1\t\t{counts}\t\t{categories}\n0\t5\t{counts}\tx\t{categories}\n",
        "avazu.csv": f"{names}\n10000169349117863715,0,14102100,1005,ab\n3,1,14102100,1005,cd\n",
        "elec2.csv": "0,2,0,0.05,0.4,0.003,0.4,0.4,UP\n0,2,0.02,0.06,0.5,0.003,0.4,0.4,DOWN\n",
        "bike_hour.csv": (
            "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,"
            "casual,registered,cnt\n1,1/1/2011,1,0,1,0,0,6,0,1,0.24,0.2,0.8,0,3,13,16\n"
            "2,1/1/2011,1,0,1,1,0,6,0,1,0.22,0.2,0.8,0,8,32,40\n"
        ),
        "deliveries.txt": (
            "ID,Delivery_person_ID,Delivery_person_Age,Delivery_person_Ratings,Restaurant_latitude,"
            "Restaurant_longitude,Delivery_location_latitude,Delivery_location_longitude,Type_of_order,"
            "Type_of_vehicle,Time_taken(min)\n1,D2,37,4.9,22,75,23,76,Snack ,motorcycle ,24\n"
            "2,D3,30,4.5,12,77,13,78,Meal ,scooter ,33\n"
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return tmp_path


def test_each_file_is_read_with_all_that_is_known_of_an_event(files: Path) -> None:
    found = {name: read() for name, read in tables(Options(None, files, quiet=True)).items()}
    assert [*found] == [*READERS]
    assert {name: each.labels.tolist() for name, each in found.items()} == {
        "criteo": [1.0, 0.0],
        "avazu": [0.0, 1.0],
        "elec2": [1.0, 0.0],
        "bike": [16.0, 40.0],
        "deliveries": [24.0, 33.0],
    }
    counts = {name: (len(each.categories), len(each.numbers)) for name, each in found.items()}
    assert counts == {
        "criteo": (26, 13),
        "avazu": (2, 0),
        "elec2": (2, 6),
        "bike": (8, 4),
        "deliveries": (3, 6),
    }
    assert found["criteo"].categories["c1"] == ["none", "x"]
    np.testing.assert_array_equal(found["criteo"].numbers["i1"], [np.nan, 5.0])
    assert found["deliveries"].categories["type_of_order"] == ["Snack", "Meal"]
    assert np.diff(found["bike"].times).tolist() == [3_600_000]
    assert np.diff(found["avazu"].times).tolist() == [STEP]
    assert not {"cnt", "casual", "registered"} & {*found["bike"].categories, *found["bike"].numbers}
    assert len(found["elec2"].first(1)) == len(found["elec2"].first(1).numbers["period"]) == 1


def test_the_lines_of_vowpal_wabbit_have_a_namespace_for_each_category() -> None:
    assert [*lines(table(2))] == [
        "1 |a site=s_0 |b app=a_b |Z price:0.4054651081081644",
        "-1 |a site=s_1 |b app=a_b |Z price:0.0",
    ]
    assert next(lines(minutes(2))).startswith("20.0 |a ")


def test_other_learners_get_the_local_hour_as_a_sine_and_a_cosine() -> None:
    hours = np.array([0, 6, 12]) * 3_600_000
    given = replace(table(3), times=hours, cycles=("hour", "weekday"), utc_offset="+06:00").features()
    np.testing.assert_allclose(given["hour_sine"], [1.0, 0.0, -1.0], atol=1e-12)
    np.testing.assert_allclose(given["hour_cosine"], [0.0, -1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(given["weekday_sine"], np.sin(2 * np.pi * 3 / 7))


def test_the_constant_is_made_of_the_labels_before() -> None:
    np.testing.assert_allclose(constant(table(3)), [0.0, np.log(3.0), 0.0], atol=1e-12)
    assert constant(minutes(3)).tolist() == [30.0, 25.0, (30.0 + 20.0 + 30.0) / 3]


def test_figures_are_of_clipped_scores_and_of_the_worst_tenth() -> None:
    given = table(40)
    scores = np.where(given.labels > 0.5, 1e9, -1e9)
    perfect = figures(given, Run(scores, 0.004))
    assert (perfect["mistakes"], perfect["auc"], perfect["microseconds"]) == (0.0, 1.0, 100.0)
    scores[-4:] *= -1.0
    worse = figures(given, Run(scores, 0.0))
    assert worse["mistakes"] == 10.0
    assert worse["log_loss"] == pytest.approx(0.1 * LIMIT, rel=1e-4)
    base = np.mean((constant(given)[-4:] > 0.0) != given.labels[-4:])
    assert worse["worst_tenth"]["mistakes"] == pytest.approx(100.0 - 100.0 * base)


def test_figures_of_numbers_are_in_the_unit_of_the_labels() -> None:
    given = minutes(40)
    found = figures(given, Run(given.labels + 2.0, 0.0))
    assert (found["mae"], found["mean_error"]) == (2.0, 2.0)
    assert found["worst_tenth"]["mae"] < 0.0


def test_a_prediction_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="clicks: 1 predictions are no numbers"):
        figures(table(2), Run(np.array([0.0, np.nan]), 0.0))


@pytest.mark.slow
@pytest.mark.parametrize("given", [table(400), minutes(400)])
def test_this_project_predicts_each_row_before_its_label(given: Table) -> None:
    done = list[int]()
    found = run_own(given, done.append)
    assert done[-1] == 400
    assert found.predicted[0] == pytest.approx(0.0 if given.target == CLICKED else MINUTES.offset)
    late = slice(300, None)
    if given.positive is None:
        assert np.abs(found.predicted - given.labels)[late].mean() < 1.0
    else:
        assert ((found.predicted > 0.0) == given.positive)[late].all()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("given", [table(30), minutes(30)])
def test_each_learner_of_river_takes_classes_and_numbers(name: str, given: Table) -> None:
    learner = river_learners(lambda _: None)[name]
    found = learner(given).predicted
    assert found.shape == (30,)
    assert found[0] == 0.0


def test_the_best_of_a_peer_has_the_least_loss() -> None:
    given = table(40)
    signs = np.where(given.labels > 0.5, 1.0, -1.0)
    learners = {
        "forks": lambda _: Run(signs, 0.0),
        "river good": lambda _: Run(signs, 0.0),
        "river bad": lambda _: Run(-signs, 0.0),
    }
    found = compare(given, learners, Progress(Options(None, Path(), quiet=True)))
    assert (found["rows"], found["majority"], found["best of river"]) == (40, 35.0, "river good")
    assert "best of vowpal_wabbit" not in found


def test_without_vowpal_wabbit_the_benchmark_ends_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def install(*, quiet: bool) -> NoReturn:
        raise ConfigError(f"no network, {quiet}")

    monkeypatch.setattr(streams, "vowpal_learners", install)
    with pytest.raises(SystemExit, match="there is no Vowpal Wabbit to compare with: no network, True"):
        streams.run(Options(None, Path(), quiet=True))
