"""The exponential function for the compiled loops, with the same bits on every machine.

The C library's function takes one number at a time, and its rounding depends on the library's version. This
one consists of fused multiplications and additions and shifts only, so that the compiler turns a loop over it
into vector instructions with the bits of the scalar ones.
"""

from __future__ import annotations

import math

import numpy as np

from forks.compiled.simd import fma
from forks.jit import njit

# Smallest exponent whose result is a normal number.
SMALLEST = -708.0

# x = n log 2 + r with |r| <= log(2) / 2 (Cody and Waite, Software Manual for the Elementary Functions, 1980).
# The high part of log 2 has 32 bits, so that n times it is exact.
LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")

# Added to a number below 2^51, it leaves the nearest integer in the lowest bits.
ROUNDER = float.fromhex("0x1.8p52")
EXPONENT_BIAS = 1023
MANTISSA_BITS = 52

# Coefficients of the Taylor series, whose truncation error is below 2^-57 of the result.
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(n) for n in range(2, 14))


@njit(cache=True)
def exponential(x: float) -> float:
    """Return e^x for x <= 0, within one ulp; 0 below `SMALLEST`.

    Examples
    --------
    >>> exponential(0.0), exponential(-1000.0), round(exponential(-1.0), 6)
    (1.0, 0.0, 0.367879)
    """
    bounded = SMALLEST if x < SMALLEST else x  # NaN stays
    shifted = fma(bounded, LOG2_E, ROUNDER)
    n = shifted - ROUNDER
    r = fma(-n, LOG_2_LOW, fma(-n, LOG_2_HIGH, bounded))
    p = fma(r, C13, C12)
    p = fma(r, fma(r, p, C11), C10)
    p = fma(r, fma(r, p, C9), C8)
    p = fma(r, fma(r, p, C7), C6)
    p = fma(r, fma(r, p, C5), C4)
    p = fma(r, fma(r, p, C3), C2)
    power = np.int64((np.float64(shifted).view(np.int64) + EXPONENT_BIAS) << MANTISSA_BITS).view(np.float64)
    result = fma(fma(r * r, p, r), power, power)
    return 0.0 if x < SMALLEST else result
