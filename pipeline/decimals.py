"""The JSON of rows of numbers with few decimals, compiled: such digits are written, not searched for.

What is written is what msgspec writes, the shortest text that reads back to the same bits. For a number that
was rounded to six decimals, that is these decimals without the zeros at their end.

Numba's cache on disk knows a function by its own file only: nothing here depends on another one.
"""

# mypy: disable-error-code="untyped-decorator"
# (numba.njit has no types)
from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bytes: TypeAlias = NDArray[np.uint8]

DECIMALS = 6
_UNIT = 1_000_000
_LARGEST = 1e9
"""Below, six decimals make 15 digits at most, which read back to the number that they were made of."""
_ROOM = 20
"""Bytes that a number and what follows it take at most."""
_EXPONENT = 10
"""Below so many millionths, msgspec writes an exponent."""

_ZERO, _MINUS, _POINT, _COMMA, _OPEN, _CLOSE, _NEWLINE = (np.uint8(ord(sign)) for sign in "0-.,[]\n")
_E, _SIX = np.uint8(ord("e")), np.uint8(ord("6"))

_encode_lines = msgspec.json.Encoder().encode_lines


def encode_rows(rows: Floats) -> list[bytes]:
    """JSON arrays of the rows, shape (n, numbers).

    The bytes are those of msgspec for each row as a list, whatever the numbers; it is three times as quick if
    all of them were rounded to `DECIMALS`.

    Examples
    --------
    >>> encode_rows(np.array([[0.25, -3.0], [0.000004, 17.483921]]))
    [b'[0.25,-3.0]', b'[4e-6,17.483921]']
    """
    n, numbers = rows.shape
    out = np.empty(n * (numbers * _ROOM + 3), dtype=np.uint8)
    end = _write(rows, out)
    lines = out[:end].tobytes() if end >= 0 else _encode_lines(rows.tolist())
    return lines.split(b"\n")[:n]


@njit(cache=True, nogil=True)
def _write(rows: Floats, out: Bytes) -> int:
    """Write the lines to `out`; give their end, negative if a number has more decimals or is too large."""
    at = 0
    for i in range(rows.shape[0]):
        out[at] = _OPEN
        at += 1
        for j in range(rows.shape[1]):
            value = rows[i, j]
            if not abs(value) < _LARGEST:
                return -1
            units = np.rint(value * _UNIT)
            if units / _UNIT != value:
                return -1
            if np.signbit(value):
                out[at] = _MINUS
                at += 1
            at = _write_number(abs(int(units)), out, at)
            out[at] = _COMMA
            at += 1
        at -= rows.shape[1] > 0
        out[at] = _CLOSE
        out[at + 1] = _NEWLINE
        at += 2
    return at


@njit(cache=True)
def _write_number(units: int, out: Bytes, at: int) -> int:
    """Write so many millionths from a place on; give the place behind them."""
    if 0 < units < _EXPONENT:
        out[at], out[at + 1], out[at + 2], out[at + 3] = _ZERO + units, _E, _MINUS, _SIX
        return at + 4
    whole, part = np.uint32(units // _UNIT), np.uint32(units % _UNIT)
    bound, digits = 10, 1
    while whole >= bound:
        bound *= 10
        digits += 1
    point = at + digits
    _write_digits(whole, point, digits, out)
    out[point] = _POINT
    end = point + 1 + DECIMALS
    _write_digits(part, end, DECIMALS, out)
    while out[end - 1] == _ZERO and end > point + 2:
        end -= 1
    return end


@njit(cache=True)
def _write_digits(number: np.uint32, end: int, digits: int, out: Bytes) -> None:
    """Write the last digits of a whole number, up to a place."""
    for place in range(end - 1, end - 1 - digits, -1):
        rest = number // np.uint32(10)
        out[place] = _ZERO + np.uint8(number - rest * np.uint32(10))
        number = rest
