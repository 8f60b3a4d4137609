"""128-bit digests of what the join finds events by: keyed SipHash-2-4, compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.jit import ZERO, njit, read_only
from pipeline.join.identity import Identity
from pipeline.records.texts import Texts

Bytes: TypeAlias = NDArray[np.uint8]
Digests: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.int64]

KEY_BYTES: Final = 16
_LINE_FEED: Final = np.uint8(ord("\n"))
_OPEN, _COMMA, _CLOSE = b"[,]"
_WORD: Final = 8

_encode_lines = msgspec.json.Encoder().encode_lines


class Digester:
    """Makes the digests of events' identities, 16 bytes each.

    Whoever does not know the key cannot choose ids that have the same digest, or the same slot in a hash
    table.

    Parameters
    ----------
    key
        Secret key, 16 bytes.

    References
    ----------
    Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012, and the variant of its authors
    with 128 bits.

    Examples
    --------
    >>> digester = Digester(bytes(16))
    >>> digests = digester.digests(["7", 7])
    >>> digests.shape, bool((digests[0] == digests[1]).all())
    ((2, 2), False)
    >>> columns = Texts.of_ids([7], [["u"], ["v"]])
    >>> bool((digester.digests_of(columns, [1]) == digester.digests([(7, "v")])).all())
    True
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"the key has {len(key)} bytes, and must have {KEY_BYTES}")
        self._key = np.frombuffer(key, dtype=np.uint64)

    def digests(self, identities: Iterable[Identity]) -> Digests:
        """Return the digests of the JSON texts of identities, shape (n, 2)."""
        ids = [*identities]
        found = np.empty((len(ids), 2), dtype=np.uint64)
        hash_lines(np.frombuffer(_encode_lines(ids), dtype=np.uint8), self._key, found)
        return found

    def digests_of(self, ids: Texts, item_entities: Sequence[int] = ()) -> Digests:
        """Return the digests of events, or of items of slates, which name these entities; shape (n, 2)."""
        if not item_entities or not ids.begins.shape[1]:
            return self.digests_in(ids.text, ids.begins[0], ids.ends[0])
        columns = [0, *(1 + entity for entity in item_entities)]
        return self.digests_of_rows(Texts(ids.text, ids.begins[columns], ids.ends[columns]))

    def digests_of_rows(self, ids: Texts) -> Digests:
        """Return the digests of all ids of each row, shape (n, 2)."""
        begins, ends = ids.begins, ids.ends
        lines = np.empty(int((ends - begins).sum()) + (len(begins) + 2) * begins.shape[1], dtype=np.uint8)
        _write_lists(read_only(ids.text), begins, ends, lines)
        found = np.empty((begins.shape[1], 2), dtype=np.uint64)
        hash_lines(read_only(lines), self._key, found)
        return found

    def digests_in(self, text: Bytes, begins: Integers, ends: Integers) -> Digests:
        """Return the digests of ids, given where their JSON begins and ends in a text, shape (n, 2)."""
        found = np.empty((len(begins), 2), dtype=np.uint64)
        hash_parts(text, begins, ends, self._key, found)
        return found


@njit(cache=True, nogil=True)
def _write_lists(text: Bytes, begins: Integers, ends: Integers, out: Bytes) -> None:
    """Write the JSON of a list of the ids of each row, and a line feed behind each."""
    at = 0
    for row in range(begins.shape[1]):
        for column in range(begins.shape[0]):
            out[at] = _COMMA if column else _OPEN
            at += 1
            for place in range(begins[column, row], ends[column, row]):
                out[at] = text[place]
                at += 1
        out[at], out[at + 1] = _CLOSE, _LINE_FEED
        at += 2


@njit(cache=True, nogil=True)
def hash_parts(text: Bytes, begins: Integers, ends: Integers, key: Digests, out: Digests) -> None:
    """Write the digest of each part of a text.

    Parameters
    ----------
    text
        The text.
    begins, ends
        Where the parts are, shape (n,).
    key
        Shape (2,).
    out
        Written: the digests, shape (n, 2).
    """
    for part in range(out.shape[0]):
        _hash(text, begins[part], ends[part], key, out, part)


@njit(cache=True, nogil=True)
def hash_lines(text: Bytes, key: Digests, out: Digests) -> None:
    """Write the digest of each line of a text.

    Parameters
    ----------
    text
        Lines, each with a line feed at its end.
    key
        Shape (2,).
    out
        Written: the digests, shape (lines, 2).
    """
    begin = ZERO
    for line in range(out.shape[0]):
        end = begin
        while text[end] != _LINE_FEED:
            end += 1
        _hash(text, begin, end, key, out, line)
        begin = end + 1


@njit(cache=True, nogil=True)
def _hash(text: Bytes, begin: int, end: int, key: Digests, out: Digests, row: int) -> None:  # noqa: PLR0917 - compiled code is called by position
    """Write the digest of a part of a text to a row of `out`."""
    v0, v1 = key[0] ^ np.uint64(0x736F6D6570736575), key[1] ^ np.uint64(0x646F72616E646F6D)
    v2, v3 = key[0] ^ np.uint64(0x6C7967656E657261), key[1] ^ np.uint64(0x7465646279746573)
    v1 ^= np.uint64(0xEE)
    at = begin
    while True:
        size = min(_WORD, end - at)
        word = np.uint64(0)
        for index in range(size):
            word |= np.uint64(text[at + index]) << np.uint64(8 * index)
        last = size < _WORD
        if last:
            word |= np.uint64(end - begin) << np.uint64(56)
        v3 ^= word
        for _ in range(2):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        if last:
            break
        at += _WORD
    v2 ^= np.uint64(0xEE)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    out[row, 0] = v0 ^ v1 ^ v2 ^ v3
    v1 ^= np.uint64(0xDD)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    out[row, 1] = v0 ^ v1 ^ v2 ^ v3


@njit(cache=True, nogil=True)
def _round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    v0 += v1
    v1 = (v1 << np.uint64(13)) | (v1 >> np.uint64(51))
    v1 ^= v0
    v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
    v2 += v3
    v3 = (v3 << np.uint64(16)) | (v3 >> np.uint64(48))
    v3 ^= v2
    v0 += v3
    v3 = (v3 << np.uint64(21)) | (v3 >> np.uint64(43))
    v3 ^= v0
    v2 += v1
    v1 = (v1 << np.uint64(17)) | (v1 >> np.uint64(47))
    v1 ^= v2
    v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
    return v0, v1, v2, v3
