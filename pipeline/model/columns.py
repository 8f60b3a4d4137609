"""What goes into a model and what comes out of it, one by one and column by column."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pipeline.records.fields import FEATURES_LENGTH, Id
from pipeline.records.outputs import Example, Outcome

_running_bytes = Struct(f"{FEATURES_LENGTH}d").pack
"""Running features as float64: the quickest way from lists to an array."""


class InteractionLike(Protocol):
    """A user, a video and a time in milliseconds: an interaction, or a record that was made of one."""

    @property
    def user_id(self) -> Id: ...
    @property
    def video_id(self) -> Id: ...
    @property
    def timestamp(self) -> int: ...


class InteractionColumns(NamedTuple):
    """Several interactions, column by column."""

    users: list[Id]
    videos: list[Id]
    timestamps: list[int]

    @classmethod
    def of(cls, interactions: Sequence[InteractionLike]) -> Self:
        """Return the columns of interactions."""
        return cls(
            [interaction.user_id for interaction in interactions],
            [interaction.video_id for interaction in interactions],
            [interaction.timestamp for interaction in interactions],
        )


class ModelOutput(NamedTuple):
    """What the model predicts for an interaction, and the running features that it used."""

    features: list[float]
    score: float
    probability: float | None
    """None where the learner's loss has no probabilities."""
    predicted: bool
    challengers: dict[str, float] | None
    """The challengers' scores by name; None where there are none."""


class ModelOutputs(NamedTuple):
    """The same of several interactions, column by column."""

    features: NDArray[np.float64]
    """Shape (n, features)."""
    scores: list[float]
    probabilities: list[float] | list[None]
    challengers: list[dict[str, float]] | list[None]


def running_blocks(records: Sequence[Outcome | Example]) -> NDArray[np.float64]:
    """Return the running features of records, shape (n, features)."""
    numbers = np.frombuffer(b"".join([_running_bytes(*record.features) for record in records]))
    return numbers.reshape(len(records), FEATURES_LENGTH)
