"""Whatever the columns of a table are called and hold, a draft fits it, or there is none."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import Stream
from pipeline.errors import DataError
from pipeline.sources.rows import read_rows
from pipeline.tools.stream.drafting import draft

USUAL = [
    "user_id",
    "id",
    "label",
    "y",
    "click",
    "time",
    "at",
    "price",
    "hour",
    "hour_of_day",
    "event_id",
    "cnt",
]
HOSTILE = [
    "score",
    "member",
    "prediction",
    "weight",
    "kind",
    "features",
    "signal",
    "watch_ratio",
    "1st",
    "",
    "x" * 60,
]
ODD = [
    'a"b',
    "c\\d",
    "new\nline",
    "tab\t",
    "\x7f",
    "A b",
    "a/b",
    "a~b",
    "Preis in \u20ac",
    "#",
    "]",
    "\u2028",
]
NAMES = st.sampled_from(USUAL + HOSTILE + ODD) | st.text(max_size=8)
TEXTS = ["a", "b", "yes", "no", 'a"b', "x\ny", "\\", "\x7f", ""]
VALUES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pl.Int64, st.integers(-3, 3) | st.none()),
    (pl.Int64, st.integers(0, 1)),
    (pl.Int64, st.integers(-(2**62), 2**62)),
    (pl.Float64, st.floats(-1e6, 1e6) | st.none()),
    (pl.Float64, st.floats()),
    (pl.Boolean, st.booleans() | st.none()),
    (pl.String, st.sampled_from(TEXTS) | st.none()),
    (pl.String, st.text(max_size=5)),
    (pl.String, st.just("2026-03-01T12:00:00Z")),
    (pl.String, st.dates().map("{:%m/%d/%Y}".format)),
    (pl.String, st.datetimes().map("{:%d.%m.%y %I:%M %p}".format)),
    (pl.Datetime("us"), st.datetimes() | st.none()),
    (pl.Date, st.dates()),
    (pl.Int64, st.dates().map(lambda day: int(f"{day:%Y%m%d}"))),
    (pl.Int64, st.integers(0, 23)),
    (pl.Int64, st.integers(1_772_366_400_000, 1_772_366_500_000)),
]


@st.composite
def frames(draw: Callable[[st.SearchStrategy[Any]], Any]) -> pl.DataFrame:
    rows = draw(st.integers(1, 30))
    columns = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=7, unique=True)):
        dtype, value = draw(st.sampled_from(VALUES))
        columns[name] = pl.Series(draw(st.lists(value, min_size=rows, max_size=rows)), dtype=dtype)
    return pl.DataFrame(columns)


@given(frame=frames())
def test_a_draft_is_a_definition_with_and_without_what_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, frame: pl.DataFrame
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    frame.write_parquet(path)
    try:
        text = draft(path, "some")
    except DataError:
        return
    stream = Stream.model_validate(tomllib.loads(text))
    assert read_rows(path, stream, 1_000).rows == frame.height
    lines = [line.removeprefix("# ") if re.match(r"# \w+ = \{", line) else line for line in text.split("\n")]
    assert len(Stream.model_validate(tomllib.loads("\n".join(lines))).features) >= len(stream.features)
