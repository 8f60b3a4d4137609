"""Encode and decode rows of numbers with few decimals as JSON, compiled.

Such numbers are handled as whole numbers of millionths, without a search for their shortest digits. The text
is that of msgspec: the shortest that reads back to the same bits. For a number that was rounded to six
decimals, that is these decimals without the zeros at their end.
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

_ONE = np.uint64(1)
"""Unsigned, as are all indices of what is written: compiled code looks whether signed ones are negative."""
_PAIRS = np.frombuffer("".join(f"{number:02}" for number in range(100)).encode(), dtype=np.uint8)
"""Two digits for each number below 100."""

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
