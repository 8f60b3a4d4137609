"""Collect the differences that an audit finds in a partition, and describe them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from safetensors import SafetensorError
from safetensors.numpy import load

from pipeline.records.encoding import encode
from pipeline.records.outputs import LabelRequest, Outcome, Prediction

CAUSES: Final = ("sequence", "prediction_sequence", "model_version", "features")
"""Fields to compare first: a difference in one of them makes other fields differ."""
FINDINGS_PER_TOPIC: Final = 20
"""Differences of one topic that are reported in full: one wrong record can make all later ones differ."""


class Finding(msgspec.Struct, frozen=True):
    """A difference between what a topic holds and what follows from the other records."""

    topic: str
    partition: int
    offset: int | None
    """Offset of the record; None where a record is missing at the end of the topic, and for lines."""
    expected: str
    found: str
    line: int | None = None
    """Number of the line, where `topic` is the file of a follower's log."""


class AuditResult:
    """What an audit has checked in one partition, and the differences that it has found.

    Parameters
    ----------
    partition
        Number of the partition.

    Examples
    --------
    >>> result = AuditResult(partition=0)
    >>> result.add_difference("outcomes", 7, "label true", "label false")
    >>> result.differences, result.findings[0].offset
    (1, 7)
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.checked: Counter[str] = Counter()
        """Number of checks by what was checked, in the order in which the checks began."""
        self.findings: list[Finding] = []
        """First differences of each topic, in the order in which they were found."""
        self.differences = 0
        """Number of all differences."""
        self._count_by_topic: Counter[str] = Counter()

    def add_difference(
        self, topic: str, offset: int | None, expected: str, found: str, *, line: int | None = None
    ) -> None:
        """Add a difference; beyond `FINDINGS_PER_TOPIC` of a topic it is only counted.

        Parameters
        ----------
        topic
            Topic of the record.
        offset
            Offset of the record; None where a record is missing at the end of the topic.
        expected
            What follows from the other records.
        found
            What the topic holds.
        line
            Number of the line, where `topic` is a file.
        """
        self.differences += 1
        self._count_by_topic[topic] += 1
        if self._count_by_topic[topic] <= FINDINGS_PER_TOPIC:
            self.findings.append(Finding(topic, self.partition, offset, expected, found, line))


def field_difference(
    derived: Prediction | Outcome | LabelRequest,
    written: Prediction | Outcome | LabelRequest,
    names: Sequence[str] = (),
) -> tuple[str, str]:
    """Describe the first field in which two records differ: the derived value, then the written one.

    Parameters
    ----------
    derived
        Record that follows from the other records.
    written
        Record of the topic.
    names
        Names of its running features, if it has some.

    Returns
    -------
    tuple of str
        Expected text and found text of a `Finding`.

    Examples
    --------
    >>> from msgspec.structs import replace
    >>> derived = Prediction(1, 7, 3, 0, 0.5, None, True, [0.0] * 10, 0, 0)
    >>> field_difference(derived, replace(derived, score=0.25, predicted=False))
    ('score 0.5', 'score 0.25')
    """
    for name in (*CAUSES, *derived.__struct_fields__):
        expected, found = getattr(derived, name, None), getattr(written, name, None)
        if encode(expected) == encode(found):
            continue
        if name == "features":
            return _feature_difference(names, expected or [], found or [])
        words = dict(zip(derived.__struct_fields__, derived.__struct_encode_fields__, strict=True))
        shown = words.get(name, name)
        return f"{shown} {encode(expected).decode()}", f"{shown} {encode(found).decode()}"
    return "the record as a worker encodes it", "the same values in other bytes"


def _feature_difference(names: Sequence[str], expected: list[float], found: list[float]) -> tuple[str, str]:
    pairs = zip(names, expected, found, strict=True)
    name, right, wrong = next(each for each in pairs if encode(each[1]) != encode(each[2]))
    return f"feature {name} {right!r}", f"feature {name} {wrong!r}"


def tensor_difference(derived: bytes, written: bytes) -> str:
    """Describe the first tensor in which a snapshot differs from the derived one."""
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
