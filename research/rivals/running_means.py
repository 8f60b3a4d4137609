"""The sum of two running label means, a user's and an item's."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from forks.rivals.base.learner import positive
from research.rivals.pairs import Entity, PairRival

Threshold: TypeAlias = Literal["fixed", "running"]


class RunningMeans(PairRival):
    """Difference between a pair's two running means of past labels and a threshold, a simple baseline.

    With labels as 0 and 1, the score is m_user + m_item - 1 (``fixed``) or m_user + m_item - (m + 1/2)
    (``running``), where m is the mean of all labels, towards which the other two are smoothed.

    A user and an item are integers of 64 bits. `learn_one` returns the hinge loss, which the learner itself
    does not use.

    Parameters
    ----------
    threshold
        Threshold of the score: ``fixed`` or ``running``.
    prior_weight
        Number of events of the average entity that each entity starts with, > 0.

    Examples
    --------
    >>> ann, film, another = 1, 1, 2
    >>> means = RunningMeans("fixed")
    >>> means.learn_one((ann, film), 1)
    1.0
    >>> means.predict_one((ann, another)) > 0
    True
    """

    # A row holds the sum and the number of an entity's labels; these are the same of all labels.
    numbers: ClassVar = {"total": float, "count": int}

    def __init__(self, threshold: Threshold = "running", *, prior_weight: float = 10.0) -> None:
        if threshold not in {"fixed", "running"}:
            raise ValueError(f"threshold must be 'fixed' or 'running', not {threshold!r}")
        super().__init__(columns=2)
        self._running = threshold == "running"
        self._weight = positive("prior_weight", prior_weight)
        self.total = 0.0
        self.count = 0

    def _score(self, event: tuple[Entity, Entity]) -> float:
        mean = (self.total + 0.5) / (self.count + 1.0)
        score = sum(self._mean(entity, mean) for entity in event)
        return score - (mean + 0.5 if self._running else 1.0)

    def _mean(self, entity: Entity, prior: float) -> float:
        """Return an entity's mean, smoothed towards ``prior``."""
        row = self._row(entity)
        if row is None:
            return prior
        total, count = row.tolist()
        return float((total + self._weight * prior) / (count + self._weight))

    def _learn(self, event: tuple[Entity, Entity], y: float, _score: float, _weight: float, /) -> None:
        label = float(y > 0)
        for entity in event:
            self._add_if_new(entity)
            self.rows[self._row_index[entity]] += (label, 1.0)
        self.total += label
        self.count += 1
