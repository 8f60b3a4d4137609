"""Texts of records that lie in one buffer."""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from pipeline.records.encoding import keys_of
from pipeline.records.fields import Id

Bytes: TypeAlias = NDArray[np.uint8]
Offsets: TypeAlias = NDArray[np.uint64]
"""Unsigned: compiled code looks whether signed indices are negative, and copies byte by byte then."""
Rows: TypeAlias = NDArray[np.int64]

_LINE_FEED: Final = ord("\n")
_encode_lines = msgspec.json.Encoder().encode_lines

_CHUNK: Final = 200
"""Texts that are made together: few enough to stay in the processor's cache."""


class Texts(NamedTuple):
    """The JSON of records, each with a line feed behind it, which no JSON of this program holds otherwise."""

    buffer: Bytes
    begins: Offsets
    """Where each text begins, shape (n,)."""
    prefix_ends: Offsets
    """Where the name of each record's sequence begins, shape (n,). Of a prediction, the text before it is the
    prefix of its outcome."""
    ends: Offsets
    """Where each text ends, behind its line feed, shape (n,)."""

    @classmethod
    def of(cls, texts: Sequence[bytes], prefix_lengths: Sequence[int]) -> Texts:
        """Return texts in a buffer of their own.

        Parameters
        ----------
        texts
            Texts without line feeds.
        prefix_lengths
            Where the name of the sequence begins in each.

        Examples
        --------
        >>> texts = Texts.of([b'{"id":7,"sequence":0}', b'{"id":9,"sequence":1}'], [8, 8])
        >>> texts.begins.tolist(), texts.prefix_ends.tolist(), texts.ends.tolist()
        ([0, 22], [8, 30], [22, 44])
        """
        buffer = bytearray(b"".join([text + b"\n" for text in texts]))
        lengths = np.fromiter(map(len, texts), dtype=np.uint64, count=len(texts)) + np.uint64(1)
        ends = np.cumsum(lengths, dtype=np.uint64)
        begins = ends - lengths
        prefix_ends = begins + np.array(prefix_lengths, dtype=np.uint64)
        return cls(np.frombuffer(buffer, dtype=np.uint8), begins, prefix_ends, ends)

    def select(self, rows: Rows) -> Texts:
        """Return some of them, in the same buffer."""
        return Texts(self.buffer, self.begins[rows], self.prefix_ends[rows], self.ends[rows])

    def copy(self) -> Texts:
        """Return them in a buffer of their own, one behind the other."""
        out = np.empty(int((self.ends - self.begins).sum()), dtype=np.uint8)
        begins, prefix_ends, ends = np.empty((3, len(self.ends)), dtype=np.uint64)
        _gather(*self, out, begins, prefix_ends, ends)
        return Texts(out, begins, prefix_ends, ends)

    def values(self) -> TextValues:
        """Return the texts of a whole buffer, which lie one behind the other, without their line feeds.

        Examples
        --------
        >>> texts = Texts.of([b'{"sequence":0}', b'{"sequence":1}'], [1, 1])
        >>> [*texts.select(np.array([1])).copy().values()]
        [b'{"sequence":1}']
        """
        return TextValues(self.buffer, self.ends)


class TextValues(Sequence[bytes]):
    r"""Texts of a buffer, each of which is made when its turn comes.

    All at once, they would need fresh memory for each batch, which costs more than to make them.

    Parameters
    ----------
    buffer
        The texts, each with a line feed behind it.
    ends
        Where each ends, behind its line feed, ascending, shape (n,).

    Attributes
    ----------
    buffer
        The texts.

    Examples
    --------
    >>> values = TextValues(np.frombuffer(b"7\n12\n", dtype=np.uint8), np.array([2, 5]))
    >>> values[1], list(values), len(values)
    (b'12', [b'7', b'12'], 2)
    """

    def __init__(self, buffer: Bytes, ends: NDArray[np.integer[Any]]) -> None:
        self.buffer = buffer
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return list(self)[index]
        row = range(len(self))[index]
        begin = int(self._ends[row - 1]) if row else 0
        return self.buffer[begin : int(self._ends[row]) - 1].tobytes()

    @property
    def places(self) -> tuple[Rows, Rows]:
        """Where each text begins and ends in the buffer, without its line feed; shapes (n,)."""
        ends = self._ends.astype(np.int64)
        return np.concatenate([[0], ends[:-1]]), ends - 1

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self._chunks())

    def _chunks(self) -> Iterator[list[bytes]]:
        begin = 0
        for row in range(0, len(self), _CHUNK):
            end = int(self._ends[min(row + _CHUNK, len(self)) - 1])
            yield self.buffer[begin : end - 1].tobytes().split(b"\n")
            begin = end


def key_texts(ids: Sequence[Id]) -> Sequence[bytes]:
    r"""Return the keys of messages as `keys_of` does, in one buffer where all ids are integers.

    Examples
    --------
    >>> list(key_texts([7, 12])), list(key_texts([7, "Zoë"]))
    ([b'7', b'12'], [b'7', b'Zo\xc3\xab'])
    """
    lines = _encode_lines(ids)
    if b'"' in lines:  # only an integer is encoded as its text
        return keys_of(ids)
    buffer = np.frombuffer(lines, dtype=np.uint8)
    return TextValues(buffer, np.flatnonzero(buffer == _LINE_FEED) + 1)


NO_TEXTS = Texts.of([], [])


@njit(cache=True, nogil=True)
def _gather(
    buffer: Bytes,
    begins: Offsets,
    prefix_ends: Offsets,
    ends: Offsets,
    out: Bytes,
    out_begins: Offsets,
    out_prefix_ends: Offsets,
    out_ends: Offsets,
) -> None:
    """Write texts one behind the other, and where they are then: see `Texts`."""
    at = np.uint64(0)
    for i in range(begins.shape[0]):
        begin, length = begins[i], ends[i] - begins[i]
        for k in range(length):
            out[at + k] = buffer[begin + k]
        out_begins[i] = at
        out_prefix_ends[i] = at + (prefix_ends[i] - begin)
        at += length
        out_ends[i] = at
