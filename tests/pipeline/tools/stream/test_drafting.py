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
        "ordered_at": "2026-03-01T12:00:00Z",
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
    rows = [clicks(number) | {"duration": 3 * number + 7, "watch_ratio": number / 50} for number in range(60)]
    _, text, _ = drafted(tmp_path, rows)
    assert '# duration = { kind = "number", field = "/duration" }' in text
    assert "# watch_ratio =" not in text


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
    ("lacking", "message"),
    [
        (["time_ms"], "no column looks like a time; there are /user_id"),
        (["is_click", "price"], "no column looks like a label"),
        (["time_ms", "advert_id", "is_click", "price"], "a time nor a label"),
    ],
)
def test_what_is_not_found_is_named(tmp_path: Path, lacking: list[str], message: str) -> None:
    rows = [{key: value for key, value in clicks(n).items() if key not in lacking} for n in range(60)]
    with pytest.raises(DataError, match=message):
        drafted(tmp_path, rows)


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
    stream, text, _ = drafted(tmp_path, rows)
    assert stream.entities == {"device_id": "/device_id"}
    assert '# load = { kind = "number", field = "/load" }' in text
    assert not stream.features
    without = [{name: value for name, value in row.items() if name != "device_id"} for row in rows]
    stream, text, _ = drafted(tmp_path, without)
    assert not stream.entities
    assert [*stream.features] == ["hour"]
