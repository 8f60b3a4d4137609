from __future__ import annotations

import numpy as np
import pytest

from bench.newest import by_labels, by_time

AT_ONCE = np.array([0, 3, 1, 4, 2, 5])
USERS = np.array([1, 2, 1])


def test_a_label_counts_half_after_the_half_life_in_labels() -> None:
    users = np.ones(4, dtype=np.int64)
    found = by_labels(np.array([0, 4, 1, 5, 2, 6, 3, 7]), users, np.array([1.0, 0.0, 0.5, 9.0]), 1.0)
    assert found[:, 0].tolist() == [0.0, 0.5, 0.25, 0.375]


def test_a_label_counts_half_after_the_half_life_in_time() -> None:
    found = by_time(AT_ONCE, USERS, np.array([0, 50, 100]), np.array([0.6, 9.0, 9.0]), 100.0)
    assert found[:, 0].tolist() == pytest.approx([0.0, 0.0, 0.3 / 1.5])


def test_a_label_that_has_not_come_is_not_known() -> None:
    late = np.array([0, 1, 2, 3, 4, 5])
    for found in (
        by_labels(late, USERS, np.ones(3), 1.0),
        by_time(late, USERS, np.array([0, 1, 2]), np.ones(3), 1.0),
    ):
        np.testing.assert_array_equal(found, 0.0)


def test_labels_may_come_in_another_order_than_their_events() -> None:
    users, times = np.ones(3, dtype=np.int64), np.array([0, 100, 300])
    crossed = np.array([0, 1, 4, 3, 2])
    found = by_time(crossed, users, times, np.array([1.0, 0.0, 0.0]), 100.0)
    # The late label of event 0 counts from the time of event 1 on.
    assert found[2, 0] == pytest.approx((1 / 3) / (2 / 3 + 1.0))
