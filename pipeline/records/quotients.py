"""Divide whole numbers by powers of ten, rounded once, for compiled code only."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils

from forks.compiled.simd import typed_intrinsic

MAX_DIGITS: Final = 18
"""Digits of the dividend, at most: they fit into a word."""

_DOUBLE, _WORD = ir.DoubleType(), ir.IntType(64)
_DOUBT: Final = 2.0**-48
"""More than the relative error of the correction: three roundings."""


@typed_intrinsic
def exact_quotient(_typing: Any, _dividend: Any, _divisor: Any) -> Any:
    """Return the float next to the quotient of a whole number and an exact float; NaN in rare doubt.

    The dividend is a float and a rest, and the remainder of the float's division is exact (Dekker, "A
    floating-point technique for extending the available precision", 1971). The quotient is known if it is the
    same with a correction that is too small and with one that is too large (Ziv, "Fast evaluation of
    elementary mathematical functions with correctly rounded last bit", 1991).

    The dividend is an int64 from 0 to 10**18, the divisor a power of ten that a float holds: 10**22 at most.
    """

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        dividend, divisor = values

        def call(name: str, *arguments: Any) -> Any:
            function = ir.FunctionType(_DOUBLE, [_DOUBLE] * len(arguments))
            return builder.call(cgutils.get_or_insert_function(builder.module, function, name), arguments)

        high = builder.sitofp(dividend, _DOUBLE)
        low = builder.sitofp(builder.sub(dividend, builder.fptosi(high, _WORD)), _DOUBLE)
        quotient = builder.fdiv(high, divisor)
        remainder = call("llvm.fma.f64", builder.fneg(quotient), divisor, high)
        correction = builder.fdiv(builder.fadd(remainder, low), divisor)
        doubt = builder.fmul(call("llvm.fabs.f64", correction), ir.Constant(_DOUBLE, _DOUBT))
        least = builder.fadd(quotient, builder.fsub(correction, doubt))
        most = builder.fadd(quotient, builder.fadd(correction, doubt))
        same = builder.fcmp_ordered("==", least, most)
        return builder.select(same, least, ir.Constant(_DOUBLE, float("nan")))

    return types.float64(types.int64, types.float64), generate
