"""Strategies of Hypothesis for matrices that are hard to decompose."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from forks.arrays import FloatArray

KINDS = ("random", "graded", "reversed", "clustered", "deficient", "sparse", "kernel", "smooth")
SIZES = st.sampled_from([1e-300, 1e-150, 1e-8, 1.0, 1e8, 1e150, 1e290])


def orthogonal(rng: np.random.Generator, n: int) -> FloatArray:
    basis: FloatArray = np.linalg.qr(rng.normal(size=(n, n))).Q
    return basis


def spectrum(rng: np.random.Generator, kind: str, n: int) -> FloatArray:
    """Singular values of a matrix of this kind, the largest 1."""
    values = {
        "graded": np.logspace(0, -18, n),
        "reversed": np.logspace(0, -18, n)[::-1],
        "clustered": rng.choice([1.0, 1.0 - 1e-14, 1e-5], n),
        "deficient": np.where(rng.random(n) < 0.5, 0.0, 1.0),
    }.get(kind, rng.random(n))
    return np.asarray(values)


@st.composite
def symmetric_matrices(draw: st.DrawFn, largest: int = 24) -> FloatArray:
    """Draw symmetric matrices of all kinds and sizes."""
    n, kind = draw(st.integers(1, largest)), draw(st.sampled_from(KINDS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind in {"kernel", "smooth"}:  # eigenvalues fall to what rounding leaves, slowly and fast
        points = rng.normal(size=(n, 2 if kind == "kernel" else 1))
        matrix = np.exp(-np.square(points[:, None] - points).sum(axis=2) / 8)
    elif kind == "sparse":
        matrix = np.where(rng.random((n, n)) < 0.2, rng.normal(size=(n, n)), 0.0)
    elif kind in {"graded", "reversed"}:  # along the diagonal
        roots = np.sqrt(spectrum(rng, kind, n))
        matrix = roots[:, None] * rng.normal(size=(n, n)) * roots
    else:
        basis = orthogonal(rng, n)
        matrix = (basis * spectrum(rng, kind, n) * rng.choice([-1.0, 1.0], n)) @ basis.T
    return np.asarray((np.tril(matrix) + np.tril(matrix, -1).T) * draw(SIZES))


@st.composite
def rectangular_matrices(draw: st.DrawFn, largest: int = 24) -> FloatArray:
    """Draw matrices of all kinds and sizes."""
    m, n = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    kind = draw(st.sampled_from(KINDS[:5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = min(m, n)
    matrix = (orthogonal(rng, m)[:, :k] * spectrum(rng, kind, k)) @ orthogonal(rng, n)[:, :k].T
    return np.asarray(matrix * draw(SIZES))
