"""`forks evaluate` on the table of a stream: what it counts, and what it refuses."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.errors import DataError

DEFINITION = """
name = "orders"

[entities]
courier = "/courier/id"

[interactions]
topic = "orders"
event_id = "/order"
time = "/at"
time_unit = "s"

[labels]
topic = "arrivals"
event_id = "/order"
time = "/arrived"
time_unit = "s"
value = "/on_time"
value_kind = "boolean"

[target]
name = "on_time"
above = 0.5
cap = 1.0
scale = 0.5

[features]
km = { kind = "number", field = "/km" }
"""
TABLE = """
[tables.couriers]
topic = "couriers"
entity = "courier"

[tables.couriers.features]
rating = { kind = "number", field = "/rating" }
"""
ORDERS = 400
SMALL = ("--set", "budget=10", "--set", "cycle=50")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the definition of a stream, its configuration, and a table without times of labels."""
    monkeypatch.chdir(tmp_path)
    Path("orders.toml").write_text(DEFINITION)
    Path("forks.toml").write_text('stream = "orders.toml"\n')
    write(Path("orders.jsonl"), rows())
    return tmp_path


def rows() -> list[dict[str, Any]]:
    chance, found = random.Random(3), list[dict[str, Any]]()
    for number in range(ORDERS):
        km = 20.0 * chance.random()
        order = {"order": number, "at": 1_772_366_400 + 30 * number, "km": km}
        courier = {"id": f"c{chance.randrange(20)}"}
        found.append({**order, "courier": courier, "on_time": chance.random() > km / 20.0})
    return found


