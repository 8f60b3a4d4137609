"""Lists of numbers are read as msgspec reads them."""

from __future__ import annotations

from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records import scanner
from pipeline.records.decimals import encode_rows
from pipeline.records.scanner import decode_lists
from tests.pipeline.records.test_decimals import features, plain, rows_of


def test_nothing() -> None:
    assert decode_lists([], 3).shape == (0, 3)


@given(rows=rows_of(features))
def test_rounded_numbers_are_read(rows: list[list[float]]) -> None:
    with patch.object(scanner, "_decode_numbers", side_effect=AssertionError("not compiled")):
        found = decode_lists(plain(rows), len(rows[0]))
    assert found.tobytes() == np.array(rows).tobytes()


@given(rows=rows_of(features | st.floats(allow_nan=False, allow_infinity=False)), spaces=st.booleans())
def test_any_numbers_are_read(rows: list[list[float]], spaces: bool) -> None:
    texts = [text.replace(b",", b" ,\n") if spaces else text for text in plain(rows)]
    assert decode_lists(texts, len(rows[0])).tobytes() == np.array(rows).tobytes()


NUMBER_LIKE = st.text("0123456789.,-+eE6[] ", max_size=12)


@given(texts=st.lists(NUMBER_LIKE.map(lambda text: f"[{text}]".encode()), min_size=1, max_size=3))
def test_what_is_no_row_is_refused_as_by_msgspec(texts: list[bytes]) -> None:
    def read_plainly() -> list[list[float]]:
        return [msgspec.json.decode(text, type=list[float]) for text in texts]

    try:
        rows = read_plainly()
        expected = np.array(rows) if {len(row) for row in rows} == {2} else None
    except msgspec.DecodeError:
        expected = None
    if expected is None:
        with pytest.raises(msgspec.DecodeError):
            decode_lists(texts, 2)
    else:
        assert decode_lists(texts, 2).tobytes() == expected.tobytes()


def test_every_number_of_millionths_up_to_three_is_read() -> None:
    numbers = np.arange(3_000_000).reshape(-1, 10) / 1e6
    for rows in (numbers, -numbers):
        assert decode_lists(encode_rows(rows), 10).tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    "text",
    [
        b"[01.5]",
        b"[.5]",
        b"[1.]",
        b"[-]",
        b"[]",
        b"[1.5",
        b"1.5]",
        b"[1.5]]",
        b"[1.5,]",
        b"[1.5e]",
        b"[12e-6",
    ],
)
def test_texts_that_nearly_are_rows_are_refused(text: bytes) -> None:
    for texts in ([text], [b"[0.5]", text], [text, b"[0.5]"]):
        with pytest.raises(msgspec.DecodeError):
            decode_lists(texts, 1)


def test_whole_numbers_and_exponents_are_read_as_by_msgspec() -> None:
    texts = [b"[3,12e-6]", b"[1e-6,1e-7]", b"[1E-6,-0.0]"]
    assert decode_lists(texts, 2).tolist() == [msgspec.json.decode(text) for text in texts]
