"""What a label means: a class, or a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from pipeline.config.section import Name, Section


class BinarySettings(Section):
    """Which labels are positive, and what they say."""

    kind: Literal["binary"] = "binary"
    name: Name
    """What outcomes call a label's value."""
    above: float = Field(ge=0.0, le=1e9)
    """A label above this is positive."""
    cap: float = Field(gt=0.0, le=1e9)
    """Labels above this count as this, so that a single one cannot decide a mean."""
    scale: float = Field(gt=0.0, le=1e9)
    """How far from `above` a label is a clear case: its signal is 0.88 of what a label can say at most."""


class RegressionSettings(Section):
    """Which number is predicted, and how it is scaled."""

    kind: Literal["regression"]
    name: Name
    """What outcomes call a label's value."""
    offset: float = Field(ge=-1e9, le=1e9)
    """What is predicted before anything is learned: a usual label."""
    scale: float = Field(gt=0.0, le=1e9)
    """How far labels usually are from `offset`: a score of 1 is a prediction so far above it."""
    cap: float = Field(gt=0.0, le=1e9)
    """Labels further than this from `offset` count as so far, so that a single one cannot decide a mean."""


def _refuse_other_kinds(value: object) -> object:
    """Refuse what is neither of the two kinds, with the reason; a kind that is not given is binary."""
    if not isinstance(value, Mapping):
        return value
    kind = value.get("kind", "binary")
    if kind not in {"binary", "regression"}:
        raise ValueError(
            f'its kind is "binary" or "regression", not {kind!r:.40}: a learner has one score, which cannot '
            "tell more than two classes apart. Learn one class against the others, or run a group for each"
        )
    return {"kind": kind, **value}


TargetSettings: TypeAlias = Annotated[
    Annotated[BinarySettings | RegressionSettings, Field(discriminator="kind")],
    BeforeValidator(_refuse_other_kinds),
]
"""What the labels of a stream mean."""
