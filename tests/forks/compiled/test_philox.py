"""The generator gives NumPy's numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forks.compiled.philox import philox

words = st.integers(0, 2**64 - 1)


@given(first=words, second=words, uses=st.lists(words, max_size=3), count=st.integers(0, 11))
def test_the_numbers_are_those_of_numpy(first: int, second: int, uses: list[int], count: int) -> None:
    rows = philox(np.uint64(first), np.uint64(second), np.array(uses, dtype=np.uint64), count)
    assert rows.shape == (len(uses), count)
    key = np.array([first, second], dtype=np.uint64)
    for use, row in zip(uses, rows, strict=True):
        counter = np.array([0, 0, 0, use], dtype=np.uint64)
        expected = np.random.Philox(key=key, counter=counter).random_raw(count)
        np.testing.assert_array_equal(row, expected)
