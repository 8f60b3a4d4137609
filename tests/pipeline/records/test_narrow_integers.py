"""Integers come back as they were, whatever they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.narrow_integers import NarrowIntegers

LARGEST = 2**61
integers = st.one_of(
    st.integers(-LARGEST, LARGEST),
    st.sampled_from([0, 2**16 - 1, 2**16, 2**32 - 1, 2**32]).flatmap(
        lambda most: st.integers(most - 2, most + 2)
    ),
)
batches = st.lists(st.lists(integers, max_size=4), max_size=6)


def rows_of(batch: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(batch, dtype=np.int64)


@given(drawn=batches, data=st.data())
def test_integers_come_back(drawn: list[list[int]], data: st.DataObject) -> None:
    narrow, expected = NarrowIntegers(), list[int]()
    for batch in drawn:
        narrow.append(rows_of(batch))
        expected += batch
        assert narrow[:].tolist() == expected
        assert len(narrow) == len(expected)
    kept = sorted(data.draw(st.sets(st.integers(0, len(expected) - 1))) if expected else ())
    narrow.keep(rows_of(kept))
    assert narrow[:].tolist() == [expected[row] for row in kept]


@given(drawn=batches, wanted=st.lists(integers, max_size=8))
def test_what_ascends_is_searched(drawn: list[list[int]], wanted: list[int]) -> None:
    narrow, ascending = NarrowIntegers(), sorted(each for batch in drawn for each in batch)
    narrow.append(rows_of(ascending))
    assert narrow.search(rows_of(wanted)).tolist() == np.searchsorted(ascending, wanted).tolist()


def test_they_are_as_narrow_as_can_be() -> None:
    for spread, size in ((2**16 - 1, 2), (2**16, 4), (2**32 - 1, 4), (2**32, 8)):
        narrow = NarrowIntegers()
        narrow.append(np.array([10**12, 10**12 + spread]))
        assert narrow.bytes_each == size
    narrow.append(np.array([3]))
    narrow.keep(np.array([0]))
    assert narrow.bytes_each == 2


def test_rows_are_set_to_the_lowest() -> None:
    narrow = NarrowIntegers(0)
    narrow.append(np.array([7, 8, 9]))
    narrow.set(np.array([0, 2]), 0)
    assert narrow[:].tolist() == [0, 8, 0]
