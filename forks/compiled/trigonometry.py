"""Cosine and sine for the compiled loops, with the same bits on every machine."""

from __future__ import annotations

import math

import numpy as np

from forks.compiled.exponential import ROUNDER
from forks.compiled.simd import fma
from forks.jit import njit

LARGEST_ANGLE = float.fromhex("0x1p50")
"""Larger angles are taken for this one: a quarter of a radian lies between them and the next number."""

# x = n pi / 2 + r with |r| <= pi / 4; the sum of both parts of pi / 2 has 107 bits.
TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
HALF_PI_HIGH = float.fromhex("0x1.921fb54442d18p+0")
HALF_PI_LOW = float.fromhex("0x1.1a62633145c07p-54")

# Coefficients of the Taylor series; what is left out is below 2^-58 of the result.
S3, S5, S7, S9, S11, S13, S15, S17 = (
    (1.0 if n % 4 < 2 else -1.0) / math.factorial(n) for n in range(3, 18, 2)
)
C4, C6, C8, C10, C12, C14, C16 = ((1.0 if n % 4 < 2 else -1.0) / math.factorial(n) for n in range(4, 17, 2))


@njit(cache=True)
def cosine_and_sine(x: float) -> tuple[float, float]:
    """Return cos(x) and sin(x), each off by less than 2^-52, for angles up to `LARGEST_ANGLE`.

    Examples
    --------
    >>> cosine_and_sine(0.0), cosine_and_sine(0.5) == (math.cos(0.5), math.sin(0.5))
    ((1.0, 0.0), True)
    """
    bounded = LARGEST_ANGLE if x > LARGEST_ANGLE else x  # NaN stays
    bounded = -LARGEST_ANGLE if bounded < -LARGEST_ANGLE else bounded
    shifted = fma(bounded, TWO_OVER_PI, ROUNDER)
    n = shifted - ROUNDER
    r = fma(-n, HALF_PI_LOW, fma(-n, HALF_PI_HIGH, bounded))  # the inner one is exact
    z = r * r
    p = fma(z, fma(z, S17, S15), S13)
    p = fma(z, fma(z, p, S11), S9)
    p = fma(z, fma(z, p, S7), S5)
    sine = fma(r * z, fma(z, p, S3), r)
    p = fma(z, fma(z, C16, C14), C12)
    p = fma(z, fma(z, p, C10), C8)
    p = fma(z, fma(z, p, C6), C4)
    cosine = fma(z, fma(z, p, -0.5), 1.0)
    quarters = np.float64(shifted).view(np.int64)
    if quarters & 1:
        cosine, sine = -sine, cosine
    if quarters & 2:
        return -cosine, -sine
    return cosine, sine
