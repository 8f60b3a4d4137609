"""Texts that lie in one buffer: messages, records, their keys, their ids."""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.jit import njit, read_only
from pipeline.records.encoding import keys_of
from pipeline.records.fields import Id
from pipeline.records.places import flagged

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]

LINE_FEED: Final = ord("\n")
_COMMA, _CLOSE_LIST, _QUOTE = b',]"'
_encode_lines = msgspec.json.Encoder().encode_lines
decode_ids: Final[Callable[[bytes], list[Id]]] = msgspec.json.Decoder(list[int | str]).decode
"""Decodes a list of ids."""

_CHUNK: Final = 200
"""Texts that are made together: few enough to stay in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Texts(Sequence[bytes]):
    r"""Parts of a buffer. As a sequence, whose texts hold no line feed, each is made when its turn comes.

    All at once, they would need fresh memory for each batch, which costs more than to make them.

    Attributes
    ----------
    text
        The buffer.
    begins, ends
        Where each text begins and ends, shape (n,), or (columns, n) for several texts of each row.

    Examples
    --------
    >>> texts = Texts.of([b"7", b"12", b"345"])
    >>> texts[1], list(texts), len(texts), texts.text.tobytes()
    (b'12', [b'7', b'12', b'345'], 3, b'7\n12\n345\n')
    >>> list(texts.select(np.array([2, 0])))
    [b'345', b'7']
    """

    text: Bytes
    begins: Integers
    ends: Integers

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Texts:
        """Return texts without line feeds, in a buffer where each has one behind it."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        ends = np.cumsum(lengths + 1) - 1
        return cls(np.frombuffer(b"\n".join([*texts, b""]), dtype=np.uint8), ends - lengths, ends)

    @classmethod
    def of_ids(cls, event_ids: Sequence[Id], ids: Sequence[Sequence[Id]]) -> Texts:
        """Return the JSON of ids: those of events, then one column for each entity."""
        columns = [event_ids, *ids]
        lines = cls._of_lines(b"".join(map(_encode_lines, columns)))
        shape = len(columns), -1
        return cls(lines.text, lines.begins.reshape(shape), lines.ends.reshape(shape))

    @classmethod
    def of_id_rows(cls, rows: Sequence[tuple[Id, ...]]) -> Texts:
        """Do the same, given all ids of each event, of at least one."""
        event_ids, *ids = zip(*rows, strict=True)
        return cls.of_ids(event_ids, ids)

    @classmethod
    def _of_lines(cls, lines: bytes) -> Texts:
        text = np.frombuffer(lines, dtype=np.uint8)
        ends = flagged(text == LINE_FEED)
        begins = np.zeros_like(ends)
        begins[1:] = ends[:-1] + 1
        return cls(text, begins, ends)

    @classmethod
    def concat(cls, pieces: Sequence[Texts]) -> Texts:
        """Join pieces, at least one, of as many columns each."""
        pieces = [piece for piece in pieces if len(piece)] or pieces[:1]
        if len(pieces) == 1:
            return pieces[0]
        texts, begins, ends, at = list[Bytes](), list[Integers](), list[Integers](), 0
        for piece in pieces:
            # The texts of a piece are mostly in a part of its buffer.
            low, high = int(piece.begins.min()), int(piece.ends.max())
            texts.append(piece.text[low:high])
            begins.append(piece.begins + (at - low))
            ends.append(piece.ends + (at - low))
            at += high - low
        return cls(
            read_only(np.concatenate(texts)), np.concatenate(begins, axis=-1), np.concatenate(ends, axis=-1)
        )

    @classmethod
    def packed(cls, pieces: Sequence[Texts]) -> Texts:
        """Return texts in a buffer of their own, one behind the other, with a line feed behind each."""
        lengths = np.concatenate([piece.ends - piece.begins for piece in pieces])
        ends = np.cumsum(lengths + 1) - 1
        begins, at = ends - lengths, 0
        out = np.empty(int(lengths.sum()) + len(lengths), dtype=np.uint8)
        for piece in pieces:
            if len(piece):
                join_texts(read_only(piece.text), piece.begins, piece.ends, LINE_FEED, out[begins[at] :])
            at += len(piece)
        return cls(out, begins, ends)

    def __len__(self) -> int:
        return int(self.begins.shape[-1])

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return list(self)[index]
        return self.text[self.begins[index] : self.ends[index]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(
            self.rows(row, row + _CHUNK).joined(LINE_FEED)[:-1].tobytes().split(b"\n")
            for row in range(0, len(self), _CHUNK)
        )

    def select(self, rows: Integers) -> Texts:
        """Return those of some rows, in the same buffer."""
        begins, ends = self.begins[..., rows], self.ends[..., rows]
        return Texts(self.text, np.ascontiguousarray(begins), np.ascontiguousarray(ends))

    def rows(self, begin: int, end: int) -> Texts:
        """Return those of consecutive rows, in the same buffer."""
        begins, ends = self.begins[..., begin:end], self.ends[..., begin:end]
        # For arrays that are not contiguous, code would be compiled once more.
        return Texts(self.text, np.ascontiguousarray(begins), np.ascontiguousarray(ends))

    def column(self, number: int) -> Texts:
        """Return the texts of one of several columns."""
        return Texts(self.text, self.begins[number], self.ends[number])

    def joined(self, separator: int) -> Bytes:
        """Return the texts one behind the other, column by column, each with this byte behind it."""
        begins, ends = self.begins.ravel(), self.ends.ravel()
        out = np.empty(int((ends - begins).sum()) + len(begins), dtype=np.uint8)
        join_texts(read_only(self.text), begins, ends, separator, out)
        return out

    def decode(self, decode: Callable[[bytes], list[Any]]) -> list[Any]:
        """Decode texts, each of which is JSON, as the elements of one list.

        Examples
        --------
        >>> Texts.of_ids([12, "e"], []).decode(msgspec.json.decode)
        [12, 'e']
        """
        if not len(self):
            return []
        out = self.joined(_COMMA)
        out[-1] = _CLOSE_LIST
        return decode(b"[" + out.tobytes())

    def begin(self, records: Texts, rows: Integers, skipped: Integers) -> Flags:
        """Return of each record whether it begins with the ids of the row beside it, shape (n,).

        Parameters
        ----------
        records
            JSON of which each ends with a sign that is in no id. Their ends are not looked at.
        rows
            Which ids each should have, shape (n,).
        skipped
            How many bytes are before each id, shape (columns,): see `id_name_lengths`. Behind it is a comma.
        """
        out, own, others = np.zeros(len(rows), dtype=np.bool_), read_only(self.text), read_only(records.text)
        _begin(own, self.begins, self.ends, rows, skipped, others, records.begins, out)
        return out


NO_TEXTS: Final = Texts.of([])


def joined_texts(texts: Sequence[bytes | None], spare: int = 0) -> Texts:
    """Return texts one behind the other, with spare zeros behind them; None is empty."""
    try:
        text = b"".join([*texts, bytes(spare)])  # type: ignore[list-item]  # see below
    except TypeError:  # None, which is rare, cannot be joined
        return joined_texts([each or b"" for each in texts], spare)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))  # type: ignore[arg-type]  # none is None
    ends = np.cumsum(lengths)
    return Texts(np.frombuffer(text, dtype=np.uint8), ends - lengths, ends)


