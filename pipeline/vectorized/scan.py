"""Find the fields of messages in their bytes, compiled.

Numba's cache on disk knows a function by its own file only: nothing compiled here depends on another one.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

ID, TIME, NUMBER, OTHER = 0, 1, 2, 3
"""Kinds of fields: an id, a time in whole milliseconds, a number, one that is not wanted."""

MAX_FIELDS: Final = 60
"""Fields to look for, at most: those that were found are bits of a word."""
MAX_ID: Final = 256
"""Characters of an id, at most."""
MAX_INTEGER_DIGITS: Final = 18
"""Digits of whole numbers that fit into a word whatever they are."""
MAX_EXACT_DIGITS: Final = 15
"""Digits of numbers that a float holds exactly, as it does ten to the power of so many."""
MAX_NUMBER: Final = 40
"""Characters of a number, at most."""
MAX_EXPONENT_DIGITS: Final = 2
"""Digits of an exponent, at most, so that no number is beyond the range of floats."""
MAX_TIME: Final = 2**53

_QUOTE, _BACKSLASH, _COMMA, _COLON = ord('"'), ord("\\"), ord(","), ord(":")
_OPEN, _CLOSE, _MINUS, _PLUS, _DOT = ord("{"), ord("}"), ord("-"), ord("+"), ord(".")
_ZERO, _NINE, _LOWER_E, _UPPER_E = ord("0"), ord("9"), ord("e"), ord("E")
_SPACE, _TAB, _LINE_FEED, _RETURN, _TILDE = 32, 9, 10, 13, 126
_NULL, _TRUE, _FALSE = b"null", b"true", b"false"
_ABSENT: Final = -1
"""The end of something that is not there."""


@njit(cache=True, nogil=True)
def scan(
    text: Bytes,
    message_ends: Integers,
    names: Bytes,
    name_ends: Integers,
    kinds: Integers,
    begins: Integers,
    ends: Integers,
    integers: Integers,
    numbers: Floats,
    usual: Flags,
) -> None:
    """Find fields of flat JSON objects: ASCII without escapes, and each field once.

    What is found this way has the same value for any parser of JSON. Nothing is said of other messages.

    Parameters
    ----------
    text
        The messages, one behind the other, and one byte more.
    message_ends
        Where each message ends, shape (n,).
    names
        The names of the fields, one behind the other.
    name_ends
        Where each name ends, shape (fields,).
    kinds
        The kind of each field, shape (fields,).
    begins, ends
        Written: where the value of each field is in the text, shape (fields, n). Strings are in quotes.
    integers
        Written: times, shape (fields, n).
    numbers
        Written: numbers, NaN where only a parser can tell, shape (fields, n).
    usual
        Written: whether all fields of a message were found, shape (n,).
    """
    fields, begin = len(kinds), 0
    following = np.full(fields + 1, _ABSENT, dtype=np.int64)  # the field behind each in the message before
    for message in range(len(message_ends)):
        end = message_ends[message]
        usual[message] = _scan_message(
            text,
            begin,
            end,
            names,
            name_ends,
            kinds,
            begins[:, message],
            ends[:, message],
            integers[:, message],
            numbers[:, message],
            following,
        )
        begin = end


@njit(cache=True, nogil=True)
def _scan_message(
    text: Bytes,
    begin: int,
    end: int,
    names: Bytes,
    name_ends: Integers,
    kinds: Integers,
    begins: Integers,
    ends: Integers,
    integers: Integers,
    numbers: Floats,
    following: Integers,
) -> bool:
    fields, found, before = len(kinds), np.uint64(0), len(kinds)
    at = _skip_space(text, begin, end)
    more = at < end and text[at] == _OPEN
    while more:
        name = _skip_space(text, at + 1, end)
        name_end = _string_end(text, name, end)
        value = _value_begin(text, name_end, end)
        if value == _ABSENT:
            return False
        field = _field_of(text, name + 1, name_end - 1, names, name_ends, following[before])
        kind = OTHER if field == _ABSENT else kinds[field]
        at, integer, number = _value(text, value, end, kind)
        if at == _ABSENT:
            return False
        if kind != OTHER:
            bit = np.uint64(1) << np.uint64(field)
            if found & bit:
                return False
            found |= bit
            following[before] = before = field
            begins[field], ends[field], integers[field], numbers[field] = value, at, integer, number
        at = _skip_space(text, at, end)
        more = at < end and text[at] == _COMMA
    every = (np.uint64(1) << np.uint64(fields)) - np.uint64(1)
    return at < end and text[at] == _CLOSE and found == every and _skip_space(text, at + 1, end) == end


@njit(cache=True, nogil=True)
def _value_begin(text: Bytes, name_end: int, end: int) -> int:
    """Return where the value behind a name begins."""
    if name_end == _ABSENT:
        return _ABSENT
    colon = _skip_space(text, name_end, end)
    if colon >= end or text[colon] != _COLON:
        return _ABSENT
    begin = _skip_space(text, colon + 1, end)
    return begin if begin < end else _ABSENT


@njit(cache=True, nogil=True)
def _value(text: Bytes, at: int, end: int, kind: int) -> tuple[int, int, float]:
    """Return where a value of a kind ends, its time and its number."""
    if kind == ID:
        return _id_end(text, at, end), 0, np.nan
    if kind == TIME:
        stop, time = _time(text, at, end)
        return stop, time, np.nan
    if kind == NUMBER:
        stop, number = _number(text, at, end)
        return stop, 0, number
    return _scalar_end(text, at, end), 0, np.nan


@njit(cache=True, nogil=True)
def _skip_space(text: Bytes, at: int, end: int) -> int:
    while at < end and (
        text[at] == _SPACE or text[at] == _LINE_FEED or text[at] == _RETURN or text[at] == _TAB
    ):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _string_end(text: Bytes, at: int, end: int) -> int:
    """Return where a string ends, behind its quotes; `_ABSENT` if there is none in plain ASCII."""
    if at >= end or text[at] != _QUOTE:
        return _ABSENT
    at += 1
    while at < end:
        character = text[at]
        if character == _QUOTE:
            return at + 1
        if character < _SPACE or character == _BACKSLASH or character > _TILDE:
            return _ABSENT
        at += 1
    return _ABSENT


@njit(cache=True, nogil=True)
def _field_of(text: Bytes, begin: int, end: int, names: Bytes, name_ends: Integers, expected: int) -> int:
    """Return the field of a name, `_ABSENT` for one that is not wanted."""
    if expected != _ABSENT and _is_name(text, begin, end, names, name_ends, expected):
        return expected
    for field in range(len(name_ends)):
        if _is_name(text, begin, end, names, name_ends, field):
            return field
    return _ABSENT


@njit(cache=True, nogil=True)
def _is_name(text: Bytes, begin: int, end: int, names: Bytes, name_ends: Integers, field: int) -> bool:
    name = name_ends[field - 1] if field else 0
    if name_ends[field] - name != end - begin:
        return False
    for offset in range(end - begin):  # noqa: SIM110 - compiled code has no `all`
        if text[begin + offset] != names[name + offset]:
            return False
    return True


@njit(cache=True, nogil=True)
def _scalar_end(text: Bytes, at: int, end: int) -> int:
    """Return where a scalar ends, `_ABSENT` if it is something else."""
    first = text[at]
    if first == _QUOTE:
        return _string_end(text, at, end)
    if first == _MINUS or _ZERO <= first <= _NINE:
        return _number_end(text, at, end)[0]
    for word in (_NULL, _TRUE, _FALSE):
        if first == word[0]:
            if end - at < len(word):
                return _ABSENT
            for offset in range(len(word)):
                if text[at + offset] != word[offset]:
                    return _ABSENT
            return at + len(word)
    return _ABSENT


@njit(cache=True, nogil=True)
def _number_end(text: Bytes, at: int, end: int) -> tuple[int, int, int, bool]:
    """Return where a number ends, its digits, those behind the point, and whether it has no exponent."""
    if text[at] == _MINUS:
        at += 1
    begin = at
    while at < end and _ZERO <= text[at] <= _NINE:
        at += 1
    digits = at - begin
    if digits == 0 or (digits > 1 and text[begin] == _ZERO):
        return _ABSENT, 0, 0, False
    fraction = 0
    if at < end and text[at] == _DOT:
        at += 1
        begin = at
        while at < end and _ZERO <= text[at] <= _NINE:
            at += 1
        fraction = at - begin
        if fraction == 0:
            return _ABSENT, 0, 0, False
    plain = True
    if at < end and (text[at] == _LOWER_E or text[at] == _UPPER_E):
        plain = False
        at += 1
        if at < end and (text[at] == _MINUS or text[at] == _PLUS):
            at += 1
        begin = at
        while at < end and _ZERO <= text[at] <= _NINE:
            at += 1
        if at == begin or at - begin > MAX_EXPONENT_DIGITS:
            return _ABSENT, 0, 0, False
    return at, digits + fraction, fraction, plain


@njit(cache=True, nogil=True)
def _id_end(text: Bytes, at: int, end: int) -> int:
    """Return where an id ends, `_ABSENT` if it is none or has another text when it is encoded again."""
    if text[at] == _QUOTE:
        stop = _string_end(text, at, end)
        return stop if 2 < stop - at <= MAX_ID + 2 else _ABSENT
    if text[at] != _MINUS and not _ZERO <= text[at] <= _NINE:
        return _ABSENT
    stop, digits, fraction, plain = _number_end(text, at, end)
    if stop == _ABSENT or fraction or not plain or digits > MAX_INTEGER_DIGITS:
        return _ABSENT
    return _ABSENT if text[at] == _MINUS and text[at + 1] == _ZERO else stop


@njit(cache=True, nogil=True)
def _time(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return where a time ends, and the time."""
    if not _ZERO <= text[at] <= _NINE:
        return _ABSENT, 0
    stop, digits, fraction, plain = _number_end(text, at, end)
    if stop == _ABSENT or fraction or not plain or digits > MAX_INTEGER_DIGITS:
        return _ABSENT, 0
    time = 0
    for place in range(at, stop):
        time = 10 * time + (int(text[place]) - _ZERO)
    return (stop, time) if time <= MAX_TIME else (_ABSENT, 0)


