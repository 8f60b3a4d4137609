"""What a follower answers. Fields that this version does not know are ignored."""

from __future__ import annotations

import msgspec


class ScoreTerm(msgspec.Struct, frozen=True):
    """A part of a score."""

    kind: str
    """`entity`, `table`, `static`, `message`, `bias`, `kernel` or `clipping`."""
    name: str
    value: float


class NearPoint(msgspec.Struct, frozen=True):
    """A stored point of the kernel part, near the candidate."""

    distance: float
    kernel: float
    outcome: int | None
    """Sequence of the outcome that it came from; None where that is not known."""


class Explanation(msgspec.Struct, frozen=True):
    """Why a score is what it is: the terms sum to the score."""

    terms: list[ScoreTerm]
    nearest: list[NearPoint]


class ItemScore(msgspec.Struct, frozen=True):
    """The score of a candidate."""

    score: float
    predicted: bool | float
    """Whether the label will be positive; where numbers are predicted, the number."""
    probability: float | None = None
    """That it will be; None where the learner's loss has no probabilities."""
    unknown: tuple[str, ...] = ()
    """Names of ids of which the model remembers no label: they are scored as new."""
    explain: Explanation | None = None
    """None where it was not asked for."""
    propensity: float | None = None
    """The probability with which it is drawn to be shown; None where nothing is explored."""


class Scores(msgspec.Struct, frozen=True):
    """The scores of one user's candidates, all by the same model."""

    partition: int
    model_version: int
    """Outcomes that the model has learned."""
    epoch: int
    """Installs and promotions before this model's settings."""
    as_of: int | None
    """Event time up to which the model knows the stream, in milliseconds; None before the first event."""
    age_ms: int | None
    """Milliseconds from `as_of` to the answer."""
    items: list[ItemScore]
    """In the order of the request."""
    challenger: str | None = None
    """The challenger that scored; None for the champion."""
    chosen: int | None = None
    """The place in `items` of the candidate that was drawn; None where nothing is explored, as all below."""
    target_propensity: float | None = None
    """The probability with which the greedy policy shows that candidate: 1 or 0."""
    estimate: float | None = None
    """What the model expects of that candidate's label."""
    target_estimate: float | None = None
    """The same for the candidate that the greedy policy shows."""
