"""Score candidates with a model that stays as it is: all in one pass, with the bits of one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forks import Forks
from forks.losses import probabilities
from pipeline.config.feature_layout import Part
from pipeline.features.entities import EntityTotals
from pipeline.features.live_tables import Rows
from pipeline.features.totals import NO_ROW
from pipeline.model.columns import ModelOutputs
from pipeline.model.model import Model
from pipeline.model.score_terms import score_terms
from pipeline.records.inputs import Interaction
from pipeline.serving.answers import Explanation, NearPoint, ScoreTerm, UnknownChallengerError
from pipeline.serving.origins import PointOrigins

NEAREST: Final = 3
"""Stored points that an explanation names, at most."""


class ModelScores(NamedTuple):
    """What one learner of a model says of candidates."""

    scores: list[float]
    probabilities: list[float] | list[None]
    predicted: list[bool] | list[float]


def message_values(
    model: Model, interactions: Sequence[Interaction], tables: Sequence[Rows]
) -> NDArray[np.float64] | None:
    """Return the features that messages have by themselves, followed by those of the live tables.

    Parameters
    ----------
    model
        The model that they are for.
    interactions
        The n messages, decoded.
    tables
        The rows of the live tables, in the order of the stream's definition.

    Returns
    -------
    ndarray or None
        Shape (n, features); None where there are none.
    """
    n = len(interactions)
    times = np.array([each.timestamp for each in interactions], dtype=np.int64)
    blocks = [model.features.event.values(interactions, times)]
    for rows in tables:
        found = rows.of_all([each.ids[rows.features.entity] for each in interactions])
        blocks.append(np.frombuffer(found).reshape(n, -1))
    values = np.hstack(blocks)
    return values if values.shape[1] else None


def scores_of(model: Model, outputs: ModelOutputs, challenger: str | None) -> ModelScores:
    """Return the scores of the champion, or those of a challenger.

    Raises
    ------
    UnknownChallengerError
        There is no such challenger.
    """
    if challenger is None:
        return ModelScores(outputs.scores, outputs.probabilities, model.target.predictions(outputs.scores))
    shadow = model.challengers.get(challenger)
    if shadow is None:
        raise UnknownChallengerError(challenger, (*model.challengers,))
    scores = [each[challenger] for each in outputs.challengers if each is not None]
    p: list[float] | list[None] = [None] * len(scores)
    if shadow.loss == "logistic":
        p = probabilities(np.array(scores)).tolist()
    return ModelScores(scores, p, model.target.predictions(scores))


def unknown_entities(model: Model, interactions: Sequence[Interaction]) -> list[tuple[str, ...]]:
    """Return, for each candidate, the names of entities of which the model remembers no label.

    An entity is known by the table of statistics of its own. One without such a table is never unknown.
    """
    own = dict[int, EntityTotals]()
    for layout, table in zip(model.features.layout.tables, model.statistics.tables, strict=True):
        [part, *others] = layout.parts
        if part == Part(entity=True, place=part.place) and not others:
            own.setdefault(part.place, table)
    rows, names = [each.ids for each in interactions], model.features.entity_names
    new = [
        (names[place], place, {each for each in {ids[place] for ids in rows} if table.find(each) == NO_ROW})
        for place, table in own.items()
    ]
    if not any(ids for _, _, ids in new):
        return [()] * len(rows)
    return [tuple(name for name, place, unknown in new if ids[place] in unknown) for ids in rows]


def explain_scores(
    model: Model,
    interactions: Sequence[Interaction],
    features: NDArray[np.float64],
    origins: PointOrigins,
    challenger: str | None,
) -> list[Explanation]:
    """Split scores into terms, and find the stored points that are near the candidates.

    Parameters
    ----------
    model
        The model.
    interactions
        The n candidates.
    features
        Their features, shape (n, features).
    origins
        Knows where the champion's stored points come from.
    challenger
        The challenger whose scores they are; None for the champion's. One that is a rival has no parts and no
        stored points that it could name.
    """
    learner = model.learner if challenger is None else model.challengers[challenger].learner
    found = []
    for interaction, row in zip(interactions, features.tolist(), strict=True):
        _, terms = score_terms(model, interaction, row, challenger)
        near = []
        if isinstance(learner, Forks):
            near = learner.nearest_one(model.context(interaction, row), NEAREST)
        points = [
            NearPoint(
                each.distance,
                each.kernel,
                origins.of(each.learned_before) if challenger is None else None,
            )
            for each in near
        ]
        found.append(Explanation([ScoreTerm(*term) for term in terms], points))
    return found
