"""Encode records from their columns: the text of each column by one call, put together by compiled code.

msgspec writes every value but features, so that each is written as in a single record. It ends each value
of a column with a line feed, which no JSON holds otherwise: strings escape theirs. The compiled code copies
the values, row by row, between the names of the fields.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import msgspec
import numpy as np

from forks.jit import njit, read_only
from pipeline.records.encoding import encode
from pipeline.records.texts import NO_TEXTS, Bytes, Integers, Texts, joined_texts
from pipeline.records.words import SPARE, load_word, lowest_bit, store_word

Column: TypeAlias = Sequence[object] | bytes
"""Values, or their text, each with a line feed behind it."""

_WORD_BYTES = np.uint64(8)
_NEWLINES, _LOW_BITS, _HIGH_BITS = (np.uint64(byte * 0x0101_0101_0101_0101) for byte in (ord("\n"), 1, 0x80))
"""Words of which all bytes are the same."""

_encode_lines = msgspec.json.Encoder().encode_lines


class ColumnEncoder:
    r"""Encodes records of one type, which have all fields without a default, and no other.

    Parameters
    ----------
    record
        The type.
    behind_prefix
        Whether other fields precede those of the type, in a text that is given with each record.

    Examples
    --------
    >>> class Point(msgspec.Struct):
    ...     x: float
    ...     sequence: int
    ...     note: str | None = None
    >>> texts, names = ColumnEncoder(Point).encode(2, [b"0.5\n7.0\n", range(4, 6)])
    >>> [*texts], names.tolist()
    ([b'{"x":0.5,"sequence":4}', b'{"x":7.0,"sequence":5}'], [9, 32])
    """

    def __init__(self, record: type[msgspec.Struct], *, behind_prefix: bool = False) -> None:
        names = [
            encode(field.encode_name) + b":" for field in msgspec.structs.fields(record) if field.required
        ]
        first, *others = names
        parts = [first if behind_prefix else b"{" + first, *(b"," + name for name in others)]
        self._fields = len(parts)
        self._last_name = len(names[-1])
        self._parts = joined_texts([*parts, b"}\n"], SPARE)
        self._parts_before_rests = joined_texts([*parts, b"", b"\n"], SPARE)

    def encode(
        self,
        count: int,
        columns: Sequence[Column],
        prefixes: Texts | None = None,
        rests: bytes | None = None,
    ) -> tuple[Texts, Integers]:
        """Encode records.

        Parameters
        ----------
        count
            Their number.
        columns
            The values of each field, in the order of the fields.
        prefixes
            The texts that precede the fields: one for each record, None where there are none.
        rests
            What follows the fields of each record, its brace included, and a line feed. None where it is the
            brace for all.

        Returns
        -------
        tuple of Texts and array
            The records, each with a line feed behind it, and where the name of the last field begins in each,
            shape (n,).
        """
        assert len(columns) == self._fields, "a column for each field"
        lines = [_lines_of(each, count) for each in columns]
        parts = self._parts
        if rests is not None:
            lines.append(_lines_of(rests, count))
            parts = self._parts_before_rests
        lengths = [*map(len, lines)]
        cursors = np.array([*accumulate(lengths[:-1], initial=0)], dtype=np.int64)
        end = sum(lengths) + count * (int(parts.ends[-1]) - len(lines))
        first = NO_TEXTS if prefixes is None else prefixes
        end += int(first.ends.sum()) - int(first.begins.sum())
        buffer = np.empty(end + SPARE, dtype=np.uint8)
        begins, last_values, ends = np.empty((3, count), dtype=np.int64)
        text = np.frombuffer(b"".join([*lines, bytes(SPARE)]), dtype=np.uint8)
        _splice(
            parts.text,
            parts.ends,
            text,
            cursors,
            self._fields - 1,
            read_only(first.text),
            first.begins,
            first.ends,
            buffer,
            begins,
            last_values,
            ends,
        )
        return Texts(buffer[:end], begins, ends), last_values - self._last_name


def _lines_of(column: Column, count: int) -> bytes:
    # Compiled code looks for so many line feeds, and not for the end of the memory.
    if isinstance(column, bytes):
        assert column.count(b"\n") == count, "columns of one length"
        return column
    assert len(column) == count, "columns of one length"
    return _encode_lines(column)


class _Empty(msgspec.Struct):
    sequence: int


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    ColumnEncoder(_Empty).encode(0, [()])


@njit(cache=True, nogil=True)
def _splice(
    parts: Bytes,
    part_ends: Integers,
    lines: Bytes,
    cursors: Integers,
    last: int,
    prefixes: Bytes,
    begins: Integers,
    ends: Integers,
    out: Bytes,
    out_begins: Integers,
    last_values: Integers,
    out_ends: Integers,
) -> None:
    """Write records: a prefix, and then a part, a line, a part, a line, and so on, up to the last part.

    Parameters
    ----------
    parts, part_ends
        What precedes the lines and follows the last one, and where each ends, shape (columns + 1,).
    lines, cursors
        The lines of all columns, and where the next one of each column begins, shape (columns,). Changed.
    last
        The column of the last field.
    prefixes, begins, ends
        The prefixes, shape (n,); none where there are none.
    out
        Written. This and the texts have `SPARE` bytes more.
    out_begins, last_values, out_ends
        Written: where each record and the value of its last field begin, and where it ends before its line
        feed, shape (n,).
    """
    at = np.uint64(0)
    for i in range(out_ends.shape[0]):
        out_begins[i] = at
        if begins.shape[0]:
            begin = np.uint64(begins[i])
            length = np.uint64(ends[i]) - begin
            for k in range(length):
                out[at + k] = prefixes[begin + k]
            at += length
        begin = np.uint64(0)
        for column in range(cursors.shape[0]):
            end = np.uint64(part_ends[column])
            at = _copy(parts, begin, end, out, at)
            begin = end
            if column == last:
                last_values[i] = at
            cursor = np.uint64(cursors[column])
            line_end = _copy_line(lines, cursor, out, at)
            at += line_end - cursor
            cursors[column] = line_end + np.uint64(1)
        at = _copy(parts, begin, np.uint64(part_ends[cursors.shape[0]]), out, at)
        out_ends[i] = at - np.uint64(1)


@njit(cache=True)
def _copy(text: Bytes, begin: np.uint64, end: np.uint64, out: Bytes, at: np.uint64) -> np.uint64:
    """Copy a part of a text to an index of `out`; return the index behind it."""
    for offset in range(np.uint64(0), end - begin, _WORD_BYTES):
        store_word(out, at + offset, load_word(text, begin + offset))
    return at + (end - begin)


@njit(cache=True)
def _copy_line(text: Bytes, begin: np.uint64, out: Bytes, at: np.uint64) -> np.uint64:
    """Copy a text up to its next line feed to an index of `out`; return where that is in the text."""
    while True:
        word = load_word(text, begin)
        store_word(out, at, word)
        # The lowest bit that is set is that of the first zero byte of `others`: the first line feed.
        others = word ^ _NEWLINES
        zeros = (others - _LOW_BITS) & ~others & _HIGH_BITS
        if zeros:
            return begin + np.uint64(lowest_bit(zeros) // _WORD_BYTES)
        begin += _WORD_BYTES
        at += _WORD_BYTES
