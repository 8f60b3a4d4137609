"""Encode rows of numbers with few decimals as JSON, compiled.

Such numbers are handled as whole numbers of millionths, without a search for their shortest digits. The text
is that of msgspec: the shortest that reads back to the same bits. For a number that was rounded to six
decimals, that is these decimals without the zeros at their end.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.jit import njit

Floats: TypeAlias = NDArray[np.float64]
Bytes: TypeAlias = NDArray[np.uint8]

DECIMALS = 6
_UNIT = 1_000_000
_LARGEST = 1e9
"""Below, six decimals make 15 digits at most, which read back to the number that they were made of."""
_MAX_BYTES = 20
"""Most bytes of a number and the character behind it."""
_EXPONENT = 10
"""Below so many millionths, msgspec writes an exponent."""

_ZERO, _MINUS, _POINT, _COMMA, _OPEN, _CLOSE, _NEWLINE = (np.uint8(ord(sign)) for sign in "0-.,[]\n")
_E, _SIX = np.uint8(ord("e")), np.uint8(ord("6"))

_ONE = np.uint64(1)
"""Unsigned, as are all indices of what is written: compiled code looks whether signed ones are negative."""
_PAIRS = np.frombuffer("".join(f"{number:02}" for number in range(100)).encode(), dtype=np.uint8)
"""Two digits for each number below 100."""

_encode_lines = msgspec.json.Encoder().encode_lines


def encode_rows(rows: Floats) -> list[bytes]:
    """Encode rows, shape (n, numbers), as JSON arrays.

    The bytes are those of msgspec for each row as a list, whatever the numbers; it is three times as quick if
    all of them were rounded to `DECIMALS`.

    Examples
    --------
    >>> encode_rows(np.array([[0.25, -3.0], [0.000004, 17.483921]]))
    [b'[0.25,-3.0]', b'[4e-6,17.483921]']
    """
    return encode_lines(rows).split(b"\n")[: len(rows)]


def encode_lines(rows: Floats) -> bytes:
    r"""Do as `encode_rows`, but return one text, with a line feed behind each row.

    Examples
    --------
    >>> encode_lines(np.array([[0.25], [-3.0]]))
    b'[0.25]\n[-3.0]\n'
    """
    n, numbers = rows.shape
    out = np.empty(n * (numbers * _MAX_BYTES + 3), dtype=np.uint8)
    end = _write(rows, out)
    return out[:end].tobytes() if end >= 0 else _encode_lines(rows.tolist())


@njit(cache=True, nogil=True)
def _write(rows: Floats, out: Bytes) -> int:
    """Write rows to `out`; return their end, negative if a number has more decimals or is too large."""
    at = np.uint64(0)
    for i in range(rows.shape[0]):
        out[at] = _OPEN
        at += _ONE
        for j in range(rows.shape[1]):
            value = rows[i, j]
            if not abs(value) < _LARGEST:
                return -1
            units = np.rint(value * _UNIT)
            if units / _UNIT != value:
                return -1
            if np.signbit(value):
                out[at] = _MINUS
                at += _ONE
            at = _write_number(np.uint64(abs(units)), out, at)
            out[at] = _COMMA
            at += _ONE
        at -= np.uint64(rows.shape[1] > 0)
        out[at] = _CLOSE
        out[at + _ONE] = _NEWLINE
        at += np.uint64(2)
    return np.int64(at)  # type: ignore[return-value]  # a Python integer, outside of compiled code


@njit(cache=True)
def _write_number(units: np.uint64, out: Bytes, at: np.uint64) -> np.uint64:
    """Write so many millionths at an index of `out`; return the index behind them."""
    if units and units < _EXPONENT:
        out[at], out[at + _ONE] = _ZERO + np.uint8(units), _E
        out[at + np.uint64(2)], out[at + np.uint64(3)] = _MINUS, _SIX
        return at + np.uint64(4)
    whole = np.uint32(units // np.uint64(_UNIT))
    part = np.uint32(units - np.uint64(whole) * np.uint64(_UNIT))
    bound, digits = np.uint64(10), _ONE
    while whole >= bound:
        bound *= np.uint64(10)
        digits += _ONE
    at += digits
    index = at
    for _ in range(digits):
        index -= _ONE
        rest = whole // np.uint32(10)
        out[index] = _ZERO + np.uint8(whole - rest * np.uint32(10))
        whole = rest
    out[at] = _POINT
    at += _ONE
    first, last = part // np.uint32(10_000), part % np.uint32(10_000)
    _write_pair(first, out, at)
    _write_pair(last // np.uint32(100), out, at + np.uint64(2))
    _write_pair(last % np.uint32(100), out, at + np.uint64(4))
    end = at + np.uint64(DECIMALS)
    while out[end - _ONE] == _ZERO and end > at + _ONE:
        end -= _ONE
    return end


@njit(cache=True)
def _write_pair(number: np.uint32, out: Bytes, at: np.uint64) -> None:
    """Write a number below 100 with two digits."""
    pair = np.uint64(number) * np.uint64(2)
    out[at], out[at + _ONE] = _PAIRS[pair], _PAIRS[pair + _ONE]
