"""Two records that should be the same bytes: where they differ first."""

from __future__ import annotations

from typing import Final

from safetensors import SafetensorError
from safetensors.numpy import load

from pipeline.records import LabelRequest, Outcome, Prediction, encode
from pipeline.statistics import FEATURES

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
