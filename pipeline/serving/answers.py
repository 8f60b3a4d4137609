"""What is asked of a follower, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

FollowingState: TypeAlias = Literal["restoring", "following", "failed"]
"""What a follower does with a partition."""


class ScoreTerm(msgspec.Struct, frozen=True, gc=False):
    """A part of a score."""

    kind: str
    """`entity`, a `table` of running statistics that is of no single entity, `static` columns, the `message`
    itself, its `categories`, or a part of the learner: `bias`, `kernel`, `clipping`, `mixture`."""
    name: str
    """What the entity or table is called; else the kind."""
    value: float


class NearPoint(msgspec.Struct, frozen=True, gc=False):
    """A stored point of the kernel part, near the candidate."""

    distance: float
    """In the kernel's scaled inputs."""
    kernel: float
    """The kernel's value, from 0 to 1."""
    outcome: int | None
    """Sequence of the outcome that it came from; null where that is not known."""


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """Why a score is what it is."""

    terms: list[ScoreTerm]
    """Their sum is the score, but for rounding errors below 1e-12."""
    nearest: list[NearPoint]
    """Stored points of the kernel part, the nearest first."""


class Scores(NamedTuple):
    """The scores of candidates, all by the same model."""

    partition: int
    model_version: int
    """Outcomes that the model has learned."""
    epoch: int
    """Epochs of settings that had ended before the model's: where one ends, two models have learned the same
    outcomes."""
    arithmetic: str
    """The arithmetic of the epoch, see `pipeline.recovery.libraries`."""
    as_of: int
    """Event time: the stream time of the state record that the model stands at, in milliseconds; -1 before
    the first."""
    tables: Mapping[str, int]
    """Offset up to which each live table was applied; empty without."""
    scores: list[float]
    probabilities: list[float] | list[None]
    """None where the learner's loss has no probabilities."""
    predicted: list[bool] | list[float]
    unknown: list[tuple[str, ...]]
    """Of each candidate, the names of entities of which the model remembers no label."""
    explanations: list[Explanation] | None
    """None where they were not asked for."""
    variances: list[float] | None = None
    """Of the champion's scores, see `forks.Forks.variances`; None where they were not asked for."""


class PartitionFigures(NamedTuple):
    """Where a follower is in one partition."""

    partition: int
    state: FollowingState
    reason: str | None
    """Why it failed, or what has kept it from following; None where all is well."""
    model_version: int
    """Outcomes that the model has learned."""
    epoch: int
    """Epochs of settings that had ended before the model's."""
    as_of: int
    """Stream time of the state record that the model stands at, in milliseconds; -1 before the first."""
    lag: int
    """Outcomes that are committed and not yet learned, at most: offsets that are not read yet count as
    outcomes, though some of them are markers of transactions."""
    current_at: float | None
    """When, by `time.monotonic`, the model had learned all that was committed; None before the first time.
    The time since then is the lag in seconds. It grows while brokers are away."""
    records_left: int
    """Records that are left to read while it is restored."""
    settings: Mapping[str, str]
    """The settings that the model's outputs depend on, by name."""
    challengers: tuple[str, ...]
    """Names of the challengers."""


class FollowerFigures(NamedTuple):
    """Where a follower is; never changed after it was made."""

    partitions: tuple[PartitionFigures, ...]
    """In the order of their numbers."""
    folds_per_second: float
    """Outcomes learned a second, since the figures before."""
    brokers: str | None
    """What is wrong with the brokers; None where they answer."""


class PartitionNotReadyError(Exception):
    """A partition cannot answer now.

    Parameters
    ----------
    partition
        Its number.
    reason
        Why not.
    retry_after
        Seconds after which asking again may help.
    """

    def __init__(self, partition: int, reason: str, retry_after: float) -> None:
        super().__init__(f"partition {partition} is not ready: {reason}")
        self.partition = partition
        self.reason = reason
        self.retry_after = retry_after


class UnknownChallengerError(Exception):
    """There is no challenger of this name in the partition's model.

    Parameters
    ----------
    name
        The name that was asked for.
    known
        Names of those that there are.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"there is no challenger {name!r}; known are: {', '.join(known) or 'none'}")
        self.name = name
        self.known = known
