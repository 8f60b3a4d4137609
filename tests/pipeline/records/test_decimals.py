"""Rows of numbers are written as msgspec writes them."""

from __future__ import annotations

import math
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.features import totals
from pipeline.records import decimals
from pipeline.records.decimals import encode_rows

ENCODER = msgspec.json.Encoder()

rounded = st.integers(-(10**15) + 1, 10**15 - 1).map(lambda units: units / 1e6)
small = st.integers(-2_000, 2_000).map(lambda units: units / 1e6)
features = (
    rounded | small | st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-6, -9e-6, 1e-5, 0.1, 999_999_999.999999])
)


def rows_of(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[list[list[float]]]:
    return st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=6)
    )


def plain(rows: list[list[float]]) -> list[bytes]:
    return [msgspec.json.encode(row) for row in rows]


@given(rows=rows_of(features))
def test_rounded_numbers(rows: list[list[float]]) -> None:
    with patch.object(decimals, "_encode_lines", side_effect=AssertionError("not compiled")):
        texts = encode_rows(np.array(rows))
    assert texts == plain(rows)
    assert all(len(number.partition(b".")[2]) <= 6 for text in texts for number in text[1:-1].split(b","))
    for text, row in zip(texts, rows, strict=True):
        assert np.array(msgspec.json.decode(text)).tobytes() == np.array(row).tobytes()


@given(rows=rows_of(features | st.floats()))
def test_any_numbers(rows: list[list[float]]) -> None:
    assert encode_rows(np.array(rows)) == plain(rows)


def test_every_number_of_millionths_up_to_three() -> None:
    numbers = np.arange(3_000_000).reshape(-1, 10) / 1e6
    for rows in (numbers, -numbers):
        assert encode_rows(rows) == ENCODER.encode_lines(rows.tolist()).split(b"\n")[:-1]


@pytest.mark.parametrize("odd", [1e-7, 0.1234567, 1e9, 1e300, math.inf, math.nan])
def test_one_number_that_is_not_of_the_kind(odd: float) -> None:
    rows = [[0.25, 0.5], [1.5, odd], [2.5, 3.5]]
    assert encode_rows(np.array(rows)) == plain(rows)


def test_nothing() -> None:
    assert encode_rows(np.empty((0, 3))) == []
    assert encode_rows(np.empty((2, 0))) == [b"[]", b"[]"]


def test_features_are_of_the_kind() -> None:
    assert totals.DECIMALS == decimals.DECIMALS
