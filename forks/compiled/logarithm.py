"""Natural logarithms for the compiled loops, with the same bits on every machine.

The C library's functions round as its version and the processor say. These consist of sums, products and
quotients in a fixed order, and of fused multiplications and additions.
"""

from __future__ import annotations

import math

import numpy as np

from forks.compiled.exponential import LOG_2_HIGH, LOG_2_LOW, MANTISSA_BITS
from forks.compiled.simd import fma
from forks.jit import njit

SMALLEST_NORMAL = float.fromhex("0x1p-1022")
# Takes a smaller number to a normal one.
UPWARDS, UPWARDS_BITS = float.fromhex("0x1p54"), 54
# Bits of sqrt(1/2), from which on the mantissa m of x = 2^k m is taken.
ROOT_OF_HALF_BITS = 0x3FE6A09E667F3BCD

# log((1 + s) / (1 - s)) = 2 s + s (2/3 s^2 + 2/5 s^4 + ...); what is left out is below 2^-62 of the result.
D3, D5, D7, D9, D11, D13, D15, D17, D19, D21, D23 = (2.0 / n for n in range(3, 25, 2))


@njit(cache=True, error_model="numpy")
def logarithm(x: float) -> float:
    """Return log(x), within 1.5 ulp; -inf for 0, NaN for numbers below.

    Examples
    --------
    >>> logarithm(1.0), logarithm(0.0), round(logarithm(10.0), 6)
    (0.0, -inf, 2.302585)
    """
    if not 0.0 < x < math.inf:
        return -math.inf if x == 0.0 else (x if x > 0.0 else math.nan)
    small = x < SMALLEST_NORMAL
    bits = np.float64(x * UPWARDS if small else x).view(np.int64)
    k = (bits - ROOT_OF_HALF_BITS) >> MANTISSA_BITS
    f = np.int64(bits - (k << MANTISSA_BITS)).view(np.float64) - 1.0
    n = float(k - UPWARDS_BITS if small else k)
    s = f / (2.0 + f)
    z = s * s
    p = fma(z, D23, D21)
    p = fma(z, fma(z, p, D19), D17)
    p = fma(z, fma(z, p, D15), D13)
    p = fma(z, fma(z, p, D11), D9)
    p = fma(z, fma(z, p, D7), D5)
    p = fma(z, p, D3)
    # 2 s = f - s f, and f is exact.
    low = fma(n, LOG_2_LOW, s * fma(z, p, -f))
    result: float = fma(n, LOG_2_HIGH, f + low)
    return result


@njit(cache=True, error_model="numpy")
def log1p(x: float) -> float:
    """Return log(1 + x) for x >= 0, within 2.5 ulp.

    Examples
    --------
    >>> log1p(0.0), log1p(1e-20), round(log1p(1.0), 6)
    (0.0, 1e-20, 0.693147)
    """
    one_more = 1.0 + x
    lost = (x - (one_more - 1.0)) / one_more
    return logarithm(one_more) + (0.0 if one_more == x else lost)  # infinity stays
