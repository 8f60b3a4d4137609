"""The champion beside its challengers, over the same events. Pure: arrays in, figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.validation import auc, log_loss
from pipeline.config.tree import CHAMPION


class LearnerFigures(msgspec.Struct, frozen=True):
    """A learner in figures; those that are not defined are None."""

    name: str
    mistakes: float
    """Share of mistakes."""
    alone_right: int
    """Events that it had right and the champion wrong."""
    alone_wrong: int
    """Events that it had wrong and the champion right."""
    auc: float | None
    log_loss: float | None
    """In nats; None for a learner without log-odds."""


class LearnerComparison(msgspec.Struct, frozen=True):
    """The champion, and then its challengers in the order of their names."""

    events: int
    """Labelled events that the learners of now predicted; with others before, it is those since."""
    contenders: list[LearnerFigures]


class LabelledScores(NamedTuple):
    """What the learners of a partition said of its labelled events, since they are these."""

    watched: NDArray[np.bool_]
    """Shape (n,)."""
    scores: Mapping[str, NDArray[np.float64]]
    """By learner, the champion among them, each of shape (n,)."""


def contest(partitions: Sequence[LabelledScores], log_odds: frozenset[str]) -> LearnerComparison | None:
    """Sum up all partitions; None without a labelled event that challengers said something of.

    Parameters
    ----------
    partitions
        What there is of each.
    log_odds
        The learners whose scores are log-odds.

    Examples
    --------
    >>> said = {"champion": np.array([2.0, -1.0, 1.0]), "linear": np.array([1.0, 1.0, -1.0])}
    >>> found = contest([LabelledScores(np.array([True, True, True]), said)], frozenset())
    >>> [(each.name, each.alone_right, each.alone_wrong) for each in found.contenders]
    [('champion', 0, 0), ('linear', 1, 1)]
    """
    partitions = [each for each in partitions if len(each.watched)]
    names = partitions[0].scores.keys() if partitions else {}
    if len(names) <= 1:
        return None
    watched = np.concatenate([each.watched for each in partitions])
    scores = {name: np.concatenate([each.scores[name] for each in partitions]) for name in names}
    champion_right = (scores[CHAMPION] > 0.0) == watched
    contenders = []
    for name, said in scores.items():
        right = (said > 0.0) == watched
        contenders.append(
            LearnerFigures(
                name=name,
                mistakes=float(np.mean(~right)),
                alone_right=int(np.sum(right & ~champion_right)),
                alone_wrong=int(np.sum(~right & champion_right)),
                auc=auc(said, watched),
                log_loss=log_loss(said, watched) if name in log_odds else None,
            )
        )
    return LearnerComparison(len(watched), contenders)
