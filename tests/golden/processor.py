"""The kind of processor for which the golden digests hold."""

from __future__ import annotations

import platform

import pytest

ENVIRONMENT = {"OPENBLAS_CORETYPE": "Haswell"}
"""Makes OpenBLAS take the same kernels on every x86-64 processor with AVX2."""

needs_x86 = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="golden digests hold for the linear algebra of x86-64 processors"
)
