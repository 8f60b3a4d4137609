"""Texts of a buffer are what lists of them would be."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records import texts
from pipeline.records.texts import Texts, joined_texts, key_texts
from tests.support.examples import examples

lines = st.lists(st.binary(max_size=9).map(lambda text: text.replace(b"\n", b"")), max_size=9)
ids = st.lists(st.integers(-(2**63), 2**63 - 1) | st.text(min_size=1, max_size=6), max_size=9)


@examples(200)
@given(pieces=st.lists(lines, min_size=1, max_size=4), data=st.data())
def test_they_are_selected_joined_and_copied(pieces: list[list[bytes]], data: st.DataObject) -> None:
    every = [text for piece in pieces for text in piece]
    rows = data.draw(st.lists(st.sampled_from(range(len(every))), max_size=9)) if every else []
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(every))] * 2)))
    held = [Texts.of(piece) if len(piece) % 2 else joined_texts(piece) for piece in pieces]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts, "_CHUNK", 3)
        for whole in (Texts.concat(held), Texts.packed(held), Texts.packed(held).rows(0, len(every))):
            assert [*whole] == [whole[row] for row in range(len(whole))] == every
            assert (len(whole), bool(whole)) == (len(every), bool(every))
            chosen = whole.select(np.array(rows, dtype=np.int64))
            assert [*chosen] == [*Texts.packed([chosen])] == [every[row] for row in rows]
            assert [*whole.rows(begin, end)] == whole[begin:end] == every[begin:end]


@examples(100)
@given(columns=st.tuples(ids, ids), data=st.data())
def test_ids_are_columns_of_texts(
    columns: tuple[list[int | str], list[int | str]], data: st.DataObject
) -> None:
    count = min(map(len, columns))
    events, users = (column[:count] for column in columns)
    rows = data.draw(st.lists(st.sampled_from(range(count)), max_size=5)) if count else []
    own = Texts.of_ids(events, [users])
    twice = Texts.concat([own, own.select(np.array(rows, dtype=np.int64))])
    decode = msgspec.json.Decoder(list[int | str]).decode
    for number, column in enumerate((events, users)):
        assert own.column(number).decode(decode) == column
        assert twice.column(number).decode(decode) == column + [column[row] for row in rows]
        assert [*key_texts(own.column(number))] == [str(each).encode() for each in column]


def test_a_missing_text_is_empty() -> None:
    assert [*joined_texts([b"a", None, b"b"], 8)] == [b"a", b"", b"b"]
