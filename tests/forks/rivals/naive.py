"""Kernel expansions as their formulas say, without a thought of speed, and streams to try learners on."""

from __future__ import annotations

import numpy as np

from forks.arrays import FloatArray

WIDTH = 1.5


def kernel(a: FloatArray, b: FloatArray) -> float:
    return float(np.exp(-np.sum((a - b) ** 2) / (2.0 * WIDTH**2)))


def kernels(points: list[FloatArray], x: FloatArray) -> FloatArray:
    return np.array([kernel(point, x) for point in points])


def gram(points: list[FloatArray]) -> FloatArray:
    return np.array([kernels(points, point) for point in points])


def stream(events: int, dimension: int = 3, seed: int = 0) -> list[tuple[FloatArray, float]]:
    """Return rows with labels that no learner gets right for long: a curved, rotating border and noise."""
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(events, dimension))
    scores = X[:, 0] * X[:, 1] + 0.5 * chance.normal(size=events)
    scores[events // 2 :] *= -1.0
    return [(x, 1.0 if score > 0 else -1.0) for x, score in zip(X, scores, strict=True)]
