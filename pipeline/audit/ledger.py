"""What an audit has checked, and what it found to differ."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

KEPT: Final = 20
"""Differences of a topic's partition that are told in full; one wrong record can make all after it wrong."""


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it follows from the rest of the log."""

    topic: str
    partition: int
    offset: int | None
    """Of the record; None where a record is missing at the end."""
    expected: str
    found: str


class Ledger:
    """The account of one partition.

    Parameters
    ----------
    partition
        Its number.

    Examples
    --------
    >>> ledger = Ledger(partition=0)
    >>> ledger.differs("outcomes", 7, "label true", "label false")
    >>> ledger.differences, ledger.findings[0].offset
    (1, 7)
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.checked: Counter[str] = Counter()
        """How many of what were looked at, in the order in which that began."""
        self.findings: list[Finding] = []
        """The first differences in each topic, in the order in which they were found."""
        self.differences = 0
        """All of them."""
        self._kept: Counter[str] = Counter()

    def differs(self, topic: str, offset: int | None, expected: str, found: str) -> None:
        """Note a difference."""
        self.differences += 1
        self._kept[topic] += 1
        if self._kept[topic] <= KEPT:
            self.findings.append(Finding(topic, self.partition, offset, expected, found))
