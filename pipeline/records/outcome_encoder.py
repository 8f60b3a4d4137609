"""The text of outcomes, made of their predictions as they were written and of what labels add to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from pipeline.records.fields import Status
from pipeline.records.outputs import Share

_encode_lines = msgspec.json.Encoder().encode_lines

CHUNK = 500
"""Endings that are encoded together: few enough to stay in the processor's cache."""


class LabelFields(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What an outcome says beyond its prediction: the middle of `Outcome`, field by field."""

    prediction_sequence: int
    watch_ratio: float | None
    label: bool | None
    label_timestamp: int | None
    correct: bool | None
    loss: float | None
    status: Status
    sequence: int
    shared: list[Share] | None = None


_NUMBER: Final = b'"sequence":'
"""The name of a prediction's number: nothing before it can look like this, since text escapes its quotes."""

PLAIN_SUFFIX: Final = b"}"
"""`outcome_suffix` of a prediction that ends with its number."""


def outcome_prefix(prediction: bytes) -> bytes:
    """What an outcome begins with: its prediction as it was written, up to its number."""
    return prediction[: prefix_end(prediction)]


def prefix_end(prediction: bytes) -> int:
    """Where its number begins."""
    return prediction.index(_NUMBER)


def plain_prefix_ends(first: int, count: int) -> list[int]:
    """`prefix_end` of predictions of consecutive numbers that end with these, counted from their ends.

    Examples
    --------
    >>> plain_prefix_ends(7, 2), plain_prefix_ends(9, 2)
    ([-13, -13], [-13, -14])
    >>> b'{..."sequence":9}'[-13:], b'{..."sequence":10}'[-14:]
    (b'"sequence":9}', b'"sequence":10}')
    """
    behind = len(_NUMBER) + len(PLAIN_SUFFIX)
    if len(str(first)) == len(str(first + count)):
        return [-behind - len(str(first))] * count
    return [-behind - len(str(number)) for number in range(first, first + count)]


def outcome_suffix(prediction: bytes) -> bytes:
    """What an outcome ends with: its prediction as it was written, from behind its number."""
    return prediction[prediction.index(_NUMBER) + len(_NUMBER) :].lstrip(b"0123456789")


def encode_label_fields(label_fields: Iterable[LabelFields]) -> Iterator[bytes]:
    """Encode what follows on outcomes' openings.

    A conclusion that is not `PLAIN_SUFFIX` takes the place of the brace at its end. Together they are the
    bytes of the `Outcome`, whose numbers are not written anew.

    Examples
    --------
    >>> from pipeline.records.encoding import encode
    >>> from pipeline.records.outputs import Prediction
    >>> said = Prediction("e", 7, 3, 5, 0.5, None, True, [0.25], model_version=0, sequence=9)
    >>> prediction = encode(msgspec.structs.replace(said, challengers={"nogd": -0.5}))
    >>> outcome_prefix(prediction)[-36:], outcome_suffix(prediction)
    (b'"features":[0.25],"model_version":0,', b',"challengers":{"nogd":-0.5}}')
    >>> [ending] = encode_label_fields([LabelFields(9, 0.8, True, 6, True, 0.2, "labelled", sequence=4)])
    >>> (outcome_prefix(prediction) + ending[:-1] + outcome_suffix(prediction))[-61:]
    b'"status":"labelled","sequence":4,"challengers":{"nogd":-0.5}}'
    """
    left = iter(label_fields)
    while some := list(islice(left, CHUNK)):
        yield from _encode_lines(some)[1:-1].split(b"\n{")
