"""Records of the output topics.

Every value is one JSON object; `schemas/` holds the JSON Schema of each. msgspec checks types and ranges
while it parses.

The types here are those of KuaiRec's stream, with the ids of a user and a video. Those of other streams have
other ids and as many features as these: see `pipeline.records.output_types`.

Records that are held by the hundred thousand are not tracked by the garbage collector (`gc=False`): what
refers to nothing but numbers and text cannot be part of a cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Self, TypeGuard

import msgspec

from pipeline.records.fields import (
    Count,
    Features,
    Id,
    IdPair,
    Loss,
    Probability,
    Scores,
    Status,
    Timestamp,
    WatchRatio,
    WrittenRatio,
    always,
)
from pipeline.records.inputs import Carried


class Prediction(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the model predicted for an interaction, with all that is needed to derive it again."""

    event_id: Id
    """Id of the event; its label has the same."""
    user_id: Id
    """The user."""
    video_id: Id
    """The video."""
    timestamp: Timestamp
    """When the event happened: the interaction's timestamp."""
    score: float
    """The learner's score; a positive label is predicted above 0. With logistic loss, the log-odds."""
    probability: Probability | None
    """Probability that the label is positive; null if the loss gives none."""
    predicted: bool
    """Whether the score is above 0."""
    features: Features
    """The event's features at the time of the prediction, in their order."""
    model_version: Count
    """Number of outcomes that the model had learned when it predicted."""
    sequence: Count
    """The prediction's number in its partition, from 0."""
    challengers: Scores | None = None
    """The score of each challenger, by its name. Absent if there are none."""
    asked: bool | None = None
    """Whether its label is asked for in `label-requests`. Absent where all are learned as they come."""

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the stream's entities."""
        return self.user_id, self.video_id

    @property
    def number(self) -> int:
        """What tells it apart: its sequence, and in a slate its position too."""
        return self.sequence

    @property
    def in_slate(self) -> tuple[int, ...]:
        """The position of the item, if it is of a slate."""
        return ()

    @property
    def carried(self) -> Carried:
        """The numbers that it carries as the interaction has them; none where the stream has none."""
        return ()


class RawPrediction(Prediction, frozen=True, gc=False):
    """A prediction whose features are not yet decoded: see `RawOutcome`."""

    features: msgspec.Raw  # type: ignore[assignment]  # the features' text


class LabelRequest(msgspec.Struct, frozen=True, gc=False):
    """A prediction whose label is wanted, for whoever provides labels."""

    event_id: Id
    """Id of the event; its label has the same."""
    user_id: Id
    """The user."""
    video_id: Id
    """The video."""
    timestamp: Timestamp
    """When the event happened: the interaction's timestamp."""
    score: float
    """The learner's score; a positive label is predicted above 0. With logistic loss, the log-odds."""
    prediction_sequence: Count
    """The prediction's number in its partition."""
    sequence: Count
    """The request's number in its partition, from 0."""

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the stream's entities."""
        return self.user_id, self.video_id

    @classmethod
    def of(cls, prediction: Prediction, sequence: int) -> Self:
        """Return the request for a prediction's label that has this sequence."""
        make: Callable[..., Self] = cls  # with the ids of its stream
        return make(
            prediction.event_id,
            *prediction.ids,
            prediction.timestamp,
            prediction.score,
            prediction.sequence,
            *prediction.in_slate,
            sequence,
        )

    @property
    def prediction_number(self) -> int:
        """`Prediction.number` of its prediction."""
        return self.prediction_sequence

    @property
    def in_slate(self) -> tuple[int, ...]:
        """The position of the item, if its prediction is of a slate's."""
        return ()


class EntityCounts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Counts of the labels of an entity, or of a category."""

    entity: Id
    """The entity, or the category."""
    events: Count
    """Number of labels."""
    labels: Count
    """Number of positive labels."""
    values: Annotated[float, msgspec.Meta(ge=0)]
    """Sum of the labels' values, each counted as `target.cap` at most, which is 2 for watch ratios."""

    def __post_init__(self) -> None:
        """Refuse counts of which no mean can be made."""
        if self.labels > self.events:
            raise ValueError(f"{self.labels} of {self.events} labels of {self.entity!r} are positive")


class PairCounts(EntityCounts, frozen=True, gc=False, array_like=True):
    """Counts of the labels of a pair of entities or categories."""

    entity: IdPair  # type: ignore[assignment]  # two of them
    """The two entities or categories."""


