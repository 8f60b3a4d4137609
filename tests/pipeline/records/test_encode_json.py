"""The JSON of orjson is that of msgspec: byte for byte, but for floats of 1e16 and more."""

from __future__ import annotations

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.encoding import encode, encode_json
from pipeline.task.state import SnapshotReference

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(-9.9e15, 9.9e15)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(
    SCALARS,
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(codec="utf-8")), children),
    max_leaves=20,
)


@given(VALUES)
def test_it_gives_the_bytes_of_encode(value: object) -> None:
    assert encode_json(value) == encode(value)


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        9.9e15,
        1e-5,
        1e-7,
        5e-324,
        -0.0,
        float("nan"),
        {7: "a key that is a number"},
        '\x00\x1f\x7f\u2028"\\/é😀',
        b"bytes",
        ("a", 1),
    ],
)
def test_it_gives_the_bytes_of_encode_at_the_edges(value: object) -> None:
    assert encode_json(value) == encode(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_reads_back_with_the_same_bits(value: float) -> None:
    assert struct.pack("d", msgspec.json.decode(encode_json(value), type=float)) == struct.pack("d", value)


def test_a_struct_keeps_the_order_and_the_names_of_its_fields() -> None:
    reference = SnapshotReference(chunks=[5, 6], sha256="00", slot=1, outcomes_learned=3, outcome_offset=4)
    assert encode_json(reference) == encode(reference)
    assert msgspec.json.decode(encode_json(reference), type=SnapshotReference) == reference
