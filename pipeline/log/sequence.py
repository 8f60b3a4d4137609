"""Hold the records of a partition against the sequence that they have to have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Literal, TypeAlias

from pipeline.errors import StateError

Kind: TypeAlias = Literal["prediction", "outcome"]


class SequenceCheck:
    """Check that no record is missing, written twice, or beyond what a state record counts.

    Parameters
    ----------
    kind
        What the records are.
    partition
        The partition's number.
    first
        The sequence that the first record may have, at most. It may have a lower one.
    stop
        The number of records that the state record counts.

    Examples
    --------
    >>> check = SequenceCheck("outcome", 0, first=4, stop=9)
    >>> check.add([3, 4, 5], offsets=[30, 40, 50])
    >>> check.left
    3
    >>> check.add([7], offsets=[70])
    Traceback (most recent call last):
    pipeline.errors.StateError: outcome 6 of partition 0 is missing before offset 70
    """

    def __init__(self, kind: Kind, partition: int, first: int, stop: int) -> None:
        self._kind = kind
        self._partition = partition
        self._first = first
        self._stop = stop
        self._next: int | None = None

    @property
    def expected(self) -> int:
        """The sequence of the next record; before the first one, the highest that it may have."""
        return self._first if self._next is None else self._next

    @property
    def left(self) -> int:
        """How many records are still to come."""
        return self._stop - self.expected

    def add(self, sequences: Sequence[int], offsets: Sequence[int]) -> None:
        """Check the next records of the log.

        Parameters
        ----------
        sequences
            Their sequences.
        offsets
            Their offsets, which errors name.

        Raises
        ------
        StateError
            A record is missing before one of these, or one of these should not be there.
        """
        if not sequences:
            return
        first = self.expected if self._next is not None else min(self._first, sequences[0])
        due = range(first, self._stop)
        if sequences != list(due[: len(sequences)]):
            for sequence, offset, expected in zip(sequences, offsets, count(first)):
                if not expected <= sequence < self._stop:
                    raise StateError(
                        f"{self._kind} {sequence} of partition {self._partition} at offset {offset} is not "
                        "covered by the committed state record: something else writes to this topic, or "
                        "offsets were set back"
                    )
                if sequence > expected:
                    raise self._missing(expected, f"before offset {offset}")
        self._next = first + len(sequences)

    def finish(self) -> None:
        """Check that no record is left at the end of the log.

        Raises
        ------
        StateError
            One is missing.
        """
        if self.left > 0:
            raise self._missing(self.expected, "at the end")

    def _missing(self, sequence: int, where: str) -> StateError:
        return StateError(f"{self._kind} {sequence} of partition {self._partition} is missing {where}")
