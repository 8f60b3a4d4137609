"""Predict each event again before its outcome is learned, given the records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StateError
from pipeline.model.model import Model
from pipeline.records.outputs import Outcome, Prediction

SCORED_OUTCOME: Final = np.dtype(
    [
        ("timestamp", np.int64),
        ("running", np.float64),
        ("rebuilt", np.float64),
        ("watch_ratio", np.float64),
        ("labelled", np.bool_),
    ]
)
"""An outcome with two scores: the `running` one of the topic, and the `rebuilt` one under other settings."""

ScoredOutcomes: TypeAlias = NDArray[np.void]
"""Outcomes as an array of `SCORED_OUTCOME`, in the order of their sequence."""
ScoredOutcome: TypeAlias = tuple[int, float, float, float, bool]
"""One scored outcome, with the fields of `SCORED_OUTCOME`."""


def relearn(
    model: Model, predictions: Iterator[Prediction], outcomes: Iterable[Outcome]
) -> Iterator[ScoredOutcome]:
    """Let a new model learn a partition's outcomes, and yield the scores after each.

    A prediction is made when the model has learned `model_version` outcomes, from the running features of
    the written prediction: these do not depend on the learner.

    Parameters
    ----------
    model
        New model.
    predictions
        Predictions of the partition in sequence.
    outcomes
        Outcomes of the partition in sequence.

    Yields
    ------
    ScoredOutcome
        Scores of the outcome that was learned last.

    Raises
    ------
    StateError
        If a record is missing or out of order.
    """
    scores: dict[int, float] = {}
    upcoming = next(predictions, None)
    for outcome in outcomes:
        while upcoming is not None and upcoming.model_version <= model.outcomes_learned:
            if upcoming.model_version < model.outcomes_learned:
                raise StateError(
                    f"prediction {upcoming.sequence} was made by version {upcoming.model_version} of the "
                    f"model, but stands behind predictions of version {model.outcomes_learned}"
                )
            scores[upcoming.number] = model.predict_score(upcoming, upcoming.features)
            upcoming = next(predictions, None)
        if outcome.sequence != model.outcomes_learned:
            raise StateError(
                f"outcome {model.outcomes_learned} is missing: outcome {outcome.sequence} comes instead"
            )
        score = scores.pop(outcome.prediction_number, outcome.score if outcome.corrects else None)
        if score is None:
            raise StateError(
                f"prediction {outcome.prediction_sequence} of outcome {outcome.sequence} is missing"
            )
        model.learn_one(outcome)
        yield (
            outcome.timestamp,
            outcome.score,
            score,
            outcome.watch_ratio or 0.0,
            outcome.status == "labelled",
        )
