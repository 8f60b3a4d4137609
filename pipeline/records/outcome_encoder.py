"""Encode outcomes from the text of their predictions and from what labels add to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from pipeline.records.fields import Status
from pipeline.records.outputs import Share

_encode_lines = msgspec.json.Encoder().encode_lines

CHUNK = 500
"""Records that are encoded together: few enough to stay in the processor's cache."""


class LabelFields(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The fields of `Outcome` behind those that it has in common with its prediction, in the same order.

    A test holds names and types to those of `Outcome`.
    """

    prediction_sequence: int
    watch_ratio: float | None
    label: bool | float | None
    label_timestamp: int | None
    correct: bool | None
    loss: float | None
    status: Status
    sequence: int
    shared: list[Share] | None = None
    challengers: dict[str, float] | None = None
    asked: bool | None = None
    former: float | None = None


_SEQUENCE: Final = b'"sequence":'
"""The name of a prediction's sequence. No field before it can hold this text: strings escape their quotes."""


def prefix_end(prediction: bytes) -> int:
    """Return where the outcome's prefix ends in the text of its prediction: before its sequence."""
    return prediction.index(_SEQUENCE)


def encode_label_fields(label_fields: Iterable[LabelFields]) -> Iterator[bytes]:
    """Encode what follows the prefixes of outcomes. Prefix and this text together encode the `Outcome`.

    The numbers of the prediction are not written again, which is most of the cost of an outcome.

    Examples
    --------
    >>> from pipeline.records.encoding import encode
    >>> from pipeline.records.outputs import Prediction
    >>> prediction = encode(Prediction("e", 7, 3, 5, 0.5, None, True, [0.25], model_version=0, sequence=9))
    >>> prefix = prediction[: prefix_end(prediction)]
    >>> prefix[-36:]
    b'"features":[0.25],"model_version":0,'
    >>> [rest] = encode_label_fields([LabelFields(9, 0.8, True, 6, True, 0.2, "labelled", sequence=4)])
    >>> (prefix + rest)[-59:]
    b'"correct":true,"loss":0.2,"status":"labelled","sequence":4}'
    """
    left = iter(label_fields)
    while chunk := list(islice(left, CHUNK)):
        yield from _encode_lines(chunk)[1:-1].split(b"\n{")
