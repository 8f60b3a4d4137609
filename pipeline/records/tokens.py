"""Read the parts of JSON from its bytes, compiled: strings, ids, numbers, words.

Each function is given a place in a text, and returns where its part ends, `ABSENT` if there is none. Behind
the text are `SPARE` zeros, which are no part of anything.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.records.quotients import MAX_DIGITS, exact_quotient
from pipeline.records.words import SPARE, load_byte, load_word, lowest_bit

Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float64]

ABSENT: Final = -1
"""The end of something that is not there."""
NOTHING: Final = -1
"""Stands for a whole number where there is none."""
MAX_ID: Final = 256
"""Characters of an id, at most."""
MAX_NUMBER: Final = 40
"""Characters of a number, at most."""
MAX_EXPONENT_DIGITS: Final = 2
"""Digits of an exponent, at most, so that no number is beyond the range of floats."""
MAX_EXACT_DIGITS: Final = 15
"""Digits of numbers that a float holds exactly."""
MAX_EXACT_POWER: Final = 22
_POWERS: Final = np.array([float(f"1e{power}") for power in range(MAX_EXACT_POWER + 1)])
"""The powers of ten that a float holds exactly."""
_WHOLE_POWERS: Final = np.array([10**power for power in range(9)], dtype=np.uint64)

QUOTE, COMMA = map(ord, '",')
_BACKSLASH, _OPEN_LIST, _CLOSE_LIST, _SPACE = map(ord, "\\[] ")
_MINUS, _PLUS, _DOT, _ZERO, _NINE, _LOWER_E, _UPPER_E, _N, _T = map(ord, "-+.09eEnt")
_WORDS: Final = np.frombuffer(b'nulltruefalse"labelled""expired"' + bytes(SPARE), dtype=np.uint8)
_NULL, _TRUE, _FALSE, _LABELLED, _EXPIRED, _WORDS_END = 0, 4, 8, 13, 23, 32
"""Where each of them begins, and the end of the last."""

# What is done to words is done to eight characters at once.
_ONES, _HIGH_BITS, _ZEROS, _ABOVE_NINE = (
    np.uint64(byte * 0x0101_0101_0101_0101) for byte in (0x01, 0x80, 0x30, 0x76)
)
_QUOTES, _BACKSLASHES, _SPACES = (_ONES * np.uint64(byte) for byte in (QUOTE, _BACKSLASH, _SPACE))
_WORD_BITS, _BYTE_BITS = np.uint64(64), np.uint64(8)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def word_end(text: Bytes, at: int, words: Bytes, begin: int, end: int) -> int:
    """Return where a word ends that stands at a place of a text, `ABSENT` if it does not."""
    while True:
        other, left = load_word(text, np.uint64(at)) ^ load_word(words, np.uint64(begin)), end - begin
        if left <= SPARE:
            return at + left if not other << np.uint64(8 * (SPARE - left)) else ABSENT
        if other:
            return ABSENT
        at, begin = at + SPARE, begin + SPARE


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def string_end(text: Bytes, at: int) -> int:
    """Return where a string ends, behind its quotes; `ABSENT` if there is none in plain ASCII."""
    if load_byte(text, at) != QUOTE:
        return ABSENT
    at += 1
    while True:
        word = load_word(text, np.uint64(at))
        quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
        special = (quote - _ONES) & ~quote | (backslash - _ONES) & ~backslash
        special |= (word - _SPACES) & ~word | word
        special &= _HIGH_BITS
        if special:
            at += int(lowest_bit(special) >> np.uint64(3))
            return at + 1 if load_byte(text, at) == QUOTE else ABSENT
        at += SPARE


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def null_end(text: Bytes, at: int) -> int:
    """Return where null ends, `ABSENT` if it is something else."""
    return word_end(text, at, _WORDS, _NULL, _TRUE)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def read_flag(text: Bytes, at: int) -> tuple[int, int]:
    """Return where true or false ends, and 1 or 0."""
    if load_byte(text, at) == _T:
        return word_end(text, at, _WORDS, _TRUE, _FALSE), 1
    return word_end(text, at, _WORDS, _FALSE, _LABELLED), 0


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def status_end(text: Bytes, at: int) -> int:
    """Return where a usual status ends, `ABSENT` if it is another one."""
    end = word_end(text, at, _WORDS, _LABELLED, _EXPIRED)
    return end if end != ABSENT else word_end(text, at, _WORDS, _EXPIRED, _WORDS_END)


@njit(cache=True, nogil=True)
def scalar_end(text: Bytes, at: int) -> int:
    """Return where a scalar ends, `ABSENT` if it is something else."""
    first = load_byte(text, at)
    if first == QUOTE:
        return string_end(text, at)
    if first == _N:
        return null_end(text, at)
    if first == _MINUS or _ZERO <= first <= _NINE:
        return read_number(text, at)[0]
    return read_flag(text, at)[0]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def read_id(text: Bytes, at: int) -> tuple[int, int]:
    """Return where an id ends, and the id if it is a whole number without a sign, else `NOTHING`.

    It is `ABSENT` if there is none, or one that has another text when it is encoded again.
    """
    if load_byte(text, at) == QUOTE:
        end = string_end(text, at)
        return (end if 2 < end - at <= MAX_ID + 2 else ABSENT), NOTHING
    if load_byte(text, at) == _MINUS:
        return (ABSENT if load_byte(text, at + 1) == _ZERO else read_integer(text, at + 1)[0]), NOTHING
    return read_integer(text, at)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def read_integer(text: Bytes, at: int) -> tuple[int, int]:
    """Return where a whole number without a sign ends, and the number."""
    end, number = _digits(text, at, np.uint64(0))
    digits = end - at
    if digits == 0 or digits > MAX_DIGITS or (digits > 1 and load_byte(text, at) == _ZERO):
        return ABSENT, 0
    return end, np.int64(number)  # type: ignore[return-value]  # an integer in compiled code


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def read_list(text: Bytes, at: int, lists: Floats, row: int) -> tuple[int, int]:
    """Write the numbers of a list; return where it ends, and `NOTHING` if only a parser can tell one."""
    found, sign = 0, _OPEN_LIST
    for place in range(lists.shape[1]):
        if load_byte(text, at) != sign:
            return ABSENT, NOTHING
        at, number = read_number(text, at + 1)
        if at == ABSENT:
            return ABSENT, NOTHING
        if np.isnan(number):
            found = NOTHING
        lists[row, place] = number
        sign = COMMA
    return (at + 1, found) if load_byte(text, at) == _CLOSE_LIST else (ABSENT, NOTHING)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def read_number(text: Bytes, at: int) -> tuple[int, float]:
    """Return where a number ends, and the number, NaN if only a parser can tell it.

    Clinger, "How to read floating point numbers accurately", PLDI 1990: the quotient of two floats that are
    exact is the float next to the number. That of a longer number takes more.
    """
    start, negative = at, load_byte(text, at) == _MINUS
    if negative:
        at += 1
    if load_byte(text, at + 1) == _DOT and _ZERO <= load_byte(text, at) <= _NINE:
        # As mostly: no need to wait for what `_digits` finds.
        end, mantissa, digits = at + 1, np.uint64(load_byte(text, at) - _ZERO), 1
    else:
        end, mantissa = _digits(text, at, np.uint64(0))
        digits = end - at
        if digits == 0 or (digits > 1 and load_byte(text, at) == _ZERO):
            return ABSENT, np.nan
    power, exact = 0, not negative
    if load_byte(text, end) == _DOT:
        at = end + 1
        end, mantissa = _digits(text, at, mantissa)
        power = end - at
        if power == 0:
            return ABSENT, np.nan
        digits, exact = digits + power, True
    if load_byte(text, end) == _LOWER_E or load_byte(text, end) == _UPPER_E:
        at = end + 1
        exact = load_byte(text, at) == _MINUS
        at += int(load_byte(text, at) == _MINUS or load_byte(text, at) == _PLUS)
        end, exponent = _digits(text, at, np.uint64(0))
        if not 0 < end - at <= MAX_EXPONENT_DIGITS:
            return ABSENT, np.nan
        power += np.int64(exponent)  # type: ignore[assignment]  # an integer in compiled code
    if end - start > MAX_NUMBER:
        return ABSENT, np.nan
    if not exact or digits > MAX_DIGITS or power > MAX_EXACT_POWER:
        return end, np.nan
    if digits <= MAX_EXACT_DIGITS:
        value = np.float64(np.int64(mantissa)) / _POWERS[np.uint64(power)]
    else:
        value = exact_quotient(np.int64(mantissa), _POWERS[np.uint64(power)])
    return end, -value if negative else value


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _digits(text: Bytes, at: int, number: np.uint64) -> tuple[int, np.uint64]:
    """Append the digits at a place of a text to a number; return where they end, and the number.

    Eight bytes are read together: a byte without its zero is below ten if it is a digit. Beyond 19 digits the
    number has no meaning.
    """
    while True:
        word = load_word(text, np.uint64(at)) ^ _ZEROS
        others = (word | (word + _ABOVE_NINE)) & _HIGH_BITS  # right up to the first byte that is no digit
        count = np.uint64(lowest_bit(others)) // _BYTE_BITS if others else _BYTE_BITS
        if count == 0:
            return at, number
        word <<= _WORD_BITS - _BYTE_BITS * count
        # Pairs of digits, of pairs, and of those.
        word = ((word * np.uint64(10)) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
        word = ((word * np.uint64(100)) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
        word = ((word * np.uint64(10_000)) + (word >> np.uint64(32))) & np.uint64(0x00000000FFFFFFFF)
        number = number * _WHOLE_POWERS[count] + word
        at += np.int64(count)  # type: ignore[assignment]  # an integer in compiled code
        if others:
            return at, number
