"""What is simulated lies below what no schedule exceeds, and reaches it where nothing has to wait."""

from __future__ import annotations

import numpy as np
import pytest

from bench import growth
from bench.growth import Costs, best_number, simulate

COSTS = Costs(thread=20.0, clients=6.0, broker=9.0)
TOTAL = 35.0


def bound(cores: int, workers: int) -> float:
    """Events a second that no schedule exceeds."""
    return 1e6 * min(workers / COSTS.thread, cores / TOTAL)


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 1), (2, 4), (4, 2), (16, 12), (16, 32)])
def test_no_more_than_the_bound_and_not_much_less(cores: int, workers: int) -> None:
    most = bound(cores, workers)
    assert 0.8 * most < simulate(COSTS, cores, workers, 2_500) < 1.03 * most


def test_without_variation_one_core_does_nothing_but_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "VARIATION", 1e-4)
    assert simulate(COSTS, 1, 3, 1_000) == pytest.approx(1e6 / TOTAL, rel=0.02)
    assert simulate(COSTS, 100, 3, 1_000) == pytest.approx(3e6 / COSTS.thread, rel=0.01)


def test_a_transaction_waits_for_its_batch_and_for_the_one_before() -> None:
    computing, committing = np.array([[1.0, 1.0, 1.0]]), np.array([[3.0, 1.0, 1.0]])
    assert growth._ends(computing, committing, 2).tolist() == [[4.0, 5.0, 6.0]]
    assert growth._ends(computing, committing, 1)[0, -1] == pytest.approx(8.0)


def test_more_cores_do_more_with_more_workers() -> None:
    found = [best_number(COSTS, cores, 2_500) for cores in (2, 4, 16)]
    workers, rates = zip(*found, strict=True)
    assert sorted(workers) == [*workers]
    assert rates[1] > 1.8 * rates[0]
    assert rates[2] > 3.6 * rates[1]
