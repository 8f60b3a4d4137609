"""What times in a table are taken for, and that a draft reads them."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.config.stream import Stream
from pipeline.errors import DataError
from pipeline.sources.rows import read_rows
from pipeline.tools.stream.draft_guess import Known
from pipeline.tools.stream.draft_times import time_guess
from pipeline.tools.stream.drafting import draft

TIMES = [datetime(2025, 3, 1, 0, 6, tzinfo=UTC) + number * timedelta(hours=5) for number in range(90)]
MILLISECONDS = [int(time.timestamp() * 1000) for time in TIMES]


def drafted(
    folder: Path, column: list[Any], known: Known | None = None, **more: list[Any]
) -> tuple[Stream, str, Path]:
    path = folder / "rows.csv"
    rows = {"at_time": column, "price": [number * 37 % 11 / 2 for number in range(len(column))]}
    pl.DataFrame(rows | more | {"label": [number % 2 for number in range(len(column))]}).write_csv(path)
    text = draft(path, "some", known or Known())
    return Stream.model_validate(tomllib.loads(text)), text, path


@pytest.mark.parametrize(
    ("format_", "unit", "said"),
    [
        ("%Y-%m-%dT%H:%M:%SZ", "iso8601", None),
        ("%Y-%m-%d %H:%M", "iso8601", None),
        ("%Y%m%dT%H%M%SZ", "iso8601", None),
        ("%m/%d/%Y %H:%M", "text", "%m/%d/%Y %H:%M"),
        ("%d/%m/%Y %H:%M:%S", "text", "%d/%m/%Y %H:%M:%S"),
        ("%m/%d/%Y %I:%M %p", "text", "%m/%d/%Y %I:%M %p"),
        ("%d.%m.%Y %H:%M", "text", "%d.%m.%Y %H:%M"),
        ("%d-%b-%y %H:%M", "text", "%d-%b-%y %H:%M"),
        ("%d/%b/%Y:%H:%M:%S +0000", "text", "%d/%b/%Y:%H:%M:%S %z"),
        ("%Y%m%d%H%M", "text", "%Y%m%d%H%M"),
        ("%Y%m%d%H%M%S", "text", "%Y%m%d%H%M%S"),
        ("%s", "s", None),
        ("%s000", "ms", None),
        ("%s000000", "us", None),
        ("%s000000000", "ns", None),
    ],
)
def test_times_are_found_and_read(format_: str, unit: str, said: str | None, tmp_path: Path) -> None:
    column = [
        time.strftime(format_.replace("%s", str(int(time.timestamp())))).replace("/0", "/") for time in TIMES
    ]
    stream, text, path = drafted(tmp_path, column)
    interactions = stream.interactions
    assert (interactions.time, interactions.time_unit, interactions.time_format) == ("/at_time", unit, said)
    assert ("UTC is a guess" in text) == (interactions.utc_offset == 0)
    events = read_rows(path, stream, 0)
    assert events.skipped == {}
    assert events.frame["timestamp"].to_list() == MILLISECONDS


def test_days_beside_an_hour_are_a_time(tmp_path: Path) -> None:
    days = [f"{time.month}/{time.day}/{time.year}" for time in TIMES]
    stream, text, path = drafted(tmp_path, days, hr=[time.hour for time in TIMES])
    assert (stream.interactions.time, stream.interactions.time_of_day) == ("/at_time", "/hr")
    assert 'kind = "hour", utc_offset = "+00:00", encoding = "category"' in text
    found = read_rows(path, stream, 0).frame["timestamp"].to_list()
    assert found == [time - 6 * 60_000 for time in MILLISECONDS]


def test_a_time_that_many_rows_share_is_not_their_order(tmp_path: Path) -> None:
    stream, text, path = drafted(tmp_path, [f"3/{1 + number // 15}/2025" for number in range(300)])
    assert stream.interactions.time == "/time"
    assert "Rows share the same /at_time" in text
    assert read_rows(path, stream, 0).frame["timestamp"].is_sorted()


def test_what_no_value_decides_is_asked_for(tmp_path: Path) -> None:
    days = [f"{1 + number:02}/{1 + number:02}/2025" for number in range(11)]
    with pytest.raises(DataError, match=r"--time-format '%m/%d/%Y' or --time-format '%d/%m/%Y'"):
        drafted(tmp_path, days)
    for format_ in ("%m/%d/%Y", "%d/%m/%Y"):
        stream, _, _ = drafted(tmp_path, days, Known(time="at_time", time_format=format_))
        assert stream.interactions.time_format == format_


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (Known(time_format="%Q"), "--time-format %Q: %Q is no directive"),
        (Known(time="at_time", time_format="%Y"), "--time-format %Y: a format says the month once"),
        (Known(time="at_time", time_format="%d.%m.%Y"), r"/at_time is not written so, such as '2025"),
        (Known(time="price"), r"--time price: [0-9.]+ is no time that is known. Say how it is written"),
    ],
)
def test_what_is_said_of_times_has_to_fit(known: Known, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        drafted(tmp_path, [time.isoformat() for time in TIMES], known)


@pytest.mark.parametrize(
    "values",
    [
        ["a1", "b2"],
        ["1.5.2", "2.1.3"],
        [1005, 1002, 1010],
        [100_084, 100_128],
        [22.5, 23.0],
        [True, False],
        [None, None],
        ["", "x"],
        ["9" * 200],
        [20250301, 20251301],
    ],
)
def test_other_values_are_no_times(values: list[Any]) -> None:
    assert time_guess(pl.Series(values)) is None


def test_the_order_of_rows_decides_where_values_do_not() -> None:
    guess = time_guess(pl.Series(["05/01/2025", "02/02/2025", "03/02/2025", "01/03/2025"]))
    assert guess is not None
    assert (guess.format, guess.other) == ("%d/%m/%Y", None)


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_typed_times_say_their_zone_or_the_draft_does(zone: str | None, tmp_path: Path) -> None:
    times = pl.Series([time.replace(tzinfo=None) for time in TIMES], dtype=pl.Datetime("us"))
    path = tmp_path / "rows.parquet"
    column = times if zone is None else times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    pl.DataFrame({"at_time": column, "label": [0, 1] * 45}).write_parquet(path)
    text = draft(path, "some")
    assert ("UTC is a guess" in text) == (zone is None)
    events = read_rows(path, Stream.model_validate(tomllib.loads(text)), 0)
    assert events.frame["timestamp"].to_list() == MILLISECONDS
    bare = Stream.model_validate(tomllib.loads(text.replace('utc_offset = "+00:00"\n', "")))
    assert (read_rows(path, bare, 0).skipped == {"no_time": 90}) == (zone is None)


def test_a_duration_that_ends_when_the_label_is_known_is_no_feature(tmp_path: Path) -> None:
    column = [time.isoformat() for time in TIMES]
    later = [(time + timedelta(minutes=5 + number % 13)).isoformat() for number, time in enumerate(TIMES)]
    seconds = [60 * (5 + number % 13) for number in range(len(TIMES))]
    stream, text, _ = drafted(tmp_path, column, dropoff_time=later, lasted=seconds)
    assert (stream.interactions.time, stream.labels.time) == ("/at_time", "/dropoff_time")
    assert "# Left out, as it is the time from /at_time to /dropoff_time:\n# lasted = " in text
    assert set(stream.features) == {"hour_of_day", "price"}
    stream, _, _ = drafted(tmp_path, later, dropoff_time=column, lasted=seconds)
    assert stream.labels.time != "/dropoff_time"


def test_labels_have_no_times_where_rows_have_none(tmp_path: Path) -> None:
    days = [f"3/{1 + number // 15}/2025" for number in range(300)]
    later = [f"2025-03-{20 + number // 60}" for number in range(300)]
    stream, _, path = drafted(tmp_path, days, label_time=later)
    assert (stream.interactions.time, stream.labels.time) == ("/time", "/label_time_")
    assert len(read_rows(path, stream, 0)) == 300
