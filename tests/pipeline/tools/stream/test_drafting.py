"""Drafts of definitions: what is guessed from tables, and that the table can be replayed with it."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.stream import Stream
from pipeline.config.target_settings import BinarySettings
from pipeline.errors import ConfigError, DataError
from pipeline.sources.rows import read_rows
from pipeline.tools.stream.draft_guess import Known
from pipeline.tools.stream.drafting import draft

CHANCE = random.Random(1)
BEGIN = 1_772_366_400_000


def clicks(number: int) -> dict[str, Any]:
    ids = {"user_id": CHANCE.randrange(9), "advert_id": f"a{CHANCE.randrange(5)}"}
    return ids | {"time_ms": BEGIN + number, "is_click": number % 2, "price": 0.5 * number}


def deliveries(number: int) -> dict[str, Any]:
    return {
        "order": f"o{number}",
        "courier": {"id": f"c{CHANCE.randrange(9)}"},
        "restaurant": {"id": CHANCE.randrange(5)},
        "ordered_at": f"2026-03-01T12:00:{number % 60:02}Z",
        "arrived_at": "2026-03-01T12:30:00Z",
        "on_time": number % 3 > 0,
        "score": 1.0 + number,
    }


def ratings(number: int) -> dict[str, Any]:
    ids = {"member": f"m{CHANCE.randrange(9)}", "film": f"f{CHANCE.randrange(5)}"}
    return ids | {"timestamp": 1_772_366_400 + number, "rating": 0.5 * (number % 10)}


def drafted(folder: Path, rows: list[dict[str, Any]], suffix: str = ".jsonl") -> tuple[Stream, str, Path]:
    path, frame = folder / f"rows{suffix}", pl.DataFrame(rows)
    if suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_ndjson(path)
    text = draft(path, "some")
    return Stream.model_validate(tomllib.loads(text)), text, path


def test_a_duration_may_be_a_feature_though_a_ratio_may_be_a_label(tmp_path: Path) -> None:
    rows = [clicks(number) | {"duration": number**2 % 97, "watch_ratio": number / 50} for number in range(90)]
    stream, text, _ = drafted(tmp_path, rows)
    assert stream.features["duration"].kind == "number"
    assert "watch_ratio =" not in text


def test_columns_are_found_by_name_and_value(tmp_path: Path) -> None:
    stream, text, path = drafted(tmp_path, [clicks(number) for number in range(60)], ".csv")
    assert stream.entities == {"user_id": "/user_id", "advert_id": "/advert_id"}
    assert (stream.interactions.time, stream.interactions.time_unit) == ("/time_ms", "ms")
    assert isinstance(stream.target, BinarySettings)
    assert (stream.labels.value, stream.target.name, stream.target.above) == ("/is_click", "is_click", 0.5)
    assert "a replay numbers the rows" in text
    assert "a replay sends them --label-delay later" in text
    events = read_rows(path, stream, 1_000)
    assert (len(events), events.skipped) == (60, {})


def test_objects_booleans_and_times_of_labels_are_found(tmp_path: Path) -> None:
    stream, _, path = drafted(tmp_path, [deliveries(number) for number in range(60)])
    assert stream.interactions.event_id == stream.labels.event_id == "/order"
    assert stream.entities == {"courier": "/courier/id", "restaurant": "/restaurant/id"}
    assert (stream.interactions.time, stream.labels.time) == ("/ordered_at", "/arrived_at")
    assert stream.interactions.time_unit == stream.labels.time_unit == "iso8601"
    assert (stream.labels.value, stream.labels.value_kind) == ("/on_time", "boolean")
    assert len(read_rows(path, stream, 0)) == 60


def test_amounts_have_a_threshold_of_their_median(tmp_path: Path) -> None:
    stream, text, _ = drafted(tmp_path, [ratings(number) for number in range(100)], ".csv")
    assert stream.entities == {"member": "/member", "film": "/film"}
    assert stream.interactions.time_unit == "s"
    assert isinstance(stream.target, BinarySettings)
    assert (stream.labels.value, stream.target.above, stream.target.cap) == ("/rating", 2.25, 4.5)
    assert "# The median, and what one in twenty exceeds." in text


def test_other_candidates_stand_beside(tmp_path: Path) -> None:
    rows = [clicks(number) | {"shop_id": number % 4, "is_seen": number % 3 == 0} for number in range(60)]
    _, text, _ = drafted(tmp_path, rows)
    assert "# Other labels: /is_seen" in text
    assert "# Other ids: /" in text


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (Known(label="clicked"), "--label clicked: there is no such column. There are /user_id, /advert_id"),
        (Known(label="advert_id"), "--label advert_id: it has 5 different values of the type String"),
        (Known(time="price"), r"--time price: [0-9.]+ is no time"),
        (Known(event_id="/id"), "--event-id /id: there is no such column"),
        (Known(entities=["user_id", "shop"]), "--entity shop: there is no such column"),
    ],
)
def test_what_is_said_to_be_known_has_to_fit(tmp_path: Path, known: Known, message: str) -> None:
    pl.DataFrame([clicks(number) for number in range(90)]).write_csv(tmp_path / "rows.csv")
    with pytest.raises(DataError, match=message):
        draft(tmp_path / "rows.csv", "some", known)


def test_without_a_label_there_is_no_draft(tmp_path: Path) -> None:
    rows = [{"user_id": f"u{CHANCE.randrange(9)}", "word": f"w{CHANCE.randrange(9)}"} for _ in range(90)]
    with pytest.raises(DataError, match="no column looks like a label; name it with --label"):
        drafted(tmp_path, rows)


def test_what_is_known_is_not_guessed(tmp_path: Path) -> None:
    rows = [
        clicks(n) | {"seen": "no" if n % 3 else "yes", "shop": n % 7, "trace": f"t{n}"} for n in range(90)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "rows.csv")
    known = Known(label="/seen", time="time_ms", event_id="trace", entities=["shop", "user_id", "advert_id"])
    stream = Stream.model_validate(tomllib.loads(draft(tmp_path / "rows.csv", "some", known)))
    assert [*stream.entities.values()] == ["/shop", "/user_id", "/advert_id"]
    assert (stream.interactions.event_id, stream.interactions.time) == ("/trace", "/time_ms")
    assert (stream.labels.value, stream.labels.signals) == ("/seen", {"no": 0.0, "yes": 1.0})
    events = read_rows(tmp_path / "rows.csv", stream, 0)
    assert (len(events), events.skipped) == (90, {})


@pytest.mark.parametrize(
    ("texts", "positive"),
    [
        (("DOWN", "UP"), "UP"),
        (("no", "yes"), "yes"),
        (("-1", "1"), "1"),
        (("1", "2"), "2"),
        (("a", "b"), "b"),
    ],
)
def test_one_of_two_values_is_positive(tmp_path: Path, texts: tuple[str, str], positive: str) -> None:
    lines = [f"d{n % 7},{n**2 % 31},{texts[n % 3 == 0]}" for n in range(90)]
    (tmp_path / "rows.csv").write_text("device_id,load,state\n" + "\n".join(lines) + "\n")
    stream = Stream.model_validate(tomllib.loads(draft(tmp_path / "rows.csv", "some")))
    assert {name for name, value in stream.labels.signals.items() if value} == {positive}
    events = read_rows(tmp_path / "rows.csv", stream, 0)
    assert events.frame["watch_ratio"].sum() == 30


def test_many_numbers_are_predicted_and_what_makes_them_is_left_out(tmp_path: Path) -> None:
    chance = random.Random(4)
    rows = []
    for number in range(400):
        guests, members, hour = chance.randrange(50), chance.randrange(300), number % 24
        row = {"hour": hour, "warmth": chance.random(), "guests": guests, "members": members}
        rows.append(row | {"cnt": guests + members, "total": 3 * (guests + members) + chance.random()})
    stream, text, path = drafted(tmp_path, rows, ".csv")
    assert stream.target.kind == "regression"
    assert not stream.entities
    assert {name: each.kind for name, each in stream.features.items()} == {
        "hour": "category",
        "warmth": "number",
    }
    assert "Left out, as /guests and /members make the label" in text
    assert "Left out, as it goes with the label:\n# total" in text
    assert "rows are in the order of time" in text
    events = read_rows(path, stream, 10_000)
    assert events.frame["timestamp"].to_list() == [10_001 * number for number in range(400)]
    assert (events.frame["label_timestamp"] - events.frame["timestamp"]).unique().to_list() == [10_000]
    assert "There is no column for interactions.time, /time" in events.taken_for


def test_a_category_that_names_the_class_is_left_out(tmp_path: Path) -> None:
    chance = random.Random(8)
    rows = []
    for number in range(400):
        clicked = chance.random() < 0.3
        codes = {"page_type": chance.randrange(40), "end_code": 2 * chance.randrange(5) + clicked}
        rows.append({"user_id": f"u{number % 9}", **codes, "clicked": clicked})
    _, text, _ = drafted(tmp_path, rows)
    assert "Left out, as it goes with the label:\n# end_code" in text
    assert '\npage_type = { kind = "category"' in text


def test_features_are_of_the_kinds_that_their_values_say(tmp_path: Path) -> None:
    chance, words = random.Random(6), ["red", "blue", "cold", "warm", "wide", "thin"]
    rows = [
        {"user_id": f"u{number % 9}", "spent": round(chance.expovariate(1.0) ** 4, 3), "trace": f"t{number}"}
        | {"says": " ".join(chance.choices(words, k=6)), "zip": 10_000 + number % 90, "same": 1}
        | {
            "agent": f"a{chance.randrange(40)}" if number % 9 else None,
            "clicked": random.Random(number).random() < 0.5,
        }
        for number in range(300)
    ]
    stream, text, path = drafted(tmp_path, rows)
    assert stream.interactions.event_id == "/event_id"
    kinds = {name: each.kind for name, each in stream.features.items()}
    assert kinds == {"spent": "number", "says": "text", "zip": "category", "agent": "category"}
    assert 'spent = { kind = "number", field = "/spent", log = true }' in text
    assert 'agent = { kind = "category", field = "/agent", missing = "unknown" }' in text
    assert "# Left out, as values are all the same:\n#   /same\n" in text
    assert "# Left out, as values all differ, or are neither numbers nor text:\n#   /trace\n" in text
    assert len(read_rows(path, stream, 0)) == 300


def test_a_table_may_be_sorted_by_its_label(tmp_path: Path) -> None:
    rows = [clicks(number) | {"is_click": int(number > 15_000)} for number in range(20_000)]
    stream, *_ = drafted(tmp_path, rows, ".csv")
    assert stream.labels.value == "/is_click"


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("user_id,item_id,time_ms,label\n")
    with pytest.raises(DataError, match="there are no rows to look at"):
        draft(path, "some")


def test_the_command_writes_a_file_once(tmp_path: Path) -> None:
    *_, path = drafted(tmp_path, [clicks(number) for number in range(60)], ".csv")
    out = tmp_path / "Own Clicks.toml"
    shown = CliRunner().invoke(app, ["stream", "init", str(path), "--name", "Own Clicks"])
    assert shown.exit_code == 0
    written = CliRunner().invoke(
        app, ["stream", "init", str(path), "--name", "Own Clicks", "--out", str(out)]
    )
    assert written.exit_code == 0
    assert out.read_text() == shown.stdout
    assert Stream.model_validate(tomllib.loads(out.read_text())).name == "own_clicks"
    again = CliRunner().invoke(app, ["stream", "init", str(path), "--out", str(out)])
    assert isinstance(again.exception, ConfigError)
    assert "exists already" in str(again.exception)


def test_one_id_or_none_is_enough_and_other_fields_are_named_as_features(tmp_path: Path) -> None:
    rows = [
        {"device_id": f"d{n % 7}", "time_ms": 1_772_366_400_000 + n, "alarm": n % 3 == 0, "load": n / 7}
        | {"mode": None if n % 5 else "eco"}
        for n in range(300)
    ]
    stream, *_ = drafted(tmp_path, rows)
    assert stream.entities == {"device_id": "/device_id"}
    assert [*stream.features] == ["hour_of_day", "load", "mode"]
    without = [{name: value for name, value in row.items() if name != "device_id"} for row in rows]
    stream, *_ = drafted(tmp_path, without)
    assert not stream.entities
    assert [*stream.features] == ["hour_of_day", "load", "mode"]


def test_propensities_and_positions_are_known_by_their_names(tmp_path: Path) -> None:
    rows = [
        clicks(number)
        | {"propensity": 0.1 + number % 3 / 10, "position": 1 + number % 5, "score": 0.3 * number}
        for number in range(60)
    ]
    stream, _, path = drafted(tmp_path, rows)
    assert stream.interactions.propensity == "/propensity"
    assert stream.features["position"].kind == "category"
    assert stream.features["score_value"].kind == "number"
    assert "propensity" not in stream.features
    assert len(read_rows(path, stream, 0)) == 60
    rows = [each | {"propensity": 3.0} for each in rows]
    assert drafted(tmp_path, rows)[0].interactions.propensity is None


def test_a_few_cells_that_are_no_numbers_do_not_make_texts(tmp_path: Path) -> None:
    lines = [f"{number},{5 + number % 37},{number % 2}" for number in range(100)]
    lines[40], lines[60] = "40,n/a EUR,1", "60,7,?!"
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["row_id,price,bought", *lines]) + "\n")
    text = draft(path, "some")
    stream = Stream.model_validate(tomllib.loads(text))
    assert stream.features["price"].kind == "number"
    assert "# One value is no number, such as 'n/a EUR':\nprice = " in text
    assert "# One value is no number, such as '?!'.\nvalue = " in text
    assert "# 1 rows have none." in text
    events = read_rows(path, stream, 0)
    assert (len(events), events.skipped) == (99, {"no_value": 1})
    assert events.frame["features.price"].null_count() == 1
    bare = text.replace(", missing = 0.0, indicator = true", "")
    found = read_rows(path, Stream.model_validate(tomllib.loads(bare)), 0)
    assert found.examples["no_feature"] == "row 41: features.price at /price is 'n/a EUR'"


def test_the_last_column_is_no_label_if_it_has_ids_or_one_value(tmp_path: Path) -> None:
    rows = [{"x": number % 7, "won": number % 2, "shop_id": 3 + number % 4} for number in range(60)]
    assert drafted(tmp_path, rows)[0].labels.value == "/won"
    same = [{"x": number % 7, "click": 0} for number in range(60)]
    with pytest.raises(DataError, match="/click looks like the label, but has one value alone"):
        drafted(tmp_path, same)
