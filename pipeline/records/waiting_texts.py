"""The texts of predictions that wait for their label, in one buffer."""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np

from forks.jit import read_only
from pipeline.records.narrow_integers import NarrowIntegers
from pipeline.records.places import flagged
from pipeline.records.texts import LINE_FEED, Integers, Texts, join_texts

COMPACT_AFTER: Final = 4_096
"""Texts that are no longer needed, at least, before their room is freed."""
COMPACT_RATIO: Final = 3
"""At most one of so many texts, beyond `COMPACT_AFTER`, is no longer needed."""
_TWICE: Final = "a prediction has two outcomes"


class WaitingTexts:
    """Keeps texts by the number of their prediction. Each takes some ten bytes more than its JSON.

    Examples
    --------
    >>> waiting = WaitingTexts()
    >>> texts = Texts.of([b'{"sequence":3}', b'{"sequence":5}'])
    >>> waiting.add(np.array([3, 5]), texts, texts.begins + 1)
    >>> [*waiting.read(np.array([5]))], [*waiting.take_prefixes(np.array([5]))], len(waiting)
    ([b'{"sequence":5}'], [b'{'], 1)
    """

    def __init__(self) -> None:
        # Unlike arrays of NumPy, these grow in place, without being held twice meanwhile; unlike an array,
        # a bytearray takes an eighth more than it holds.
        self._buffer = array("B")
        self._numbers = NarrowIntegers()
        """They ascend, so that they can be searched: a dictionary would take more room."""
        self._offsets = NarrowIntegers(0)
        self._offsets.append(np.zeros(1, dtype=np.int64))
        """Where each text begins, and where the last one ends."""
        self._behind = NarrowIntegers(0)
        """Bytes of each text behind the prefix of its outcome; 0 once it is taken."""
        self._taken = 0

    def __len__(self) -> int:
        return len(self._numbers) - self._taken

    def add(self, numbers: Integers, texts: Texts, prefix_ends: Integers) -> None:
        """Add texts of later predictions.

        Parameters
        ----------
        numbers
            Their numbers, ascending, shape (n,).
        texts
            The texts.
        prefix_ends
            Where the prefix of each one's outcome ends in the buffer of the texts, shape (n,).
        """
        if self._taken >= COMPACT_AFTER and COMPACT_RATIO * self._taken >= len(self._numbers):
            self.compact()
        added = Texts.packed([texts])
        self._numbers.append(numbers)
        self._offsets.append(added.ends + 1 + len(self._buffer))
        self._behind.append(texts.ends + 1 - prefix_ends)
        self._buffer.frombytes(added.text.data)

    def at(self, numbers: Integers) -> Texts:
        """Return texts in the order of these numbers, shape (n,), in the buffer of all.

        Nothing can be added as long as anything refers to them.
        """
        return self._texts(self._rows(numbers))

    def read(self, numbers: Integers) -> Texts:
        """Return texts in the order of these numbers, shape (n,)."""
        return Texts.packed([self.at(numbers)])

    def take(self, numbers: Integers) -> Texts:
        """Return texts in the order of these numbers, shape (n,). They are kept no longer."""
        rows = self._rows(numbers)
        texts = Texts.packed([self._texts(rows)])
        self._drop(rows)
        return texts

    def take_prefixes(self, numbers: Integers) -> Texts:
        """Return the prefixes of the outcomes of these predictions, in the buffer of all.

        Their texts are kept no longer than until the next ones are added.
        """
        rows = self._rows(numbers)
        texts = self._texts(rows)
        prefix_ends = texts.ends + 1 - self._behind[rows]
        self._drop(rows)
        return Texts(texts.text, texts.begins, prefix_ends)

    def keep(self, numbers: Integers) -> None:
        """Keep no texts but those of these numbers, which are here, shape (n,)."""
        gone = self._behind[:] != 0
        gone[self._rows(numbers)] = False
        self._drop(flagged(gone))

    def _rows(self, numbers: Integers) -> Integers:
        """Return the rows of texts that are kept."""
        rows: Integers = self._numbers.search(numbers)
        assert (rows < len(self._numbers)).all(), _TWICE
        assert (self._numbers[rows] == numbers).all(), _TWICE
        assert self._behind[rows].all(), _TWICE
        return rows

    def _texts(self, rows: Integers) -> Texts:
        text = np.frombuffer(self._buffer, dtype=np.uint8)
        return Texts(text, self._offsets[rows], self._offsets[rows + 1] - 1)

    def _drop(self, rows: Integers) -> None:
        ordered = np.sort(rows)
        assert (ordered[1:] != ordered[:-1]).all(), _TWICE
        self._behind.set(rows, 0)
        self._taken += len(rows)

    def compact(self) -> None:
        """Free the room of texts that were taken. `add` does so when there are many."""
        rows = flagged(self._behind[:])
        texts = self._texts(rows)
        join_texts(read_only(texts.text), texts.begins, texts.ends, LINE_FEED, texts.text)
        moved = np.append(0, np.cumsum(texts.ends + 1 - texts.begins))
        del texts  # a buffer to which something refers cannot shrink
        del self._buffer[int(moved[-1]) :]
        self._offsets.replace(moved)
        self._numbers.keep(rows)
        self._behind.keep(rows)
        self._taken = 0


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    Texts.packed([Texts.of([b"{}"])])
