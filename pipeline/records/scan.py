"""Find the fields of messages in their bytes, compiled."""

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

ID, TIME, NUMBER, OTHER = 0, 1, 2, 3
"""Kinds of fields: an id, a time in whole milliseconds, a number, one that is not wanted."""

MAX_FIELDS: Final = 60
"""Fields to look for, at most: those that were found are bits of a word."""
MAX_ID: Final = 256
"""Characters of an id, at most."""
MAX_NUMBER: Final = 40
"""Characters of a number, at most."""
MAX_EXPONENT_DIGITS: Final = 2
"""Digits of an exponent, at most, so that no number is beyond the range of floats."""
MAX_TIME: Final = 2**53

_QUOTE, _BACKSLASH, _COMMA, _COLON = ord('"'), ord("\\"), ord(","), ord(":")
_OPEN, _CLOSE, _MINUS, _PLUS, _DOT = ord("{"), ord("}"), ord("-"), ord("+"), ord(".")
_ZERO, _NINE, _LOWER_E, _UPPER_E = ord("0"), ord("9"), ord("e"), ord("E")
_SPACE, _TAB, _LINE_FEED, _RETURN = 32, 9, 10, 13
_ONES: Final = np.uint64(0x0101010101010101)
"""One in each byte of a word. What is done to such words is done to eight characters at once."""
_NULL, _TRUE, _FALSE = b"null", b"true", b"false"
_MANY: Final = 1_000
"""More digits than any number has whose value is made here."""
_ABSENT: Final = -1
"""The end of something that is not there."""


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
        The messages, one behind the other, and `SPARE` bytes more.
    message_ends
        Where each message ends, shape (n,).
    names
        The names of the fields, each in quotes and with a colon, and `SPARE` bytes behind them.
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
    following = np.full(len(kinds) + 1, _ABSENT)
    _scan(text, message_ends, names, name_ends, kinds, begins, ends, integers, numbers, usual, following)


@njit(cache=True, nogil=True)
def _scan(
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
    following: Integers,
) -> None:
    """Find fields as `scan` says; ``following`` is the field behind each in the message before."""
    begin = ZERO
    for message in range(len(message_ends)):
        end = message_ends[message]
        usual[message] = _scan_message(
            text,
            begin,
            end,
            names,
            name_ends,
            kinds,
            message,
            begins,
            ends,
            integers,
            numbers,
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
    message: int,
    begins: Integers,
    ends: Integers,
    integers: Integers,
    numbers: Floats,
    following: Integers,
) -> bool:
    """Find the fields of one message; return whether it is usual."""
    fields, found, before = len(kinds), np.uint64(0), len(kinds)
    at = _skip_space(text, begin, end)
    more = at < end and load_byte(text, at) == _OPEN
    while more:
        name = _skip_space(text, at + 1, end)
        field = following[before]
        if field != _ABSENT and _is_member(text, name, end, names, name_ends, field):
            value = _skip_space(text, name + _length(name_ends, field), end)
        else:
            name_end = _string_end(text, name, end)
            value = _value_begin(text, name_end, end)
            if value == _ABSENT:
                return False
            field = _field_of(text, name, value, names, name_ends)
        if value >= end:
            return False
        kind = OTHER if field == _ABSENT else kinds[field]
        at, integer, number = _value(text, value, end, kind)
        if at == _ABSENT:
            return False
        if kind != OTHER:
            bit = np.uint64(1) << np.uint64(field)
            if found & bit:
                return False
            found |= bit
            following[before] = field
            before = field
            begins[field, message], ends[field, message] = value, at
            integers[field, message], numbers[field, message] = integer, number
        at = _skip_space(text, at, end)
        more = at < end and load_byte(text, at) == _COMMA
    every = (np.uint64(1) << np.uint64(fields)) - np.uint64(1)
    return (
        at < end
        and load_byte(text, at) == _CLOSE
        and found == every
        and _skip_space(text, at + 1, end) == end
    )


@njit(cache=True, nogil=True)
def _value_begin(text: Bytes, name_end: int, end: int) -> int:
    """Return where the value behind a name begins."""
    if name_end == _ABSENT:
        return _ABSENT
    colon = _skip_space(text, name_end, end)
    if colon >= end or load_byte(text, colon) != _COLON:
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
        load_byte(text, at) == _SPACE
        or load_byte(text, at) == _LINE_FEED
        or load_byte(text, at) == _RETURN
        or load_byte(text, at) == _TAB
    ):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _string_end(text: Bytes, at: int, end: int) -> int:
    """Return where a string ends, behind its quotes; `_ABSENT` if there is none in plain ASCII."""
    if at >= end or load_byte(text, at) != _QUOTE:
        return _ABSENT
    at += 1
    while at < end:
        word = load_word(text, np.uint64(at))
        quote, backslash = word ^ (_ONES * np.uint64(_QUOTE)), word ^ (_ONES * np.uint64(_BACKSLASH))
        special = (quote - _ONES) & ~quote | (backslash - _ONES) & ~backslash
        special |= (word - _ONES * np.uint64(_SPACE)) & ~word | word
        special &= _ONES << np.uint64(7)
        if special:
            at += int(lowest_bit(special) >> np.uint64(3))
            return at + 1 if at < end and load_byte(text, at) == _QUOTE else _ABSENT
        at += SPARE
    return _ABSENT


