"""What an audit finds: the differences of a partition, and their texts."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec
from safetensors import SafetensorError
from safetensors.numpy import load

from pipeline.features.statistics import FEATURES
from pipeline.records.encoding import encode
from pipeline.records.outputs import LabelRequest, Outcome, Prediction

CAUSES: Final = ("sequence", "prediction_sequence", "model_version", "features")
"""Fields to name first, since a difference in them makes others differ."""


def field_difference(
    derived: Prediction | Outcome | LabelRequest, written: Prediction | Outcome | LabelRequest
) -> tuple[str, str]:
    """The first field that differs, as it should be and as it is.

    Examples
    --------
    >>> from msgspec.structs import replace
    >>> shown = Prediction(1, 7, 3, 0, 0.5, None, True, [0.0] * 10, 0, 0)
    >>> field_difference(shown, replace(shown, score=0.25, predicted=False))
    ('score 0.5', 'score 0.25')
    """
    for name in (*CAUSES, *derived.__struct_fields__):
        expected, found = getattr(derived, name, None), getattr(written, name, None)
        if encode(expected) == encode(found):
            continue
        if name == "features":
            return _feature_difference(expected or [], found or [])
        return f"{name} {encode(expected).decode()}", f"{name} {encode(found).decode()}"
    return "the record as a worker encodes it", "the same values in other bytes"


def _feature_difference(expected: list[float], found: list[float]) -> tuple[str, str]:
    pairs = zip(FEATURES, expected, found, strict=True)
    name, right, wrong = next(each for each in pairs if encode(each[1]) != encode(each[2]))
    return f"feature {name} {right!r}", f"feature {name} {wrong!r}"


def tensor_difference(derived: bytes, written: bytes) -> str:
    """What of a snapshot differs from the fold at its point."""
    try:
        tensors = load(written)
    except SafetensorError as error:
        return f"it does not decode: {error}"
    right = load(derived)
    for name in sorted(right.keys() | tensors.keys()):
        if name not in tensors:
            return f"tensor {name} is missing"
        if name not in right or right[name].tobytes() != tensors[name].tobytes():
            return f"tensor {name} differs"
    return "the same tensors in other bytes"


FINDINGS_PER_TOPIC: Final = 20
"""Differences of a topic's partition that are told in full; one wrong record can make all after it wrong."""


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it follows from the rest of the log."""

    topic: str
    partition: int
    offset: int | None
    """Of the record; None where a record is missing at the end."""
    expected: str
    found: str


class AuditResult:
    """The account of one partition.

    Parameters
    ----------
    partition
        Its number.

    Examples
    --------
    >>> ledger = AuditResult(partition=0)
    >>> ledger.add_difference("outcomes", 7, "label true", "label false")
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
        self._count_by_topic: Counter[str] = Counter()

    def add_difference(self, topic: str, offset: int | None, expected: str, found: str) -> None:
        """Note a difference."""
        self.differences += 1
        self._count_by_topic[topic] += 1
        if self._count_by_topic[topic] <= FINDINGS_PER_TOPIC:
            self.findings.append(Finding(topic, self.partition, offset, expected, found))