class EffectSums(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What one entity's labels say of its effect.

    `pipeline.features.effects` has the equations.
    """

    residuals: float
    """Sum of (x - b) / s over the labels: x is the signal, b the other entity's effect and s its noise."""
    precision: Annotated[float, msgspec.Meta(ge=0)]
    """Sum of 1 / s."""
    signals: float
    """Sum of the signals."""
    squares: Annotated[float, msgspec.Meta(ge=0)]
    """Sum of the squared residuals of both entities."""


class Example(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The training example of an outcome."""

    user_id: Id
    """The user."""
    video_id: Id
    """The video."""
    timestamp: Timestamp
    """When the event happened."""
    features: Features
    """The outcome's features."""
    label: bool
    """The label that is learned."""
    watch_ratio: WatchRatio
    """The label's value; 0 if none came."""

    weighted: ClassVar[bool] = False
    """Whether the stream's labels have weights; `weight` is a field then."""

    @property
    def weight(self) -> float:
        """How many labels its label counts as."""
        return 1.0

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the stream's entities."""
        return self.user_id, self.video_id


class Share(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a partition shares with the others of a range of its outcomes."""

    partition: Count
    """The partition that publishes it."""
    since: Count
    """Sequence of the first outcome in the share."""
    until: Count
    """Sequence after that of the last."""
    videos: list[EntityCounts]
    """Label counts of each video that had a label."""
    examples: list[Example]
    """Some of the outcomes, as training examples."""
    effects: list[EffectSums] | None = None
    """What the labels say of the effect of each video, in their order. Absent without effects."""
    window_end: Timestamp | None = None
    """The event time at which the window of these outcomes ends; others learn them one window later. Only
    with `sharing.align`."""
    closed_until: Timestamp | None = None
    """The event time up to which the partition has shared everything. Only in the last share of a window."""

    effects_table: ClassVar[int | None] = 0
    """Which of `counts` the effects are of; None where partitions share none."""

    @property
    def counts(self) -> tuple[list[EntityCounts], ...]:
        """The counts by entity, for each of the tables that partitions share."""
        return (self.videos,)

    def __post_init__(self) -> None:
        """Refuse sums that are not those of the entities."""
        if self.effects is not None:
            entities = 0 if self.effects_table is None else len(self.counts[self.effects_table])
            if len(self.effects) != entities:
                raise ValueError(f"there are effects of {len(self.effects)} entities, not of {entities}")


class Outcome(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A prediction joined with its label, or with the fact that none came: a training example."""

    event_id: Id
    """Id of the event; its label has the same."""
    user_id: Id
    """The user."""
    video_id: Id
    """The video."""
    timestamp: Timestamp
    """When the event happened: the interaction's timestamp."""
    score: float
    """The learner's score; a positive label is predicted above 0. With logistic loss, the log-odds."""
    probability: Probability | None
    """Probability that the label is positive; null if the loss gives none."""
    predicted: bool
    """Whether the score is above 0."""
    features: Features
    """The event's features at the time of the prediction, in their order."""
    model_version: Count
    """Number of outcomes that the model had learned when it predicted."""
    prediction_sequence: Count
    """The prediction's number in its partition."""
    watch_ratio: WrittenRatio | None
    """The label's value; null if none came."""
    label: bool | None
    """What the model learns. Null if it learns nothing, because no label came (with
    `join.on_missing = "drop"`) or because it was not asked for (`labels.policy`)."""
    label_timestamp: Timestamp | None
    """The label's timestamp; null if none came."""
    correct: bool | None
    """Whether the prediction agrees with the label that is learned; null if none is."""
    loss: Loss | None
    """The learner's loss of the score against the label; with squared loss against the label's value, capped,
    and 0 if none came. Null if nothing is learned."""
    status: Status
    """`labelled` if a label came in time, `expired` if none did. With `join.corrections`, a label that came
    later is an outcome of its own: `corrected` if it is learned beside the former one, `replaced` if in its
    place."""
    sequence: Count
    """The outcome's number in its partition, from 0: the number of outcomes before it."""
    shared: Annotated[list[Share], always(minItems=1)] | None = None
    """Shares of other partitions that were learned right before this outcome, in that order. Absent if there
    were none."""
    challengers: Scores | None = None
    """The score of each challenger, as in the prediction. Absent if there were none."""
    asked: bool | None = None
    """Whether the label was asked for, as in the prediction. Absent where all labels are learned as they
    come."""
    former: WrittenRatio | None = None
    """Of a correction, the value that was learned before, 0 if none came. Absent if nothing was learned."""

    example_type: ClassVar[type[Example]] = Example
    weighted: ClassVar[bool] = False
    """Whether the stream's labels have weights; `weight` is a field then, behind the label's value."""

    @property
    def weight(self) -> float:
        """How many labels its label counts as when it is learned: 1 if none came."""
        return 1.0

    @property
    def former_weight(self) -> float | None:
        """The weight of the label that was learned before; None for 1."""
        return None

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the stream's entities."""
        return self.user_id, self.video_id

    @property
    def example(self) -> Example | None:
        """The training example, if anything is learned as one."""
        if self.label is None or self.replaces:
            return None
        make: Callable[..., Example] = self.example_type
        ratio, weight = self.watch_ratio or 0.0, (self.weight,) if self.weighted else ()
        return make(*self.ids, self.timestamp, self.decoded_features(), self.label, ratio, *weight)

    @property
    def prediction_number(self) -> int:
        """`Prediction.number` of its prediction."""
        return self.prediction_sequence

    @property
    def corrects(self) -> bool:
        """Whether its label came after another outcome of the prediction."""
        return self.status in {"corrected", "replaced"}

    @property
    def replaces(self) -> bool:
        """Whether its label is learned in place of a former one."""
        return self.status == "replaced" and self.former is not None and self.label is not None

    def decoded_features(self) -> list[float]:
        """Return the features."""
        return self.features


class RawOutcome(Outcome, frozen=True, gc=False):
    """An outcome whose features are not yet decoded: lists of numbers cost more than all other fields."""

    features: msgspec.Raw  # type: ignore[assignment]  # the features' text
    features_decoder: ClassVar[msgspec.json.Decoder[list[float]]] = msgspec.json.Decoder(Features)

    def decoded_features(self) -> list[float]:
        """Return the features.

        Raises
        ------
        msgspec.DecodeError
            They are not a list of as many numbers as the stream has features.
        """
        return self.features_decoder.decode(self.features)


def is_outcome(record: Prediction | Outcome) -> TypeGuard[Outcome]:
    """Tell whether a record is an outcome, and not a prediction."""
    return hasattr(record, "status")


def is_prediction(record: Prediction | Outcome) -> TypeGuard[Prediction]:
    """Tell whether a record is a prediction, and not an outcome."""
    return not hasattr(record, "status")
