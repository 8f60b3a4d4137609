from __future__ import annotations

import numpy as np

from forks.algorithm.feature_map import FeatureMap, build_map, map_points
from forks.algorithm.kernels import gaussian_matrix, precision
from forks.algorithm.sjlt import Sjlt
from forks.algorithm.sketch import KernelSketch
from forks.algorithm.tisvd import truncated_svd

GAMMA = precision(1.5)
POINTS = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
POINTS_IN_THREE = np.random.default_rng(1).normal(size=(6, 3))


def test_inner_products_are_the_sketched_kernel() -> None:
    sketch = KernelSketch.of(POINTS, 6, sjlt=Sjlt(20, 2, 1), gamma=GAMMA)
    factors = truncated_svd(sketch.phi_pp, 20)
    phi = map_points(POINTS, build_map(sketch, factors), GAMMA)
    C = gaussian_matrix(POINTS, POINTS[sketch.landmarks], GAMMA)
    inverse = np.linalg.pinv(sketch.phi_pm, rcond=1e-6)
    expected = C @ (inverse @ sketch.phi_pp @ inverse.T) @ C.T  # Eq. 3
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-8)


def test_the_map_approximates_the_kernel_better_with_more_landmarks() -> None:
    K = gaussian_matrix(POINTS, POINTS, GAMMA)
    errors = []
    for landmarks in (2, 5, 12):
        sketch = KernelSketch.of(POINTS, landmarks, sjlt=Sjlt(30, 3, 1), gamma=GAMMA)
        phi = map_points(POINTS, build_map(sketch, truncated_svd(sketch.phi_pp, landmarks)), GAMMA)
        errors.append(np.linalg.norm(phi @ phi.T - K) / np.linalg.norm(K))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01


def test_features_are_the_kernel_with_the_landmarks_times_z() -> None:
    rng = np.random.default_rng(2)
    landmarks, Z = rng.normal(size=(7, 3)), rng.normal(size=(7, 5))
    for count in (1, 4, 6):
        phi = map_points(POINTS_IN_THREE[:count], FeatureMap(landmarks.T.copy(), Z), GAMMA)
        expected = gaussian_matrix(POINTS_IN_THREE[:count], landmarks, GAMMA) @ Z
        np.testing.assert_allclose(phi, expected, rtol=1e-12, atol=1e-14)
        assert phi.flags.c_contiguous


def test_repeated_points_do_not_blow_up_the_map() -> None:
    points = np.repeat(POINTS[:3], 10, axis=0)  # a kernel matrix of rank 3
    sketch = KernelSketch.of(points, 10, sjlt=Sjlt(20, 1, 1), gamma=GAMMA)
    phi = map_points(points, build_map(sketch, truncated_svd(sketch.phi_pp, 10)), GAMMA)
    np.testing.assert_allclose(phi @ phi.T, gaussian_matrix(points, points, GAMMA), atol=1e-6)


def test_points_so_alike_that_they_cancel_do_not_blow_up_the_map() -> None:
    """Each of the sketch's two rows is a sum of signs: none of all points, or next to none."""
    points = POINTS[:1] + 1e-6 * POINTS
    sizes, features = [], []
    for seed in range(200):
        sketch = KernelSketch.of(points, 4, sjlt=Sjlt(2, 1, seed), gamma=GAMMA)
        phi = map_points(points, build_map(sketch, truncated_svd(sketch.phi_pp, 2)), GAMMA)
        sizes.append(np.linalg.norm(sketch.phi_pm))
        features.append(np.abs(phi).max())
    assert min(sizes) < 1e-5, "nothing cancelled"
    assert max(features) < 10.0
