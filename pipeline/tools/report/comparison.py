"""Compare the champion with its challengers over the same events, given their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.validation import auc, log_loss
from pipeline.config.settings import CHAMPION


class LearnerFigures(msgspec.Struct, frozen=True):
    """Figures of one learner; those that are not defined are None."""

    name: str
    mistakes: float
    """Share of mistakes."""
    alone_right: int
    """Events that it predicted right and the champion wrong."""
    alone_wrong: int
    """Events that it predicted wrong and the champion right."""
    auc: float | None
    log_loss: float | None
    """Log loss in nats; None for a learner without log-odds."""


class LearnerComparison(msgspec.Struct, frozen=True):
    """Figures of the champion, then of its challengers in the order of their names."""

    events: int
    """Labelled events of the current settings epoch, which all these learners predicted."""
    contenders: list[LearnerFigures]


class LabelledScores(NamedTuple):
    """Scores of the learners for the labelled events of a partition in the current settings epoch."""

    positive: NDArray[np.bool_]
    """Whether the label is positive, shape (n,)."""
    scores: Mapping[str, NDArray[np.float64]]
    """Scores by learner, including the champion, each of shape (n,)."""
    values: NDArray[np.float64]
    """The labels' values, as they are learned, shape (n,)."""


def compare_learners(
    partitions: Sequence[LabelledScores], log_odds: frozenset[str]
) -> LearnerComparison | None:
    """Compare the learners over all partitions.

    Parameters
    ----------
    partitions
        Labels and scores of each partition.
    log_odds
        Names of the learners whose scores are log-odds.

    Returns
    -------
    LearnerComparison or None
        None without challengers, or without a labelled event that they predicted.

    Examples
    --------
    >>> scores = {"champion": np.array([2.0, -1.0, 1.0]), "linear": np.array([1.0, 1.0, -1.0])}
    >>> positive = np.array([True, True, True])
    >>> found = compare_learners([LabelledScores(positive, scores, np.ones(3))], frozenset())
    >>> [(each.name, each.alone_right, each.alone_wrong) for each in found.contenders]
    [('champion', 0, 0), ('linear', 1, 1)]
    """
    partitions = [each for each in partitions if len(each.positive)]
    names = partitions[0].scores.keys() if partitions else {}
    if len(names) <= 1:
        return None
    positive = np.concatenate([each.positive for each in partitions])
    scores = {name: np.concatenate([each.scores[name] for each in partitions]) for name in names}
    champion_right = (scores[CHAMPION] > 0.0) == positive
    contenders = []
    for name, learner_scores in scores.items():
        right = (learner_scores > 0.0) == positive
        contenders.append(
            LearnerFigures(
                name=name,
                mistakes=float(np.mean(~right)),
                alone_right=int(np.sum(right & ~champion_right)),
                alone_wrong=int(np.sum(~right & champion_right)),
                auc=auc(learner_scores, positive),
                log_loss=log_loss(learner_scores, positive) if name in log_odds else None,
            )
        )
    return LearnerComparison(len(positive), contenders)