def key_texts(ids: Texts) -> Sequence[bytes]:
    r"""Return the keys of messages as `keys_of` does, given the JSON of ids.

    Examples
    --------
    >>> list(key_texts(Texts.of_ids([7, 12], []).column(0)))
    [b'7', b'12']
    >>> list(key_texts(Texts.of_ids([7, "Zoë"], []).column(0)))
    [b'7', b'Zo\xc3\xab']
    """
    # Only an integer is encoded as its text.
    if (ids.text[ids.begins] == _QUOTE).any():
        return keys_of(ids.decode(decode_ids))
    return ids


def id_name_lengths(record: type[msgspec.Struct], entities: int) -> Integers:
    """Return how many bytes are before each id at the beginning of the JSON of a type.

    Parameters
    ----------
    record
        The type. Its first fields are the event's id and those of the entities.
    entities
        The number of entities.

    Examples
    --------
    >>> from pipeline.records.outputs import Prediction
    >>> id_name_lengths(Prediction, 2).tolist()  # those of {"event_id": and ,"user_id": and ,"video_id":
    [12, 11, 12]
    """
    fields = msgspec.structs.fields(record)[: 1 + entities]
    return np.array([len(f',"{field.encode_name}":'.encode()) for field in fields])


@njit(cache=True, nogil=True)
def join_texts(text: Bytes, begins: Integers, ends: Integers, separator: int, out: Bytes) -> None:
    """Write parts of a text one behind the other.

    Parameters
    ----------
    text
        The text.
    begins, ends
        Where the parts are, shape (n,).
    separator
        The byte to write behind each part.
    out
        Written: the parts. It may be the text, if each moves to the front.
    """
    # Unsigned: compiled code looks whether signed indices are negative, and copies byte by byte then.
    at = np.uint64(0)
    for part in range(len(begins)):
        begin = np.uint64(begins[part])
        length = np.uint64(ends[part]) - begin
        for offset in range(length):
            out[at + offset] = text[begin + offset]
        at += length
        out[at] = separator
        at += np.uint64(1)


@njit(cache=True, nogil=True)
def _begin(
    text: Bytes,
    begins: Integers,
    ends: Integers,
    rows: Integers,
    skipped: Integers,
    records: Bytes,
    record_begins: Integers,
    out: Flags,
) -> None:
    """Write which records begin with the ids of the rows beside them: see `Texts.begin`."""
    for number in range(len(rows)):
        at, same = record_begins[number], True
        for column in range(begins.shape[0]):
            at += skipped[column]
            for place in range(begins[column, rows[number]], ends[column, rows[number]]):
                if records[at] != text[place]:
                    same = False
                    break
                at += 1
            if not same or records[at] != _COMMA:
                same = False
                break
        out[number] = same
