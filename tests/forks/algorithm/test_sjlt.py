from __future__ import annotations

import numpy as np
import pytest

from forks.algorithm.sjlt import Sjlt


@pytest.mark.parametrize("blocks", [1, 3, 12])
def test_a_row_has_one_entry_of_equal_size_in_each_block(blocks: int) -> None:
    rows = Sjlt(12, blocks, seed=5).rows(np.arange(50)).dense().reshape(50, blocks, 12 // blocks)
    assert (np.count_nonzero(rows, axis=2) == 1).all()
    np.testing.assert_allclose(np.abs(rows).sum(axis=2), 1 / np.sqrt(blocks))


def test_a_row_depends_on_seed_and_serial_number_only() -> None:
    together = Sjlt(20, 2, seed=5).rows(np.array([3, 9, 4])).dense()
    assert (Sjlt(20, 2, seed=5).rows(np.array([9])).dense()[0] == together[1]).all()
    many = Sjlt(20, 2, seed=6).rows(np.arange(40)).dense()
    assert (many != Sjlt(20, 2, seed=5).rows(np.arange(40)).dense()).any()


def test_indices_and_signs_are_uniform() -> None:
    rows = Sjlt(10, 1, seed=0).rows(np.arange(4000)).dense()
    counts = np.count_nonzero(rows, axis=0)
    assert np.abs(counts - 400).max() < 5 * np.sqrt(400 * 0.9)
    assert abs(rows.sum()) < 5 * np.sqrt(4000)


def test_projection_is_the_product_with_the_transpose() -> None:
    rows = Sjlt(12, 3, seed=1).rows(np.arange(30))
    vector = np.random.default_rng(0).normal(size=30)
    np.testing.assert_allclose(rows.project(vector), rows.dense().T @ vector, atol=1e-14)


def test_rows_can_be_appended_and_taken_out() -> None:
    transform = Sjlt(12, 3, seed=1)
    rows = transform.rows(np.arange(5)).append(transform.rows(np.array([5])))
    expected = transform.rows(np.array([0, 1, 3, 4, 5])).dense()
    assert (rows.without(2).dense() == expected).all()
    assert (rows.row(5).dense() == expected[4:]).all()
