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
from pipeline.records.tokens import (
    ABSENT,
    COMMA,
    NOTHING,
    QUOTE,
    Bytes,
    Floats,
    null_end,
    read_flag,
    read_id,
    read_integer,
    read_list,
    read_number,
    scalar_end,
    status_end,
    string_end,
    word_end,
)
from pipeline.records.words import load_byte

Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

ID, INTEGER, NUMBER, FLAG, NUMBERS, STATUS = range(6)
"""Kinds of fields: an id, a whole number without a sign, a number, true or false, a list of numbers, and
`labelled` or `expired`."""

MAX_FIELDS: Final = 60
"""Fields to look for, at most: those that were found are bits of a word."""

_COLON, _OPEN, _CLOSE, _N = map(ord, ":{}n")
_SPACE, _TAB, _LINE_FEED, _RETURN = map(ord, " \t\n\r")


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
        name, sign = _skip_space(text, at + 1, end), COMMA
        field, value = following[np.uint64(before)], ABSENT
        if field != ABSENT:
            value = word_end(
                text, name, names, name_stops[np.uint64(field)], name_stops[np.uint64(field + 1)]
            )
        if value == ABSENT:
            value = _behind_name(text, name, end)
            if value == ABSENT:
                return False
            field = _field_of(text, name, names, name_stops)
        value = _skip_space(text, value, end)
        if field == ABSENT:
            at = scalar_end(text, value)
            if at == ABSENT or only:
                return False
        else:
            place = np.uint64(field)
            if nullable[place] and load_byte(text, value) == _N:
                at, integer, number = null_end(text, value), NOTHING, 0.0
            else:
                at, integer, number = _value(text, value, kinds[place], lists, row)
            if integer > most[place]:
                return False
            bit = np.uint64(1) << place
            if at == ABSENT or found & bit:
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
        end, integer = read_id(text, at)
    elif kind == INTEGER:
        end, integer = read_integer(text, at)
    elif kind == NUMBER:
        end, number = read_number(text, at)
        integer = 0
    elif kind == NUMBERS:
        end, integer = read_list(text, at, lists, row)
    elif kind == FLAG:
        end, integer = read_flag(text, at)
    else:
        end = status_end(text, at)
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


@njit(cache=True, nogil=True)
def _behind_name(text: Bytes, at: int, end: int) -> int:
    """Return where the colon behind a name ends, `ABSENT` if there is none."""
    at = string_end(text, at)
    if at == ABSENT:
        return ABSENT
    at = _skip_space(text, at, end)
    return at + 1 if at < end and load_byte(text, at) == _COLON else ABSENT


@njit(cache=True, nogil=True)
def _field_of(text: Bytes, begin: int, names: Bytes, name_stops: Integers) -> int:
    """Return the field whose name begins here, `ABSENT` for one that is not wanted.

    The colon may stand behind spaces, so it is not compared.
    """
    for field in range(len(name_stops) - 1):
        if word_end(text, begin, names, name_stops[field], name_stops[field + 1] - 1) != ABSENT:
            return field
    return ABSENT


@njit(cache=True, nogil=True, error_model="numpy")
def read_lists(text: Bytes, begins: Integers, ends: Integers, lists: Floats, usual: Flags) -> None:
    """Read texts that are lists of numbers.

    Parameters
    ----------
    text, begins, ends
        Where the lists are, shape (n,), with `SPARE` zeros behind them.
    lists
        Written: the numbers, shape (n, their length).
    usual
        Written: whether all of a list were read, shape (n,).
    """
    for row in range(len(begins)):
        end, found = read_list(text, begins[row], lists, row)
        usual[row] = end == ends[row] and found != NOTHING


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
            if load_byte(text, begin) == QUOTE:
                begin, end = begin + 1, end - 1
            same = end - begin == key_end - key_begin
            if same:
                for offset in range(end - begin):
                    if load_byte(text, begin + offset) != load_byte(keys, key_begin + offset):
                        same = False
                        break
            usual[message] = same
        key_begin = key_end