def write(file: Path, of: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(each) + "\n" for each in of))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def evaluated(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, *SMALL, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refusal(*arguments: object) -> str:
    error = run(*arguments).exception
    assert error is not None
    return f"{type(error).__name__}: {error}"


@pytest.mark.usefixtures("folder")
def test_a_table_of_any_kind_is_evaluated_event_by_event() -> None:
    found = evaluated("orders.jsonl", "--label-delay", "5m")
    assert found["labelled"] == found["events"] == ORDERS
    assert found["label_delay_median"] == 300_000.0
    assert found["mistakes"] < 0.4 < found["majority"]
    pl.read_ndjson("orders.jsonl").write_parquet("orders.parquet")
    flat = [{**each, "courier.id": each["courier"]["id"]} for each in rows()]
    pl.DataFrame(
        [{name: value for name, value in each.items() if name != "courier"} for each in flat]
    ).write_csv("orders.csv")
    for file in ("orders.parquet", "orders.csv"):
        again = evaluated(file, "--label-delay", "5m", "--config", "forks.toml")
        assert again | {"seconds": 0.0} == found | {"seconds": 0.0}


@pytest.mark.usefixtures("folder")
def test_the_text_says_what_was_read_and_what_was_written() -> None:
    result = run("orders.jsonl", "--limit", 100, *SMALL)
    assert "rows read      400\nrows skipped   0\n" in result.stdout
    assert "written       100 predictions · 100 outcomes" in result.stdout
    assert "running means of courier" in result.stdout
    assert "in topics" not in result.stdout


@pytest.mark.usefixtures("folder")
def test_settings_of_the_learner_can_differ_from_those_of_the_configuration() -> None:
    configured = Path("forks.toml").read_text() + '[learner]\npreset = "paper"\nbudget = 20\n'
    as_is = evaluated("orders.jsonl")
    Path("forks.toml").write_text(configured)
    paper = evaluated("orders.jsonl")
    assert paper["log_loss"] is None  # its loss has no probabilities
    assert evaluated("orders.jsonl", "--preset", "practical")["log_loss"] == as_is["log_loss"]
    assert evaluated("orders.jsonl", "--set", "loss=logistic")["log_loss"] is not None


@pytest.mark.usefixtures("folder")
def test_the_join_is_that_of_the_configuration() -> None:
    configured = Path("forks.toml").read_text()
    Path("forks.toml").write_text(f'{configured}[join]\nwindow = "1m"\n')
    found = evaluated("orders.jsonl", "--label-delay", "90s")
    assert (found["labelled"], found["expired"]) == (0, ORDERS)
    assert found["dead_letters"] == found["counters"]["late"] == ORDERS
    assert found["differences"] == []
    text = run("orders.jsonl", "--label-delay", "90s", *SMALL).stdout
    assert "No label was joined yet" in text


@pytest.mark.usefixtures("folder")
def test_labels_in_a_file_of_their_own_or_none_at_all() -> None:
    whole = rows()
    write(Path("orders.jsonl"), whole)
    expected = json.loads(run("orders.jsonl", *SMALL, "--json").stdout)
    write(Path("events.jsonl"), [{name: each[name] for name in each if name != "on_time"} for each in whole])
    labels = [{"order": each["order"], "on_time": each["on_time"]} for each in whole]
    write(Path("labels.jsonl"), labels[::-1])
    found = json.loads(run("events.jsonl", "--labels", "labels.jsonl", *SMALL, "--json").stdout)
    assert found["labelled"] == ORDERS
    assert found["log_loss"] == expected["log_loss"]
    write(Path("labels.jsonl"), labels[: ORDERS // 2])
    found = json.loads(run("events.jsonl", "--labels", "labels.jsonl", *SMALL, "--json").stdout)
    assert (found["predictions"], found["counters"]["labels"]) == (ORDERS, ORDERS // 2)
    assert found["losses"]["lost"] == 0
    error = run("orders.jsonl", "--labels", "none.jsonl", *SMALL).exception
    assert "none.jsonl: there is no such file" in str(error)


@pytest.mark.usefixtures("folder")
def test_rows_that_cannot_be_used_are_counted_by_reason() -> None:
    good = rows()
    bad = [good[0] | {"order": 1_000, name: None} for name in ("at", "km", "courier", "courier")]
    write(Path("orders.jsonl"), [*good, *bad, good[3]])
    result = run("orders.jsonl", *SMALL, "--json")
    found = json.loads(result.stdout)
    assert found["rows"] == ORDERS + 5
    assert found["skipped"] == {"no_feature": 1, "no_id": 2, "no_time": 1}
    assert found["predictions"] == ORDERS
    assert found["counters"]["duplicate_interactions"] == 1
    assert "rows skipped   4 (1 no feature, 2 no id, 1 no time)" in run("orders.jsonl", *SMALL).stdout
    assert (found["losses"]["lost"], found["losses"]["late"]) == (5, 0)
    error = result.exception
    assert isinstance(error, DataError)
    assert str(error).startswith("5 of 405 rows (1.2%) are lost")
    assert "1 no feature: row 402: features.km at /km is missing: say with the setting missing" in str(error)


@pytest.mark.usefixtures("folder")
def test_messages_that_cannot_be_used_fail_an_evaluation_after_its_figures() -> None:
    good = rows()
    bad = [{**each, "courier": {"id": "c" * 300}} for each in good[: ORDERS // 5]]
    write(Path("orders.jsonl"), [*bad, *good[ORDERS // 5 :]])
    result = run("orders.jsonl", *SMALL)
    assert "written       320 predictions" in result.stdout
    text = str(result.exception)
    assert text.startswith("80 of 400 rows (20.0%) are lost")
    assert "  160 invalid: Expected `str` of length <= 256 - at `$.courier.id`" in text
    assert "in arrivals: {" in text
    assert "orphan" not in text


@pytest.mark.usefixtures("folder")
def test_few_lost_rows_are_a_note_and_late_labels_a_warning() -> None:
    write(Path("orders.jsonl"), [*rows(), rows()[3]])
    result = run("orders.jsonl", *SMALL)
    assert result.exit_code == 0
    assert "note: 1 of 401 rows (0.2%) are lost" in result.stderr
    assert "1 duplicate interactions: point interactions.event_id and labels.event_id" in result.stderr
    write(Path("orders.jsonl"), rows())
    Path("forks.toml").write_text('stream = "orders.toml"\n[join]\nwindow = "1m"\n')
    late = run("orders.jsonl", *SMALL, "--label-delay", "90s")
    assert late.exit_code == 0
    assert "warning: 400 labels come more than join.window after their events" in late.stderr


@pytest.mark.usefixtures("folder")
def test_a_wrong_clock_is_refused_as_by_a_worker() -> None:
    write(Path("orders.jsonl"), [*rows(), rows()[0] | {"order": 1_000, "at": 9_000_000_000}])
    found = evaluated("orders.jsonl")
    assert found["counters"]["future"] == found["dead_letters"] == 2  # the order and its label
    assert (found["predictions"], found["differences"]) == (ORDERS, [])


@pytest.mark.usefixtures("folder")
def test_months_between_rows_cost_nothing() -> None:
    month, begin = 30 * 86_400, 600_000_000
    given = rows()
    for number, each in enumerate(given):
        each["at"] = begin + month * min(number, 100 + number // 4) + number
    write(Path("orders.jsonl"), given)
    found = evaluated("orders.jsonl", "--label-delay", "5m")
    assert (found["labelled"], found["dead_letters"]) == (ORDERS, 0)


@pytest.mark.usefixtures("folder")
def test_inputs_in_other_formats_are_evaluated_without_a_registry() -> None:
    found = evaluated("orders.jsonl")
    text = Path("orders.toml").read_text()
    Path("orders.toml").write_text(text.replace('topic = "orders"', 'topic = "orders"\nformat = "avro"'))
    Path("forks.toml").write_text(Path("forks.toml").read_text() + '[registry]\nurl = "http://127.0.0.1:1"\n')
    assert evaluated("orders.jsonl") | {"seconds": 0.0} == found | {"seconds": 0.0}


@pytest.mark.usefixtures("folder")
def test_live_tables_are_empty_and_a_note_says_so() -> None:
    text = Path("orders.toml").read_text()
    Path("orders.toml").write_text(text + TABLE)
    result = run("orders.jsonl", *SMALL, "--json")
    assert "the rows of couriers come from Kafka" in result.stderr
    assert json.loads(result.stdout)["labelled"] == ORDERS


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--permutation", "1"), "in the order of time"),
        (("--at-once",), "--at-once: labels of a stream come at the time in its table"),
        (("--delays",), "--delays: labels of a stream"),
        (("--label-delay", "soon"), "--label-delay 'soon'"),
        (("--config", "forks.toml", "--label", "on_time"), "labels.value"),
        (("--config", "nowhere.toml"), "there is no configuration file nowhere.toml"),
        (("--preset", "paper", "--set", "budget=many"), "learner.budget"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: tuple[str, ...], reason: str) -> None:
    result = run("orders.jsonl", *options)
    assert result.exit_code != 0
    assert reason in f"{result.exception} {result.output}"


@pytest.mark.usefixtures("folder")
def test_files_that_do_not_fit_are_refused() -> None:
    write(Path("other.jsonl"), [{"a": 1}])
    assert "other.jsonl: no column for /" in refusal("other.jsonl")
    assert refusal("nowhere.jsonl") == "DataError: nowhere.jsonl: there is no such file"
    write(Path("late.jsonl"), [{**each, "at": None} for each in rows()])
    assert refusal("late.jsonl") == (
        "DataError: none of the 400 rows can be used: 400 no time. row 1: interactions.time at /at is missing"
    )
    Path("forks.toml").unlink()
    assert "forks stream init orders.jsonl --out stream.toml" in refusal("orders.jsonl")
    Path("plain.toml").write_text("[join]\n")
    assert "it names no stream" in refusal("orders.jsonl", "--config", "plain.toml")
    assert "--label-delay 5s" in refusal("orders.libsvm", "--label-delay", "5s")


@pytest.mark.usefixtures("folder")
def test_examples_are_evaluated_beside_the_definition_of_a_stream() -> None:
    Path("examples.csv").write_text("x,clicked\n" + "".join(f"{n % 7},{n % 7 > 3:d}\n" for n in range(200)))
    examples = ("examples.csv", "--no-regret", *SMALL, "--json")
    with_label = run(*examples, "--label", "clicked")
    found = json.loads(with_label.stdout)
    assert found["features"] == 1
    assert [(each["name"], each["field"]) for each in found["advice"]] == [("leak", "feature 1")]
    assert "no column for /" in refusal(*examples)
    Path("forks.toml").unlink()
    assert json.loads(run(*examples).stdout)["events"] == 200


@pytest.mark.usefixtures("folder")
def test_the_text_of_a_run_ends_with_what_to_look_at() -> None:
    told = [
        {**each, "at": 1_772_323_200 + 86_400 * (number // 40), "late": each["on_time"]}
        for number, each in enumerate(rows())
    ]
    write(Path("orders.jsonl"), told)
    text = Path("orders.toml").read_text()
    Path("orders.toml").write_text(text + 'late = { kind = "boolean", field = "/late" }\n')
    result = run("orders.jsonl", *SMALL, "--label-delay", "5m")
    assert result.exit_code == 0
    assert result.stdout.endswith(
        "\nLook at\n"
        "- tied times: 400 events have 10 different times, up to 40 the same: 10 labels were learned before "
        "the next event, 390 after all of their time\n"
        "  try: point interactions.time to a field with finer times; if labels are known before the next "
        "event: forks evaluate orders.jsonl --label-delay 5m --set budget=10 --set cycle=50 "
        "--label-delay 0s\n"
        "- leak: late alone tells the label (correlation 1.000): is it known when an event happens?\n"
        "  try: leave features.late out if it is known later\n"
    )
    as_json = evaluated("orders.jsonl", "--label-delay", "0s")["advice"]
    assert [each["name"] for each in as_json] == ["leak"]
    assert as_json[0]["field"] == "features.late"
    Path("orders.toml").write_text(text)
    times = [{**each, "arrived": each["at"] + 90} for each in rows()]
    early = [{**times[0], "order": 1_000 + number, "arrived": 9} for number in range(2)]
    write(Path("orders.jsonl"), [*times, *early])
    assert [each["name"] for each in evaluated("orders.jsonl")["advice"]] == ["label_before_event"]


@pytest.mark.usefixtures("folder")
def test_labels_that_do_not_come_and_clocks_that_were_not_set_are_told() -> None:
    told = [each | {"on_time": None} if number % 4 else each for number, each in enumerate(rows())]
    told = [each | {"at": 86_400 + number} if number < 9 else each for number, each in enumerate(told)]
    write(Path("orders.jsonl"), told)
    missing, clock = evaluated("orders.jsonl")["advice"]
    assert (missing["name"], missing["field"]) == ("missing_labels", "join.on_missing")
    assert missing["seen"] == "300 of 400 rows have no label, and count as negative in the end"
    assert clock["name"] == "clock_not_set"
    assert clock["seen"].startswith("9 rows are of 1970-01-02")
    config = Path("forks.toml")
    config.write_text(config.read_text() + '[join]\non_missing = "drop"\n')
    assert [each["name"] for each in evaluated("orders.jsonl")["advice"]] == ["clock_not_set"]


@pytest.mark.usefixtures("folder")
def test_nothing_is_said_of_a_run_without_faults() -> None:
    assert evaluated("orders.jsonl", "--label-delay", "5m")["advice"] == []
    assert "Look at" not in run("orders.jsonl", *SMALL).stdout


@pytest.mark.usefixtures("folder")
def test_without_entities_the_running_mean_is_the_baseline() -> None:
    text = Path("orders.toml").read_text().replace('[entities]\ncourier = "/courier/id"\n', "")
    Path("orders.toml").write_text(text)
    rare = [{**each, "on_time": n % 9 == 0} for n, each in enumerate(rows())]
    write(Path("orders.jsonl"), rare)
    found = evaluated("orders.jsonl", "--label-delay", "1s")
    assert (found["target"], found["running_means"], found["running_means_auc"]) == ("on_time", None, None)
    assert found["positive"] == pytest.approx(45 / 400)
    assert found["running_mean"] == pytest.approx(found["majority"], abs=0.005)
    shown = run("orders.jsonl", *SMALL).stdout
    assert "\nrunning mean  " in shown
    assert "running means" not in shown
