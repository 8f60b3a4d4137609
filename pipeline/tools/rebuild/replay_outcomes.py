"""Every event predicted at its place between the outcomes, and only then learned. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StateError
from pipeline.features.target import TARGET
from pipeline.model.model import Model
from pipeline.records.outputs import Outcome, Prediction

SCORED_OUTCOME: Final = np.dtype(
    [
        ("timestamp", np.int64),
        ("running", np.float64),
        ("rebuilt", np.float64),
        ("watch_ratio", np.float64),
        ("watched", np.bool_),
        ("labelled", np.bool_),
    ]
)
"""An outcome, with the score that was written and the one that the model under other settings gives."""

ScoredOutcomes = NDArray[np.void]
"""Outcomes as an array of `SCORED_OUTCOME`, in the order of their sequence."""
ScoredOutcome = tuple[int, float, float, float, bool, bool]
"""One of them, field by field."""


def relearn(
    model: Model, predictions: Iterator[Prediction], outcomes: Iterable[Outcome]
) -> Iterator[ScoredOutcome]:
    """Fold a partition's outcomes into a model that has seen nothing; yields a `SCORED_OUTCOME` after each.

    A prediction is made when as many outcomes are folded as its `model_version` says, from the running
    features in its record: these do not depend on the learner.

    Raises
    ------
    StateError
        If a record is missing or out of order.
    """
    scores: dict[int, float] = {}
    upcoming = next(predictions, None)
    for outcome in outcomes:
        while upcoming is not None and upcoming.model_version <= model.folded:
            if upcoming.model_version < model.folded:
                raise StateError(
                    f"prediction {upcoming.sequence} was made by version {upcoming.model_version} of the "
                    f"model, but stands behind predictions of version {model.folded}"
                )
            scores[upcoming.sequence] = model.predict_score(upcoming, upcoming.features)
            upcoming = next(predictions, None)
        if outcome.sequence != model.folded:
            raise StateError(f"outcome {model.folded} is missing: outcome {outcome.sequence} comes instead")
        score = scores.pop(outcome.prediction_sequence, None)
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
            TARGET.is_positive(outcome.watch_ratio or 0.0),
            outcome.status == "labelled",
        )
