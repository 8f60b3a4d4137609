"""Records of the output topics.

Every value is one JSON object; `schemas/` holds the JSON Schema of each. msgspec checks types and ranges
while it parses.

Records that are held by the hundred thousand are not tracked by the garbage collector (`gc=False`): what
refers to nothing but numbers and text cannot be part of a cycle.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from pipeline.records.fields import Count, Features, Id, Status, Timestamp, WatchRatio


class Prediction(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the model predicted for an interaction, with all that is needed to derive it again."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    score: float
    probability: float | None
    predicted: bool
    features: Features
    """The running block of the context vector, named in `pipeline.features.statistics.FEATURES`."""
    model_version: Count
    """Outcomes folded into the model when it predicted."""
    sequence: Count
    """The prediction's number in its partition, from 0."""
    challengers: dict[str, float] | None = None
    """Scores of the challengers by name, in the order of their names; not written if there were none."""
    asked: bool | None = None
    """Whether its label is asked for; not written where all labels are learned as they come."""


class LabelRequest(msgspec.Struct, frozen=True, gc=False):
    """A prediction whose label is wanted, for whoever provides labels."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    score: float
    prediction_sequence: Count
    sequence: Count
    """The request's number in its partition, from 0."""

    @classmethod
    def of(cls, prediction: Prediction, sequence: int) -> LabelRequest:
        """Return the request for a prediction's label that has this sequence."""
        return cls(
            prediction.event_id,
            prediction.user_id,
            prediction.video_id,
            prediction.timestamp,
            prediction.score,
            prediction.sequence,
            sequence,
        )


class VideoCounts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Counts of one video's labels."""

    video_id: Id
    events: Count
    labels: Count
    """Positive ones."""
    ratios: Annotated[float, msgspec.Meta(ge=0)]
    """Their watch ratios, each counted as `pipeline.features.target.Target.ratio_cap` at most."""

    def __post_init__(self) -> None:
        """Refuse counts of which no mean can be made."""
        if self.labels > self.events:
            raise ValueError(f"{self.labels} of {self.events} labels of video {self.video_id!r} are positive")


class EffectSums(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What one video's labels say of its effect: see `pipeline.features.effects`."""

    residuals: float
    """Sum of (x - b) / s over the labels: x is the signal, b the user's effect and s its noise."""
    precision: Annotated[float, msgspec.Meta(ge=0)]
    """Sum of 1 / s."""
    signals: float
    squares: Annotated[float, msgspec.Meta(ge=0)]
    """Sum of the squared residuals of user and video."""


class Example(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The training example of an outcome."""

    user_id: Id
    video_id: Id
    timestamp: Timestamp
    features: Features
    label: bool
    watch_ratio: WatchRatio
    """0 if none came."""


class Share(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a partition shares with the others of a range of its outcomes."""

    partition: Count
    since: Count
    """Sequence of the first outcome."""
    until: Count
    """Sequence after that of the last."""
    videos: list[VideoCounts]
    examples: list[Example]
    effects: list[EffectSums] | None = None
    """As many as `videos`, in their order; None, and not written, with features of the kind `running`."""
    window_end: Timestamp | None = None
    """With `sharing.align`, the event time at which the window of these outcomes ends; others learn them one
    window later. Else None, and not written."""
    closed_until: Timestamp | None = None
    """The event time up to which the partition has shared everything, with the last share of a window."""

    def __post_init__(self) -> None:
        """Refuse sums that are not those of the videos."""
        if self.effects is not None and len(self.effects) != len(self.videos):
            raise ValueError(f"there are effects of {len(self.effects)} videos, not of {len(self.videos)}")


class Outcome(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A prediction joined with its label, or with the fact that none came: a training example.

    `label` is what the model learns: None where it learns nothing, because no label came (with
    `join.on_missing = "drop"`), or because it was not asked for (`labels.policy`).
    `correct` compares the prediction with it, and so does `loss`, but for squared loss: see
    `pipeline.features.target.Target.value`.
    """

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    score: float
    probability: float | None
    predicted: bool
    features: Features
    model_version: Count
    prediction_sequence: Count
    watch_ratio: float | None
    label: bool | None
    label_timestamp: Timestamp | None
    correct: bool | None
    loss: float | None
    status: Status
    sequence: Count
    """Outcomes of the partition folded before this one."""
    shared: list[Share] | None = None
    """Shares of other partitions, learned right before this outcome; not written if there are none."""
    challengers: dict[str, float] | None = None
    """The prediction's."""
    asked: bool | None = None
    """As in its prediction."""

    @property
    def example(self) -> Example | None:
        """The training example, if anything is learned."""
        if self.label is None:
            return None
        interaction = (self.user_id, self.video_id, self.timestamp, self.features)
        return Example(*interaction, self.label, self.watch_ratio or 0.0)


class RawOutcome(Outcome, frozen=True, gc=False):
    """An outcome whose features are not yet decoded: lists of numbers cost more than all other fields."""

    features: msgspec.Raw  # type: ignore[assignment]  # the features' text

    @property
    def example(self) -> Example | None:
        """The training example; None if the outcome has no label."""
        if self.label is None:
            return None
        features = _FEATURES.decode(self.features)
        play = (self.user_id, self.video_id, self.timestamp, features)
        return Example(*play, self.label, self.watch_ratio or 0.0)


_FEATURES = msgspec.json.Decoder(Features)
