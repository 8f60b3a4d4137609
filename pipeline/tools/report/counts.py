"""Whether what the topics hold is what the counters say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pipeline.records.names import Fault

DEAD_LETTER_FAULTS: Final = tuple(fault.value for fault in Fault)
"""The cases that end in a dead letter."""

RECORDED: Final = ("predictions", "labelled", "expired", *DEAD_LETTER_FAULTS)
"""The cases that leave a record."""


class Counts(NamedTuple):
    """Cases of one partition.

    Attributes
    ----------
    found
        Records in the topics, by case; dead letters of no known case under `unknown`.
    before, after
        Counters of the last state record before the topics were read, and of that after.
    """

    found: Counter[str]
    before: Mapping[str, int]
    after: Mapping[str, int]


def differences(partitions: Sequence[Counts]) -> list[str]:
    """Where topics and counters disagree; while a worker goes on, a count may lie between the two.

    Examples
    --------
    >>> differences([Counts(Counter(predictions=9), {"predictions": 10}, {"predictions": 12})])
    ['partition 0: predictions: the topics hold 9, the state record counts 10']
    """
    found_differences = []
    for partition, (found, before, after) in enumerate(partitions):
        for case in (*RECORDED, "unknown"):
            low, high = before.get(case, 0), after.get(case, 0)
            if not low <= found[case] <= high:
                counted = low if found[case] < low else high
                found_differences.append(
                    f"partition {partition}: {case}: the topics hold {found[case]:,}, "
                    f"the state record counts {counted:,}"
                )
    return found_differences
