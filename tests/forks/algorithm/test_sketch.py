from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks.algorithm.kernels import gaussian_matrix, precision
from forks.algorithm.sjlt import Sjlt
from forks.algorithm.sketch import KernelSketch
from forks.arrays import FloatArray
from tests.support.examples import examples

GAMMA = precision(1.5)
LANDMARKS = 4


def sketch_of(points: FloatArray, seed: int = 0, blocks: int = 2) -> KernelSketch:
    return KernelSketch.of(points, LANDMARKS, sjlt=Sjlt(8, blocks, seed), gamma=GAMMA)


def dense_sketches(sketch: KernelSketch, seed: int, blocks: int) -> tuple[FloatArray, FloatArray]:
    """Phi_pm and Phi_pp by their definition, Eq. 4."""
    K = gaussian_matrix(sketch.points, sketch.points, GAMMA)
    S_p = Sjlt(8, blocks, seed).rows(sketch.serials).dense()
    S_m = np.eye(len(K))[:, sketch.landmarks]
    return S_p.T @ K @ S_m, S_p.T @ K @ S_p


@examples(60)  # the first example may compile
@given(
    st.integers(0, 2**32), st.sampled_from([1, 2, 8]), st.lists(st.none() | st.integers(0, 1000), max_size=25)
)
def test_sketches_are_exact_after_any_insertions_and_evictions(
    seed: int, blocks: int, changes: list[int | None]
) -> None:
    rng = np.random.default_rng(seed)
    sketch = sketch_of(rng.normal(size=(6, 3)), seed, blocks)
    for change in changes:
        before = sketch.phi_pp.copy()
        if change is None or len(sketch.points) == LANDMARKS:
            A, B = sketch.insert(rng.normal(size=3))
        else:
            A, B = sketch.evict(change % len(sketch.points))
        np.testing.assert_allclose(before + A @ B.T, sketch.phi_pp, atol=1e-12)
    phi_pm, phi_pp = dense_sketches(sketch, seed, blocks)
    np.testing.assert_allclose(sketch.phi_pm, phi_pm, atol=1e-10)
    np.testing.assert_allclose(sketch.phi_pp, phi_pp, atol=1e-10)
    assert len(set(sketch.landmarks.tolist())) == LANDMARKS
    assert len(set(sketch.serials.tolist())) == len(sketch.points)


def test_landmarks_are_a_uniform_sample_of_the_stored_points() -> None:
    # Ten points stay of twenty. Any of them is a landmark in 4 of 10 sketches.
    points = np.random.default_rng(0).normal(size=(20, 2))
    trials, hits = 400, np.zeros(10)
    for seed in range(trials):
        sketch = sketch_of(points[:10], seed)
        for x in points[10:]:
            sketch.evict(0)
            sketch.insert(x)
        hits[sketch.landmarks] += 1
    expected = trials * LANDMARKS / 10
    assert np.abs(hits - expected).max() < 4.5 * np.sqrt(expected * 0.6)


def test_the_sample_moves_on_with_the_stream() -> None:
    rng = np.random.default_rng(0)
    sketch = sketch_of(rng.normal(size=(10, 2)))
    for _ in range(10):
        sketch.evict(0)
        sketch.insert(rng.normal(size=2))
    assert sketch.serials.tolist() == list(range(10, 20))


def test_the_last_landmarks_cannot_be_evicted() -> None:
    sketch = sketch_of(np.random.default_rng(0).normal(size=(LANDMARKS, 2)))
    with pytest.raises(ValueError, match="all stored points are landmarks"):
        sketch.evict(0)
