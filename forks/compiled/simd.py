"""SIMD vectors of eight numbers, and fused multiplication and addition, for compiled code only.

The compiler turns plain loops into vector instructions, but does not keep sums in registers from one row of a
matrix to the next. Loops written with these functions do, and run at the processor's full speed. Each of the
eight numbers is computed separately, with the bits that it would have alone.

On a processor with shorter vectors, several of them hold the eight numbers. A processor without the fused
operation uses that of the C library, which is slow but has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model

from forks.compiled.alignment import CACHE_LINE

DOUBLE = ir.DoubleType()
VECTOR = ir.VectorType(DOUBLE, CACHE_LINE)
INT8, INT32 = ir.IntType(8), ir.IntType(32)
HAS_WIDE_REGISTERS: bool = get_host_cpu_features().get("avx512f", False)
"""Whether there are 32 registers that hold a vector of eight each; otherwise there are 16 for half of one."""
ALIGNMENT = 8
"""Alignment in bytes of a vector in memory: that of a single number."""


class Vector8(types.Type):
    """Numba's type of a vector of eight float64."""

    def __init__(self) -> None:
        super().__init__(name="Vector8")


VECTOR8 = Vector8()


@register_model(Vector8)
class Vector8Model(models.PrimitiveModel):
    """LLVM representation of `Vector8`."""

    def __init__(self, manager: Any, kind: Vector8) -> None:
        super().__init__(manager, kind, VECTOR)  # type: ignore[no-untyped-call]  # Numba has no types for it


def typed_intrinsic(typing_function: Callable[..., Any]) -> Any:
    """Return Numba's `intrinsic` of a typing function, without the type of the Python function."""
    return intrinsic(typing_function)


@typed_intrinsic
def fma(_typing: Any, a: Any, _b: Any, _c: Any) -> Any:
    """Return a b + c, rounded once, for numbers or for vectors."""
    kind, form, name = (
        (VECTOR8, VECTOR, "llvm.fma.v8f64") if a == VECTOR8 else (types.float64, DOUBLE, "llvm.fma.f64")
    )

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        function = ir.FunctionType(form, [form] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, function, name), values)

    return kind(kind, kind, kind), generate


@typed_intrinsic
def add(_typing: Any, _a: Any, _b: Any) -> Any:
    """Return a + b for vectors."""
    return VECTOR8(VECTOR8, VECTOR8), _instruction("fadd")


@typed_intrinsic
def subtract(_typing: Any, _a: Any, _b: Any) -> Any:
    """Return a - b for vectors."""
    return VECTOR8(VECTOR8, VECTOR8), _instruction("fsub")


@typed_intrinsic
def multiply(_typing: Any, _a: Any, _b: Any) -> Any:
    """Return the products of the numbers of two vectors."""
    return VECTOR8(VECTOR8, VECTOR8), _instruction("fmul")


def _instruction(name: str) -> Callable[..., Any]:
    """Return the generator of one instruction of LLVM."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return getattr(builder, name)(*values)

    return generate


@typed_intrinsic
def horizontal_sum(_typing: Any, _vector: Any) -> Any:
    """Return the sum of a vector: add its second half to its first, and so on until one number is left."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        left, count = values[0], CACHE_LINE
        while count > 1:
            count //= 2
            first = builder.shuffle_vector(left, left, _shuffle_mask(range(count)))
            left = builder.fadd(
                first, builder.shuffle_vector(left, left, _shuffle_mask(range(count, 2 * count)))
            )
        return builder.extract_element(left, INT32(0))

    return types.float64(VECTOR8), generate


@typed_intrinsic
def broadcast(_typing: Any, _x: Any) -> Any:
    """Return a vector whose eight numbers are x."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        one = builder.insert_element(VECTOR(ir.Undefined), values[0], INT32(0))
        return builder.shuffle_vector(one, one, _shuffle_mask([0] * CACHE_LINE))

    return VECTOR8(types.float64), generate


@typed_intrinsic
def load(_typing: Any, array: Any, index: Any) -> Any:
    """Return the eight numbers of a vector or of a matrix row that begin at ``index``."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, values), align=ALIGNMENT)

    return VECTOR8(_contiguous(array), _index_type(index)), generate


@typed_intrinsic
def store(_typing: Any, array: Any, index: Any, _vector: Any) -> Any:
    """Write eight numbers to a vector or to a matrix row, beginning at ``index``."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _pointer(context, builder, signature, values), align=ALIGNMENT)
        return context.get_dummy_value()

    return types.void(_contiguous(array), _index_type(index), VECTOR8), generate


@typed_intrinsic
def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of an element of an array, which is read later."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind, index_type = signature.args
        found = context.make_array(kind)(context, builder, values[0])
        indices = (
            cgutils.unpack_tuple(builder, values[1])
            if isinstance(index_type, types.BaseTuple)
            else [values[1]]
        )
        pointer = cgutils.get_item_pointer(context, builder, kind, found, indices)
        address = builder.bitcast(pointer, INT8.as_pointer())
        form = ir.FunctionType(ir.VoidType(), [address.type, INT32, INT32, INT32])
        function = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        builder.call(function, [address, INT32(0), INT32(3), INT32(1)])  # to read, often, data
        return context.get_dummy_value()

    return types.void(array, _index_type(index)), generate


def _contiguous(array: Any) -> Any:
    if array.layout != "C":
        raise TypingError(f"load and store need a C-contiguous array, not {array}")
    return array


def _index_type(index: Any) -> Any:
    return types.UniTuple(types.intp, len(index)) if isinstance(index, types.BaseTuple) else types.intp


def _pointer(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Return the pointer to the numbers that begin at an index, the second of ``values``."""
    kind, index = signature.args[:2]
    array = context.make_array(kind)(context, builder, values[0])
    indices = cgutils.unpack_tuple(builder, values[1]) if isinstance(index, types.BaseTuple) else [values[1]]
    pointer = cgutils.get_item_pointer(context, builder, kind, array, indices)
    return builder.bitcast(pointer, VECTOR.as_pointer())


def _shuffle_mask(numbers: Iterable[int]) -> Any:
    numbers = list(numbers)
    return ir.Constant(ir.VectorType(INT32, len(numbers)), numbers)
