"""Records are put together from the texts of their columns."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.column_encoder import ColumnEncoder
from pipeline.records.texts import Texts
from tests.support.examples import examples


class Renamed(msgspec.Struct, rename={"name": "a/b c", "sequence": "é"}):
    name: str | None
    sequence: int
    absent: int | None = None


class Single(msgspec.Struct):
    name: str


lengths = st.integers(0, 40).map(lambda length: "x" * length)


@examples(200)
@given(rows=st.lists(st.tuples(lengths | st.text() | st.none(), st.integers()), min_size=1, max_size=9))
def test_any_lengths(rows: list[tuple[str | None, int]]) -> None:
    names, sequences = zip(*rows, strict=True)
    texts, name_begins = ColumnEncoder(Renamed).encode(len(rows), [names, sequences])
    expected = [msgspec.json.encode({"a/b c": name, "é": sequence}) for name, sequence in rows]
    assert [*texts] == expected
    ends = (name_begins - texts.begins).tolist()
    assert [text[end:] for text, end in zip(expected, ends, strict=True)] == [
        f'"é":{sequence}}}'.encode() for sequence in sequences
    ]


@examples(200)
@given(data=st.data(), count=st.integers(1, 9))
def test_prefixes_are_parts_of_a_buffer(data: st.DataObject, count: int) -> None:
    def drawn(values: st.SearchStrategy[str]) -> list[str]:
        return data.draw(st.lists(values, min_size=count, max_size=count))

    heads, names = drawn(lengths), drawn(lengths)
    rests = drawn(st.sampled_from(["}", ',"more":1}']))
    whole = Texts.of([f"{{{each},|".encode() for each in heads])
    prefixes = Texts(whole.text, whole.begins, whole.ends - 1)
    encoder = ColumnEncoder(Single, behind_prefix=True)
    for given_rests in (None, "".join(f"{rest}\n" for rest in rests).encode()):
        texts, _ = encoder.encode(count, [names], prefixes, given_rests)
        assert [text.decode() for text in texts] == [
            f'{{{head},"name":"{name}"{rest if given_rests else "}"}'
            for head, name, rest in zip(heads, names, rests, strict=True)
        ]


def test_columns_of_other_lengths_are_refused() -> None:
    encoder = ColumnEncoder(Renamed)
    with pytest.raises(AssertionError, match="one length"):
        encoder.encode(2, [["a", "b"], [1]])
    with pytest.raises(AssertionError, match="a column for each"):
        encoder.encode(2, [["a", "b"]])
    with pytest.raises(AssertionError, match="one length"):
        encoder.encode(1, [b'"a"\n"b"\n', [1]])
