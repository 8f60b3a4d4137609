"""Encode and decode rows of numbers with few decimals as JSON, compiled.

Such numbers are handled as whole numbers of millionths, without a search for their shortest digits. The text
is that of msgspec: the shortest that reads back to the same bits. For a number that was rounded to six
decimals, that is these decimals without the zeros at their end.

Numba's cache on disk knows a function by its own file only: nothing here depends on another one.
"""

from __future__ import annotations

from collections.abc import Sequence
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
MAX_WHOLE_DIGITS = 9
"""Digits before the point of such numbers, at most."""
_EXPONENT = 10
"""Below so many millionths, msgspec writes an exponent."""

_ZERO, _MINUS, _POINT, _COMMA, _OPEN, _CLOSE, _NEWLINE = (np.uint8(ord(sign)) for sign in "0-.,[]\n")
_E, _SIX, _NINE = np.uint8(ord("e")), np.uint8(ord("6")), np.uint8(ord("9"))

_SENTINEL = b"\0"
"""Ends the text that is read, so that no index has to be checked."""

_encode_lines = msgspec.json.Encoder().encode_lines
_decode_row = msgspec.json.Decoder(list[float]).decode


def encode_rows(rows: Floats) -> list[bytes]:
    """Encode rows, shape (n, numbers), as JSON arrays.

    The bytes are those of msgspec for each row as a list, whatever the numbers; it is three times as quick if
    all of them were rounded to `DECIMALS`.

    Examples
    --------
    >>> encode_rows(np.array([[0.25, -3.0], [0.000004, 17.483921]]))
    [b'[0.25,-3.0]', b'[4e-6,17.483921]']
    """
    n, numbers = rows.shape
    out = np.empty(n * (numbers * _MAX_BYTES + 3), dtype=np.uint8)
    end = _write(rows, out)
    text = out[:end].tobytes() if end >= 0 else _encode_lines(rows.tolist())
    return text.split(b"\n")[:n]


def decode_rows(texts: Sequence[bytes | msgspec.Raw], numbers: int) -> Floats:
    """Decode JSON arrays of so many numbers each into rows, shape (n, numbers).

    Each text has to be one JSON value, such as `msgspec.Raw` is. It is several times as quick if all are as
    `encode_rows` writes what was rounded to `DECIMALS`.

    Raises
    ------
    msgspec.DecodeError
        One of them is no such array.

    Examples
    --------
    >>> decode_rows([b"[0.25,-3.0]", b"[4e-6,17.483921]"], 2).tolist()
    [[0.25, -3.0], [4e-06, 17.483921]]
    """
    out = np.empty((len(texts), numbers))
    if not _read(np.frombuffer(b"".join([*texts, _SENTINEL]), dtype=np.uint8), out):
        rows = [_decode_row(text) for text in texts]
        if any(len(row) != numbers for row in rows):
            raise msgspec.ValidationError(f"Expected `array` of length {numbers}")
        out[:] = rows
    return out


@njit(cache=True, nogil=True)
def _write(rows: Floats, out: Bytes) -> int:
    """Write rows to `out`; return their end, negative if a number has more decimals or is too large."""
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
    """Write so many millionths at an index of `out`; return the index behind them."""
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
    """Write the last digits of a whole number, up to an index of `out`."""
    for index in range(end - 1, end - 1 - digits, -1):
        rest = number // np.uint32(10)
        out[index] = _ZERO + np.uint8(number - rest * np.uint32(10))
        number = rest


@njit(cache=True, nogil=True)
def _read(text: Bytes, out: Floats) -> bool:
    """Read arrays that follow one another into rows; tell whether all were as `_write` writes them."""
    at = 0
    for i in range(out.shape[0]):
        sign = _OPEN
        for j in range(out.shape[1]):
            if text[at] != sign:
                return False
            at, out[i, j] = _read_number(text, at + 1)
            if at < 0:
                return False
            sign = _COMMA
        if text[at] != _CLOSE:
            return False
        at += 1
    whole: bool = at == text.shape[0] - 1
    return whole


@njit(cache=True)
def _read_number(text: Bytes, at: int) -> tuple[int, float]:
    """Read a number at an index; return the index behind it, negative if `_write` writes it otherwise."""
    negative = text[at] == _MINUS
    begin = at + negative
    point, units = _read_digits(text, begin, MAX_WHOLE_DIGITS)
    end = point
    if text[point] == _POINT:
        end, part = _read_digits(text, point + 1, DECIMALS)
        for _ in range(point + 1 + DECIMALS - end):
            part *= 10
        units = units * _UNIT + part
    elif point == begin + 1 and text[point] == _E and text[point + 1] == _MINUS and text[point + 2] == _SIX:
        end = point + 3
    if end <= point + 1 or point == begin or (text[begin] == _ZERO and point > begin + 1):
        return -1, 0.0
    value = units / _UNIT
    return end, -value if negative else value


@njit(cache=True)
def _read_digits(text: Bytes, at: int, max_digits: int) -> tuple[int, int]:
    """Read at most so many digits at an index of `text`; return the index behind them, and their number."""
    number = 0
    for index in range(at, at + max_digits):
        if not _ZERO <= text[index] <= _NINE:
            return index, number
        number = number * 10 + (text[index] - _ZERO)
    return at + max_digits, number