@njit(cache=True, nogil=True)
def _number(text: Bytes, at: int, end: int) -> tuple[int, float]:
    """Return where a number ends, and the number, NaN if it takes more than one exact division.

    Clinger, "How to read floating point numbers accurately", PLDI 1990: the quotient of two floats that are
    exact is the float next to the number.
    """
    if text[at] != _MINUS and not _ZERO <= text[at] <= _NINE:
        return _ABSENT, np.nan
    stop, digits, fraction, plain = _number_end(text, at, end)
    if stop == _ABSENT or stop - at > MAX_NUMBER:
        return _ABSENT, np.nan
    if not plain or digits > MAX_EXACT_DIGITS or text[at] == _MINUS:
        return stop, np.nan
    mantissa = 0
    for place in range(at, stop):
        if text[place] != _DOT:
            mantissa = 10 * mantissa + (int(text[place]) - _ZERO)
    power = 1.0
    for _ in range(fraction):
        power *= 10.0
    return stop, mantissa / power


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
            if text[begin] == _QUOTE:
                begin, end = begin + 1, end - 1
            same = end - begin == key_end - key_begin
            if same:
                for offset in range(end - begin):
                    if text[begin + offset] != keys[key_begin + offset]:
                        same = False
                        break
            usual[message] = same
        key_begin = key_end


@njit(cache=True, nogil=True)
def join_texts(text: Bytes, begins: Integers, ends: Integers, separator: int, out: Bytes) -> int:
    """Write parts of a text one behind the other, each with a separator behind it; return where they end.

    Parameters
    ----------
    text
        The text.
    begins, ends
        Where the parts are, shape (n,).
    separator
        The byte behind each part.
    out
        Written: the parts. It has room for them.
    """
    at = 0
    for part in range(len(begins)):
        for place in range(begins[part], ends[part]):
            out[at] = text[place]
            at += 1
        out[at] = separator
        at += 1
    return at
