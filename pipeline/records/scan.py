"""Find the fields of records in their bytes, compiled.

What is found is what any parser of JSON finds. A value may be read on beyond the end of its record, which is
then not usual. Behind all records are `SPARE` zeros, which are no part of any value.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import ZERO, njit
from pipeline.records.quotients import MAX_DIGITS, exact_quotient
from pipeline.records.words import SPARE, load_byte, load_word, lowest_bit

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

ID, INTEGER, NUMBER, FLAG, NUMBERS, STATUS = range(6)
"""Kinds of fields: an id, a whole number without a sign, a number, true or false, a list of numbers, and
`labelled` or `expired`."""
NOTHING: Final = -1
"""Written in place of a whole number or a flag where the value is null."""

MAX_FIELDS: Final = 60
"""Fields to look for, at most: those that were found are bits of a word."""
MAX_ID: Final = 256
"""Characters of an id, at most."""
MAX_INTEGER: Final = 2**63 - 1
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

_QUOTE, _BACKSLASH, _COMMA, _COLON, _OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = map(ord, '"\\,:{}[]')
_MINUS, _PLUS, _DOT, _ZERO, _NINE, _LOWER_E, _UPPER_E, _N, _T = map(ord, "-+.09eEnt")
_SPACE, _TAB, _LINE_FEED, _RETURN = map(ord, " \t\n\r")
_WORDS: Final = np.frombuffer(b'nulltruefalse"labelled""expired"' + bytes(SPARE), dtype=np.uint8)
_NULL, _TRUE, _FALSE, _LABELLED, _EXPIRED, _WORDS_END = 0, 4, 8, 13, 23, 32
"""Where each of them begins, and the end of the last."""
_ABSENT: Final = -1
"""The end of something that is not there."""

# What is done to words is done to eight characters at once.
_ONES, _HIGH_BITS, _ZEROS, _ABOVE_NINE = (
    np.uint64(byte * 0x0101_0101_0101_0101) for byte in (0x01, 0x80, 0x30, 0x76)
)
_QUOTES, _BACKSLASHES, _SPACES = (_ONES * np.uint64(byte) for byte in (_QUOTE, _BACKSLASH, _SPACE))
_WORD_BITS, _BYTE_BITS = np.uint64(64), np.uint64(8)


@njit(cache=True, nogil=True, error_model="numpy")
def scan(
    text: Bytes,
    stops: Integers,
    names: Bytes,
    name_stops: Integers,
    kinds: Integers,
    nullable: Flags,
    most: Integers,
    only: bool,
    begins: Integers,
    ends: Integers,
    integers: Integers,
    numbers: Floats,
    lists: Floats,
    usual: Flags,
    following: Integers,
) -> None:
    """Find fields of flat JSON objects: ASCII without escapes, and each field once.

    Nothing is said of other records.

    Parameters
    ----------
    text
        The records, one behind the other, and `SPARE` zeros.
    stops
        Where each record ends, shape (n,).
    names
        The names of the fields, each in quotes and with a colon, and `SPARE` bytes.
    name_stops
        Where the names begin, and where the last one ends, shape (fields + 1,).
    kinds, nullable, most
        The kind of each field, whether it may be null, and the largest whole number; shape (fields,).
    only
        Whether records have no other fields.
    begins, ends
        Written: where the value of each field is in the text, shape (fields, n). Strings are in quotes.
    integers
        Written: whole numbers, also of ids, and flags; 0 for numbers; `NOTHING` for null, for other ids and
        for lists of which only a parser can tell a number; shape (fields, n).
    numbers
        Written: numbers, NaN where only a parser can tell, 0 for null; shape (fields, n).
    lists
        Written: the list of numbers, shape (n, its length).
    usual
        Written: whether all fields of a record were found, shape (n,).
    following
        Changed: the field behind each in the last record, and the first one, shape (fields + 1,); -1 at
        first.
    """
    begin = ZERO
    for row in range(len(stops)):
        end = stops[row]
        usual[row] = _scan_record(
            text,
            begin,
            end,
            names,
            name_stops,
            kinds,
            nullable,
            most,
            only,
            row,
            begins,
            ends,
            integers,
            numbers,
            lists,
            following,
        )
        begin = end


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _scan_record(
    text: Bytes,
    begin: int,
    end: int,
    names: Bytes,
    name_stops: Integers,
    kinds: Integers,
    nullable: Flags,
    most: Integers,
    only: bool,
    row: int,
    begins: Integers,
    ends: Integers,
    integers: Integers,
    numbers: Floats,
    lists: Floats,
    following: Integers,
) -> bool:
    """Find the fields of one record: see `scan`."""
    fields, found, before, sign = len(kinds), np.uint64(0), len(kinds), _OPEN
    at = _skip_space(text, begin, end)
    while at < end and load_byte(text, at) == sign:
        name, sign = _skip_space(text, at + 1, end), _COMMA
        field, value = following[np.uint64(before)], _ABSENT
        if field != _ABSENT:
            value = _behind(text, name, names, name_stops[np.uint64(field)], name_stops[np.uint64(field + 1)])
        if value == _ABSENT:
            value = _behind_name(text, name, end)
            if value == _ABSENT:
                return False
            field = _field_of(text, name, names, name_stops)
        value = _skip_space(text, value, end)
        if field == _ABSENT:
            at = _scalar_end(text, value)
            if at == _ABSENT or only:
                return False
        else:
            place = np.uint64(field)
            if nullable[place] and load_byte(text, value) == _N:
                at, integer, number = _behind(text, value, _WORDS, _NULL, _TRUE), NOTHING, 0.0
            else:
                at, integer, number = _value(text, value, kinds[place], lists, row)
            if integer > most[place]:
                return False
            bit = np.uint64(1) << place
            if at == _ABSENT or found & bit:
                return False
            found |= bit
            following[np.uint64(before)] = before = field
            begins[place, row], ends[place, row] = value, at
            integers[place, row], numbers[place, row] = integer, number
        at = _skip_space(text, at, end)
    every = (np.uint64(1) << np.uint64(fields)) - np.uint64(1)
    if at >= end or load_byte(text, at) != _CLOSE or found != every:
        return False
    return _skip_space(text, at + 1, end) == end


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _value(text: Bytes, at: int, kind: int, lists: Floats, row: int) -> tuple[int, int, float]:
    """Return where a value of a kind ends, its whole number and its number; write its list."""
    integer, number = NOTHING, 0.0
    if kind == ID:
        end, integer = _id(text, at)
    elif kind == INTEGER:
        end, integer = _integer(text, at)
    elif kind == NUMBER:
        end, number = _number(text, at)
        integer = 0
    elif kind == NUMBERS:
        end, integer = _list(text, at, lists, row)
    elif kind == FLAG:
        end, integer = _flag_end(text, at), int(load_byte(text, at) == _T)
    else:
        end = _status_end(text, at)
    return end, integer, number


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _skip_space(text: Bytes, at: int, end: int) -> int:
    """Return where something else than space stands, at the end at the latest."""
    if load_byte(text, at) > _SPACE:  # as mostly
        return at
    while at < end and (
        load_byte(text, at) == _SPACE
        or load_byte(text, at) == _LINE_FEED
        or load_byte(text, at) == _RETURN
        or load_byte(text, at) == _TAB
    ):
        at += 1
    return at


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _behind(text: Bytes, at: int, words: Bytes, begin: int, end: int) -> int:
    """Return where a word ends that stands at a place of a text, `_ABSENT` if it does not."""
    while True:
        other, left = load_word(text, np.uint64(at)) ^ load_word(words, np.uint64(begin)), end - begin
        if left <= SPARE:
            return at + left if not other << np.uint64(8 * (SPARE - left)) else _ABSENT
        if other:
            return _ABSENT
        at, begin = at + SPARE, begin + SPARE


@njit(cache=True, nogil=True)
def _behind_name(text: Bytes, at: int, end: int) -> int:
    """Return where the colon behind a name ends, `_ABSENT` if there is none."""
    at = _string_end(text, at)
    if at == _ABSENT:
        return _ABSENT
    at = _skip_space(text, at, end)
    return at + 1 if at < end and load_byte(text, at) == _COLON else _ABSENT


@njit(cache=True, nogil=True)
def _field_of(text: Bytes, begin: int, names: Bytes, name_stops: Integers) -> int:
    """Return the field whose name begins here, `_ABSENT` for one that is not wanted.

    The colon may stand behind spaces, so it is not compared.
    """
    for field in range(len(name_stops) - 1):
        if _behind(text, begin, names, name_stops[field], name_stops[field + 1] - 1) != _ABSENT:
            return field
    return _ABSENT


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _string_end(text: Bytes, at: int) -> int:
    """Return where a string ends, behind its quotes; `_ABSENT` if there is none in plain ASCII."""
    if load_byte(text, at) != _QUOTE:
        return _ABSENT
    at += 1
    while True:
        word = load_word(text, np.uint64(at))
        quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
        special = (quote - _ONES) & ~quote | (backslash - _ONES) & ~backslash
        special |= (word - _SPACES) & ~word | word
        special &= _HIGH_BITS
        if special:
            at += int(lowest_bit(special) >> np.uint64(3))
            return at + 1 if load_byte(text, at) == _QUOTE else _ABSENT
        at += SPARE


@njit(cache=True, nogil=True)
def _scalar_end(text: Bytes, at: int) -> int:
    """Return where a scalar ends, `_ABSENT` if it is something else."""
    first = load_byte(text, at)
    if first == _QUOTE:
        return _string_end(text, at)
    if first == _N:
        return _behind(text, at, _WORDS, _NULL, _TRUE)
    if first == _MINUS or _ZERO <= first <= _NINE:
        return _number(text, at)[0]
    return _flag_end(text, at)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _flag_end(text: Bytes, at: int) -> int:
    """Return where true or false ends, `_ABSENT` if it is something else."""
    if load_byte(text, at) == _T:
        return _behind(text, at, _WORDS, _TRUE, _FALSE)
    return _behind(text, at, _WORDS, _FALSE, _LABELLED)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _status_end(text: Bytes, at: int) -> int:
    """Return where a usual status ends, `_ABSENT` if it is another one."""
    end = _behind(text, at, _WORDS, _LABELLED, _EXPIRED)
    return end if end != _ABSENT else _behind(text, at, _WORDS, _EXPIRED, _WORDS_END)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _id(text: Bytes, at: int) -> tuple[int, int]:
    """Return where an id ends, and the id if it is a whole number without a sign, else `NOTHING`.

    It is `_ABSENT` if there is none, or one that has another text when it is encoded again.
    """
    if load_byte(text, at) == _QUOTE:
        end = _string_end(text, at)
        return (end if 2 < end - at <= MAX_ID + 2 else _ABSENT), NOTHING
    if load_byte(text, at) == _MINUS:
        return (_ABSENT if load_byte(text, at + 1) == _ZERO else _integer(text, at + 1)[0]), NOTHING
    return _integer(text, at)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _integer(text: Bytes, at: int) -> tuple[int, int]:
    """Return where a whole number without a sign ends, and the number."""
    end, number = _digits(text, at, np.uint64(0))
    digits = end - at
    if digits == 0 or digits > MAX_DIGITS or (digits > 1 and load_byte(text, at) == _ZERO):
        return _ABSENT, 0
    return end, np.int64(number)  # type: ignore[return-value]  # an integer in compiled code


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _list(text: Bytes, at: int, lists: Floats, row: int) -> tuple[int, int]:
    """Write the numbers of a list; return where it ends, and `NOTHING` if only a parser can tell one."""
    found, sign = 0, _OPEN_LIST
    for place in range(lists.shape[1]):
        if load_byte(text, at) != sign:
            return _ABSENT, NOTHING
        at, number = _number(text, at + 1)
        if at == _ABSENT:
            return _ABSENT, NOTHING
        if np.isnan(number):
            found = NOTHING
        lists[row, place] = number
        sign = _COMMA
    return (at + 1, found) if load_byte(text, at) == _CLOSE_LIST else (_ABSENT, NOTHING)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _number(text: Bytes, at: int) -> tuple[int, float]:
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
            return _ABSENT, np.nan
    power, exact = 0, not negative
    if load_byte(text, end) == _DOT:
        at = end + 1
        end, mantissa = _digits(text, at, mantissa)
        power = end - at
        if power == 0:
            return _ABSENT, np.nan
        digits, exact = digits + power, True
    if load_byte(text, end) == _LOWER_E or load_byte(text, end) == _UPPER_E:
        at = end + 1
        exact = exact and load_byte(text, at) == _MINUS
        at += int(load_byte(text, at) == _MINUS or load_byte(text, at) == _PLUS)
        end, exponent = _digits(text, at, np.uint64(0))
        if not 0 < end - at <= MAX_EXPONENT_DIGITS:
            return _ABSENT, np.nan
        power += np.int64(exponent)  # type: ignore[assignment]  # an integer in compiled code
    if end - start > MAX_NUMBER:
        return _ABSENT, np.nan
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


@njit(cache=True, nogil=True)
def are_keys(
    text: Bytes, begins: Integers, ends: Integers, keys: Bytes, key_ends: Integers, usual: Flags
) -> None:
    """Compare ids with the keys of their messages; a message with another key is not usual.

    Parameters
    ----------
    text, begins, ends
        Where the ids are, shape (n,); those of messages that are not usual are not looked at.
    keys
        The keys, one behind the other.
    key_ends
        Where each key ends, shape (n,).
    usual
        Changed: whether each message is usual, shape (n,).
    """
    key_begin = 0
    for message in range(len(usual)):
        key_end = key_ends[message]
        if usual[message]:
            begin, end = begins[message], ends[message]
            if load_byte(text, begin) == _QUOTE:
                begin, end = begin + 1, end - 1
            same = end - begin == key_end - key_begin
            if same:
                for offset in range(end - begin):
                    if load_byte(text, begin + offset) != load_byte(keys, key_begin + offset):
                        same = False
                        break
            usual[message] = same
        key_begin = key_end
