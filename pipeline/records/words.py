"""Copy texts by words of eight bytes, for compiled code only.

Texts between other texts are short: it costs less to copy a few bytes too many than to look at each. So the
buffers need `SPARE` bytes behind the text.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from llvmlite import ir
from numba import types

from forks.compiled.simd import typed_intrinsic

SPARE: Final = 8
"""Bytes that are read or written behind a text, at most."""

_WORD = ir.IntType(64)
_LITTLE_ENDIAN: Final = sys.byteorder == "little"


@typed_intrinsic
def load_word(_typing: Any, array: Any, _index: Any) -> Any:
    """Return the eight bytes of an array that begin at ``index``, the first of them in the lowest bits."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = builder.load(_pointer(context, builder, signature, values), align=1)
        return word if _LITTLE_ENDIAN else builder.bswap(word)

    return types.uint64(array, types.uint64), generate


@typed_intrinsic
def load_byte(_typing: Any, array: Any, _index: Any) -> Any:
    """Return the byte of an array at ``index``, which must not be negative."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        return builder.zext(builder.load(builder.gep(data, [values[1]])), _WORD)

    return types.int64(array, types.int64), generate


@typed_intrinsic
def store_word(_typing: Any, array: Any, _index: Any, _word: Any) -> Any:
    """Write eight bytes to an array, beginning at ``index``, the lowest bits first."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = values[2] if _LITTLE_ENDIAN else builder.bswap(values[2])
        builder.store(word, _pointer(context, builder, signature, values), align=1)
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.uint64), generate


@typed_intrinsic
def lowest_bit(_typing: Any, _word: Any) -> Any:
    """Return the number of zeros below the lowest bit that is set, of a word that is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def _pointer(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Return the pointer to the byte at an index, the second of ``values``, as one to a word."""
    data = context.make_array(signature.args[0])(context, builder, values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), _WORD.as_pointer())
