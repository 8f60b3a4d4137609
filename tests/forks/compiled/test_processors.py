"""The compiled loops on a processor that has no vectors of eight and no fused operation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from forks.algorithm.kernels import gaussian_in_place, squared_distance_matrix
from forks.algorithm.newton import NewtonState, newton_step
from forks.compiled.alignment import aligned_rows
from forks.compiled.logarithm import log1p, logarithm
from forks.compiled.normal import normal
from forks.compiled.products import downdate_and_vecmat, matmul
from forks.compiled.trigonometry import cosine_and_sine

ROOT = Path(__file__).parents[3]


def worked_out() -> str:
    """All bits of what the loops make of some numbers, as text."""
    rng = np.random.default_rng(0)
    X, landmarks, Z = rng.normal(size=(13, 3)), rng.normal(size=(3, 9)), rng.normal(size=(9, 9))
    kernel, phi = np.empty((2, 13, 16))
    squared_distance_matrix(X, aligned_rows(landmarks), kernel)
    gaussian_in_place(kernel.reshape(-1), 0.3)
    matmul(kernel, aligned_rows(Z), phi)
    matrix, out = aligned_rows(np.eye(16)), np.empty(16)
    downdate_and_vecmat(matrix, phi[0], phi[1], out)
    newton = NewtonState.prior(11, 1.0)
    newton_step(newton, phi[2, :11].copy(), 0.3, 0.4, np.empty(11))
    numbers = (3.0 * X).ravel().tolist()
    elementary = np.array(
        [(*cosine_and_sine(x), *normal(x), logarithm(abs(x)), log1p(abs(x))) for x in numbers]
    )
    return b"".join(part.tobytes() for part in (phi, matrix, out, *newton, elementary)).hex()


@pytest.mark.slow
def test_the_bits_are_the_same(tmp_path: Path) -> None:
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    code = f"from {__name__} import worked_out; print(worked_out())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | plain,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == worked_out()
