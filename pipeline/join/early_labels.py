"""Labels that came before their interaction, and wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.join.digests import Digests
from pipeline.join.event_rows import EventRows, Integers
from pipeline.join.records import EarlyLabel


class EarlyLabels:
    """A table of early labels, in the order in which they came.

    Parameters
    ----------
    wait
        How long a label waits, in milliseconds.

    Attributes
    ----------
    rows
        Where they are found: by event, and by deadline.
    bytes
        Size of their messages.
    """

    def __init__(self, wait: int) -> None:
        self.rows = EventRows(columns={"sizes": np.int64})
        self.bytes = 0
        self._wait = wait
        self._labels: dict[int, EarlyLabel] = {}
        """By number."""
        self._next = 0

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[EarlyLabel]:
        return iter(self._labels.values())

    def at(self, row: int) -> EarlyLabel:
        """Return the label of a row."""
        return self._labels[int(self.rows.numbers[row])]

    def sizes(self, rows: Integers) -> Integers:
        """Return the sizes of messages of rows, in bytes."""
        sizes: Integers = self.rows["sizes"][rows]
        return sizes

    def add(self, digests: Digests, labels: Sequence[EarlyLabel]) -> None:
        """Let labels wait, none of whose events has one here.

        Parameters
        ----------
        digests
            Those of their events, shape (n, 2).
        labels
            The labels.
        """
        numbers = np.arange(self._next, self._next + len(labels))
        sizes = np.array([each.source.size for each in labels], dtype=np.int64)
        deadlines = np.array([each.label.timestamp for each in labels], dtype=np.int64) + self._wait
        self.rows.append(digests, numbers, deadlines, sizes=sizes)
        self._labels |= dict(zip(numbers.tolist(), labels, strict=True))
        self._next += len(labels)
        self.bytes += int(sizes.sum())

    def remove(self, rows: Integers) -> None:
        """Remove labels that wait no longer."""
        self.bytes -= int(self.sizes(rows).sum())
        for number in self.rows.numbers[rows].tolist():
            del self._labels[number]
        self.rows.remove(rows)
