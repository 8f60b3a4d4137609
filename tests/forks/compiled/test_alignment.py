from __future__ import annotations

import numpy as np
import pytest

from forks.compiled.alignment import aligned_rows, aligned_zeros, padded_length


@pytest.mark.parametrize("shape", [(3, 5), (4, 8), (59, 59), (10, 0), (0, 7)])
def test_rows_begin_with_a_cache_line_and_end_with_zeros(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).normal(size=shape)
    copy = aligned_rows(matrix)
    assert copy.flags.c_contiguous
    assert copy.shape == (shape[0], padded_length(shape[1]))
    assert (copy[:, : shape[1]] == matrix).all()
    assert not copy[:, shape[1] :].any()
    assert all(row.ctypes.data % 64 == 0 for row in copy if row.size)


def test_aligned_memory_begins_with_a_cache_line() -> None:
    kept = [aligned_zeros(numbers) for numbers in range(1, 60)]
    assert all(memory.ctypes.data % 64 == 0 for memory in kept)
    assert [len(memory) for memory in kept] == list(range(1, 60))
