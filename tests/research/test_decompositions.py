from __future__ import annotations

import numpy as np
import pytest

from research.experiments.decompositions import METHODS, DecompositionTrial, changes, randomised_svd


def test_random_vectors_find_a_matrix_of_low_rank_exactly() -> None:
    chance = np.random.default_rng(0)
    basis = np.linalg.qr(chance.standard_normal((40, 5)))[0]
    matrix = basis * np.array([5.0, -4.0, 3.0, 2.0, -1.0]) @ basis.T
    found = randomised_svd(matrix, 5, chance)
    np.testing.assert_allclose(found.values, [5.0, -4.0, 3.0, 2.0, -1.0])
    np.testing.assert_allclose(found.vectors * found.values @ found.vectors.T, matrix, atol=1e-12)


def test_changes_are_what_they_say_and_keep_the_matrix_symmetric() -> None:
    matrix = np.eye(6)
    expected = np.eye(6)
    for A, B in changes(matrix, 4, np.random.default_rng(0)):
        assert A.shape == B.shape == (6, 3)
        expected = expected + A @ B.T
    np.testing.assert_allclose(matrix, expected)
    np.testing.assert_allclose(matrix, matrix.T)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_follows_the_matrix_and_full_svd_is_the_best_there_is(method: str) -> None:
    result = DecompositionTrial(method, 20, 0, size=60).result()
    assert result["seconds"] > 0.0
    if method == "full SVD":
        assert result["excess"] == pytest.approx(0.0, abs=1e-9)
    else:
        assert 0.0 < result["excess"] < 100.0


def test_a_run_is_the_same_matrix_again_and_another_is_not() -> None:
    trials = [DecompositionTrial("TISVD", 20, run, size=35) for run in (0, 0, 1)]
    first, again, other = (trial.result()["excess"] for trial in trials)
    assert first == again != other
    assert trials[0].key() == trials[1].key() != trials[2].key()
