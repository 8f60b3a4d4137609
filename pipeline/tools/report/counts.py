"""Compare the number of records in the topics with the counters of the state records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pipeline.records.names import Fault
from pipeline.task.state import CORRECTED, ITEMS

DEAD_LETTER_FAULTS: Final = tuple(fault.value for fault in Fault)
"""The cases that end in a dead letter."""

RECORDED: Final = ("predictions", ITEMS, "labelled", "expired", CORRECTED, *DEAD_LETTER_FAULTS)
"""Counters of messages that have a record in an output topic."""


class Counts(NamedTuple):
    """Numbers of records of one partition.

    Attributes
    ----------
    found
        Records in the topics, by counter; dead letters of an unknown fault as `unknown`.
    before, after
        Counters of the last state records before and after the topics were read.
    """

    found: Counter[str]
    before: Mapping[str, int]
    after: Mapping[str, int]


def differences(partitions: Sequence[Counts]) -> list[str]:
    """Describe each counter that differs from the topics.

    If a worker goes on meanwhile, the number in the topics lies between the counters before and after.

    Parameters
    ----------
    partitions
        Numbers of each partition.

    Returns
    -------
    list of str
        One text for each difference.

    Examples
    --------
    >>> differences([Counts(Counter(predictions=9), {"predictions": 10}, {"predictions": 12})])
    ['partition 0: predictions: the topics hold 9, the state record counts 10']
    """
    found_differences = []
    for partition, (found, before, after) in enumerate(partitions):
        for name in (*RECORDED, "unknown"):
            low, high = before.get(name, 0), after.get(name, 0)
            if not low <= found[name] <= high:
                counted = low if found[name] < low else high
                found_differences.append(
                    f"partition {partition}: {name}: the topics hold {found[name]:,}, "
                    f"the state record counts {counted:,}"
                )
    return found_differences
