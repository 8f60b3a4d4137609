"""What a follower answers over HTTP, as JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from pipeline.serving.answers import Explanation, FollowerFigures, FollowingState, PartitionFigures, Scores
from pipeline.serving.exploration import Choice
from pipeline.serving.scoring_requests import RequestError


class ItemScore(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The score of a candidate."""

    score: float
    predicted: bool | float
    """Whether the label will be positive; where numbers are predicted, the number."""
    probability: float | None = None
    """That it will be; absent where the learner's loss has no probabilities."""
    unknown: tuple[str, ...] = ()
    """Names of ids of which the model remembers no label: they are scored as new. Absent if none."""
    explain: Explanation | None = None
    """Why; absent where it was not asked for."""
    propensity: float | None = None
    """The probability with which it is drawn to be shown; absent where nothing is explored."""

    @property
    def expected(self) -> float:
        """What the model expects of the label: 0 or 1 where its loss has no probabilities."""
        return float(self.predicted) if self.probability is None else self.probability


class ScoreAnswer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The scores of one user's candidates, all by the same model."""

    partition: int
    """The partition whose model answers, which follows from the key."""
    model_version: int
    """Outcomes that the model has learned."""
    epoch: int
    """Installs and promotions before this model's settings."""
    as_of: int | None
    """Event time up to which the model knows the stream, in milliseconds; null before the first event."""
    age_ms: int | None
    """Milliseconds from `as_of` to the answer, by the follower's clock."""
    items: list[ItemScore]
    """In the order of the request."""
    challenger: str | None = None
    """The challenger that scored; absent for the champion."""
    chosen: int | None = None
    """The place in `items` of the candidate that was drawn, from 0; absent, like all below, where nothing is
    explored."""
    target_propensity: float | None = None
    """The probability with which the greedy policy shows that candidate: 1 if its score is the highest, else
    0."""
    estimate: float | None = None
    """What the model expects of that candidate's label: its probability, or the number that it predicts."""
    target_estimate: float | None = None
    """The same for the candidate with the highest score, which the greedy policy shows."""

    @classmethod
    def of(cls, scores: Scores, now: int, challenger: str | None, choice: Choice | None) -> ScoreAnswer:
        """Return the answer that scores are.

        Parameters
        ----------
        scores
            The scores.
        now
            The time, in milliseconds.
        challenger
            The challenger that scored; None for the champion.
        choice
            The candidate that was drawn; None where nothing is explored.
        """
        columns: list[Sequence[Any]] = [
            scores.scores,
            scores.predicted,
            scores.probabilities,
            scores.unknown,
        ]
        if scores.explanations is not None or choice is not None:
            columns.append(scores.explanations or [None] * len(scores.scores))
        if choice is not None:
            columns.append(choice.propensities)
        items = [*map(ItemScore, *columns)]
        as_of = scores.as_of if scores.as_of >= 0 else None
        age = None if as_of is None else max(0, now - as_of)
        answer = cls(scores.partition, scores.model_version, scores.epoch, as_of, age, items, challenger)
        if choice is None:
            return answer
        return msgspec.structs.replace(
            answer,
            chosen=choice.chosen,
            target_propensity=float(choice.chosen == choice.greedy),
            estimate=items[choice.chosen].expected,
            target_estimate=items[choice.greedy].expected,
        )


class Problem(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Why there is no answer (RFC 9457)."""

    title: str
    """The words of the status."""
    status: int
    """The status of HTTP."""
    detail: str
    """What is wrong, and what to do."""
    field: str | None = None
    """Where it is wrong, such as `items[3].video_id`; absent where it is no field."""
    retry_after: float | None = None
    """Seconds after which asking again may help; absent if it does not help."""

    @classmethod
    def of(cls, error: RequestError) -> Problem:
        """Return the problem that an error is."""
        title = HTTPStatus(error.status_code).phrase
        return cls(title, error.status_code, error.detail, error.field, error.retry_after)


class ScoreAnswers(msgspec.Struct, frozen=True, gc=False):
    """The answers to several requests, in their order."""

    answers: list[ScoreAnswer | Problem]


class ModelPartition(msgspec.Struct, frozen=True, gc=False):
    """The model of a partition."""

    partition: int
    state: FollowingState
    """Only one that is `following` answers."""
    reason: str | None
    """Why it failed, or what keeps it from following."""
    model_version: int
    epoch: int
    as_of: int | None
    """As in answers."""
    lag: int
    """Outcomes that are committed and not yet learned, at most."""
    lag_s: float | None
    """Seconds since the model had learned all that was committed; null before the first time."""
    records_left: int
    """Records that are left to read while it is restored."""
    challengers: tuple[str, ...]
    settings: dict[str, str]
    """Those that the model's outputs depend on."""

    @classmethod
    def of(cls, figures: PartitionFigures, now: float) -> ModelPartition:
        """Return the model of a partition at this time of the monotonic clock."""
        shown = figures._asdict()
        current_at = shown.pop("current_at")
        shown["lag_s"] = None if current_at is None else round(max(0.0, now - current_at), 3)
        shown["as_of"] = figures.as_of if figures.as_of >= 0 else None
        return cls(**shown)


class ModelAnswer(msgspec.Struct, frozen=True, gc=False):
    """The models that a follower holds."""

    stream: str
    group: str
    versions: dict[str, str]
    """Of this program and of what its bits depend on."""
    folds_per_second: float
    """Outcomes learned a second."""
    brokers: str | None
    """What is wrong with the brokers; null where they answer."""
    partitions: list[ModelPartition]

    @classmethod
    def of(cls, figures: FollowerFigures, stream: str, group: str, versions: dict[str, str]) -> ModelAnswer:
        """Return the models of a follower's figures."""
        now = time.monotonic()
        partitions = [ModelPartition.of(each, now) for each in figures.partitions]
        return cls(stream, group, versions, figures.folds_per_second, figures.brokers, partitions)


class Reason(msgspec.Struct, frozen=True, gc=False):
    """Why a follower is not ready."""

    code: str
    text: str


class ReadyAnswer(msgspec.Struct, frozen=True, gc=False):
    """Whether a follower is ready."""

    ready: bool
    reasons: list[Reason]
    partitions: list[int]

    @classmethod
    def of(cls, figures: FollowerFigures, max_lag: int, now: float) -> ReadyAnswer:
        """Return whether a follower is ready at this time of the monotonic clock.

        Parameters
        ----------
        figures
            Where the follower is.
        max_lag
            Milliseconds that a model may be behind what was committed.
        now
            The time.
        """
        found = [] if figures.partitions else [Reason("starting", "the topics are not known yet")]
        for each in figures.partitions:
            name = f"partition {each.partition}"
            behind = None if each.current_at is None else now - each.current_at
            if each.state == "restoring":
                found.append(Reason("restoring", f"{name}: {each.records_left:,} records left"))
            elif each.state == "failed":
                found.append(Reason("failed", f"{name}: {each.reason or 'it failed'}"))
            elif behind is None or behind > max_lag / 1000:
                since = "since it was restored" if behind is None else f"for {behind:.1f} s"
                why = figures.brokers or each.reason
                text = f"{name}: {each.lag:,} outcomes behind, {since}" + (f"; {why}" if why else "")
                found.append(Reason("behind", text))
        return cls(not found, found, [each.partition for each in figures.partitions])


class LiveAnswer(msgspec.Struct, frozen=True, gc=False):
    """Whether a follower is alive."""

    alive: bool
    loop_age_s: float
    """Seconds since its figures were new, as far as probes have noticed."""
    limit_s: float
    """Seconds after which it is taken for dead."""
