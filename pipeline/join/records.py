"""What the join's tables hold of an event: a prediction that waits, an early label."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from pipeline.records.fields import Id
from pipeline.records.inputs import Label, RawMessage
from pipeline.records.outputs import Outcome, Prediction


class ChallengerScores(msgspec.Struct, frozen=True, gc=False):
    """Scores that challengers gave to an interaction."""

    names: tuple[str, ...]
    """One object for all predictions of a batch."""
    scores: bytes
    """Float64, in the order of the names."""

    @classmethod
    def of(cls, scores: Mapping[str, float], names: tuple[str, ...] | None = None) -> ChallengerScores:
        """Return the scores of a prediction; `names` is the tuple to share, if there is one."""
        return cls(names or tuple(scores), array("d", scores.values()).tobytes())

    def by_name(self) -> dict[str, float]:
        """Return the scores by name."""
        return dict(zip(self.names, np.frombuffer(self.scores).tolist(), strict=True))


class Pending(msgspec.Struct, gc=False):
    """A prediction that waits for its label. The model's output is filled in when its batch is run."""

    event_id: Id
    ids: tuple[Id, ...]
    timestamp: int
    model_version: int
    sequence: int
    """Of a slate's item, `pipeline.records.slates.item_number`."""
    scored: bytes = b""
    """Score, then features, float64."""
    asked: bool | None = None
    """Whether its label was asked for; None where all labels are learned as they come."""
    challengers: ChallengerScores | None = None
    """None where there were no challengers."""
    record: Prediction | None = None
    """The record, of a prediction that was spilled."""

    @classmethod
    def of(cls, prediction: Prediction) -> Pending:
        """Return the waiting prediction of a record."""
        challengers = prediction.challengers
        return cls(
            prediction.event_id,
            prediction.ids,
            prediction.timestamp,
            prediction.model_version,
            prediction.number,
            array("d", [prediction.score, *prediction.features]).tobytes(),
            prediction.asked,
            None if challengers is None else ChallengerScores.of(challengers),
        )

    @classmethod
    def of_outcome(cls, outcome: Outcome) -> Pending:
        """Return the prediction of an outcome, as it waited."""
        challengers = outcome.challengers
        return cls(
            outcome.event_id,
            outcome.ids,
            outcome.timestamp,
            outcome.model_version,
            outcome.prediction_number,
            array("d", [outcome.score, *outcome.decoded_features()]).tobytes(),
            outcome.asked,
            None if challengers is None else ChallengerScores.of(challengers),
        )

    @classmethod
    def of_spilled(cls, prediction: Prediction) -> Pending:
        """Return the waiting prediction of a record that was spilled."""
        pending = cls.of(prediction)
        pending.record = prediction
        return pending


class EarlyLabel(NamedTuple):
    """A label that came before its interaction, with its message in case none comes."""

    label: Label
    source: RawMessage
