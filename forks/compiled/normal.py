"""The normal distribution for the compiled loops, with the same bits on every machine.

With x = t / sqrt(2), the probability of more than t is

    x exp(-x^2) / (2 pi) * integral of exp(-u^2) / (x^2 + u^2) over all u,

and the integral a sum over the nodes u = +-1/4, +-3/4, ... +-23/4. To this, the residue of the pole is added.
The error falls exponentially with the inverse distance of nodes. Here it is below 2^-56 of the result. All
terms are positive, so nothing cancels. The sum is written as one quotient of polynomials of t^2, P / Q.

References
----------
Hunter and Regan, A note on the evaluation of the complementary error function, Mathematics of Computation 26,
1972.
"""

from __future__ import annotations

import math

from forks.compiled.exponential import exponential
from forks.compiled.simd import fma
from forks.jit import njit

FARTHEST = 40.0
"""Distance from 0 beyond which there is nothing."""
POLE_UNTIL = 8.5
"""Distance from 0 up to which the residue of the pole counts; there it is below 2^-56 of the result."""
POLE_RATE = 4.0 * math.pi * math.sqrt(0.5)

P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0 = (
    *(0.39894228040143265, 114.29696333501046, 13906.641683889704, 941055.6417802911),
    *(38976423.94807748, 1025147779.8800999, 17206736023.06794, 180584691394.67538),
    *(1128482838486.0295, 3828130029450.4688, 5886505283120.01, 2652192337393.797),
)
Q11, Q10, Q9, Q8, Q7, Q6, Q5, Q4, Q3, Q2, Q1, Q0 = (
    *(287.5, 35143.28125, 2393172.4609375, 99991356.42944336, 2662974156.488037, 45526359951.61644),
    *(491475075108.8866, 3214961563415.8696, 11813334002870.479, 21254106060536.04),
    *(14120342251200.152, 1455250215676.6396),
)


# The compiler would call it, as it is long, and makes no vector instructions of a loop with calls.
@njit(cache=True, error_model="numpy", forceinline=True)
def normal(z: float) -> tuple[float, float]:
    """Return exp(-z^2 / 2), which is the normal density times sqrt(2 pi), and the distribution function.

    Both are within 2^-47 of themselves; the error is mostly that of z^2 where |z| is large.

    Examples
    --------
    >>> normal(0.0)
    (1.0, 0.5)
    >>> round(normal(-1.96)[1], 6)
    0.024998
    """
    t = FARTHEST if abs(z) > FARTHEST else abs(z)  # NaN stays
    s = t * t
    p = fma(s, fma(s, fma(s, P11, P10), P9), P8)
    p = fma(s, fma(s, fma(s, fma(s, p, P7), P6), P5), P4)
    p = fma(s, fma(s, fma(s, fma(s, p, P3), P2), P1), P0)
    q = fma(s, fma(s, fma(s, s + Q11, Q10), Q9), Q8)
    q = fma(s, fma(s, fma(s, fma(s, q, Q7), Q6), Q5), Q4)
    q = fma(s, fma(s, fma(s, fma(s, q, Q3), Q2), Q1), Q0)
    bell = exponential(-0.5 * s)
    pole = exponential(-POLE_RATE * t)
    tail = t * bell * (p / q) + (pole / (1.0 + pole) if t < POLE_UNTIL else 0.0)
    return bell, (tail if z < 0.0 else 1.0 - tail)