@njit(cache=True, nogil=True)
def _field_of(text: Bytes, begin: int, end: int, names: Bytes, name_ends: Integers) -> int:
    """Return the field whose name begins here, `_ABSENT` for one that is not wanted.

    The colon may stand behind spaces, so it is not compared.
    """
    for field in range(len(name_ends)):
        length = _length(name_ends, field) - 1
        name = name_ends[field] - length - 1
        same = begin + length <= end
        offset = 0
        while same and offset < length:
            same = load_byte(text, begin + offset) == load_byte(names, name + offset)
            offset += 1
        if same:
            return field
    return _ABSENT


@njit(cache=True, nogil=True)
def _length(name_ends: Integers, field: int) -> int:
    return int(name_ends[field] - (name_ends[field - 1] if field else 0))


@njit(cache=True, nogil=True)
def _is_member(text: Bytes, at: int, end: int, names: Bytes, name_ends: Integers, field: int) -> bool:
    """Whether the name of a field stands here, in quotes and with a colon right behind it."""
    length = _length(name_ends, field)
    if at + length > end:
        return False
    name = name_ends[field] - length
    while length > 0:
        differing = load_word(text, np.uint64(at)) ^ load_word(names, np.uint64(name))
        if length < SPARE:
            differing <<= np.uint64(8 * (SPARE - length))
        if differing:
            return False
        at, name, length = at + SPARE, name + SPARE, length - SPARE
    return True


@njit(cache=True, nogil=True)
def _scalar_end(text: Bytes, at: int, end: int) -> int:
    """Return where a scalar ends, `_ABSENT` if it is something else."""
    first = load_byte(text, at)
    if first == _QUOTE:
        return _string_end(text, at, end)
    if first == _MINUS or _ZERO <= first <= _NINE:
        return _number_end(text, at, end)[0]
    for word in (_NULL, _TRUE, _FALSE):
        if first == word[0]:
            if end - at < len(word):
                return _ABSENT
            for offset in range(len(word)):
                if load_byte(text, at + offset) != word[offset]:
                    return _ABSENT
            return at + len(word)
    return _ABSENT


@njit(cache=True, nogil=True)
def _digits(text: Bytes, at: int, end: int, value: int) -> tuple[int, int]:
    """Return where digits end, and the number that they make behind those of a number before."""
    while at < end and _ZERO <= load_byte(text, at) <= _NINE:
        value = 10 * value + (load_byte(text, at) - _ZERO)
        at += 1
    return at, value


@njit(cache=True, nogil=True)
def _number_end(text: Bytes, at: int, end: int) -> tuple[int, int, int, int]:
    """Return where a number ends, its digits and those behind the point, and what they make without it.

    With an exponent there are `_MANY` digits.
    """
    begin = at + 1 if load_byte(text, at) == _MINUS else at
    at, value = _digits(text, begin, end, ZERO)
    digits, fraction = at - begin, 0
    if digits == 0 or (digits > 1 and load_byte(text, begin) == _ZERO):
        return _ABSENT, 0, 0, 0
    if at < end and load_byte(text, at) == _DOT:
        begin = at + 1
        at, value = _digits(text, begin, end, value)
        fraction = at - begin
        if fraction == 0:
            return _ABSENT, 0, 0, 0
        digits += fraction
    if at < end and (load_byte(text, at) == _LOWER_E or load_byte(text, at) == _UPPER_E):
        at += 1
        if at < end and (load_byte(text, at) == _MINUS or load_byte(text, at) == _PLUS):
            at += 1
        begin, digits = at, _MANY
        at, _ = _digits(text, begin, end, ZERO)
        if at == begin or at - begin > MAX_EXPONENT_DIGITS:
            return _ABSENT, 0, 0, 0
    return at, digits, fraction, value


@njit(cache=True, nogil=True)
def _id_end(text: Bytes, at: int, end: int) -> int:
    """Return where an id ends, `_ABSENT` if it is none or has another text when it is encoded again."""
    if load_byte(text, at) == _QUOTE:
        stop = _string_end(text, at, end)
        return stop if 2 < stop - at <= MAX_ID + 2 else _ABSENT
    stop, digits, fraction, value = _number_end(text, at, end)
    if fraction or digits > MAX_DIGITS or (value == 0 and load_byte(text, at) == _MINUS):
        return _ABSENT
    return stop


@njit(cache=True, nogil=True)
def _time(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return where a time ends, and the time."""
    stop, digits, fraction, time = _number_end(text, at, end)
    if fraction or digits > MAX_DIGITS or time > MAX_TIME or load_byte(text, at) == _MINUS:
        return _ABSENT, 0
    return stop, time


@njit(cache=True, nogil=True)
def _number(text: Bytes, at: int, end: int) -> tuple[int, float]:
    """Return where a number ends, and the number, NaN if only a parser can tell it."""
    stop, digits, fraction, value = _number_end(text, at, end)
    if stop == _ABSENT or stop - at > MAX_NUMBER:
        return _ABSENT, np.nan
    if digits > MAX_DIGITS or load_byte(text, at) == _MINUS:
        return stop, np.nan
    power = 1.0
    for _ in range(fraction):
        power *= 10.0
    return stop, exact_quotient(value, power)


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
            out[at] = load_byte(text, place)
            at += 1
        out[at] = separator
        at += 1
    return at
