"""The sum of two running label means, a user's and an item's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Literal, TypeAlias

Threshold: TypeAlias = Literal["fixed", "running"]


class Mean:
    """A running mean that starts as ``weight`` events of a prior.

    Examples
    --------
    >>> mean = Mean()
    >>> mean.add(1.0)
    >>> mean.value(prior=0.5, weight=1.0)
    0.75
    """

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def add(self, value: float) -> None:
        """Take in one more value."""
        self.total += value
        self.count += 1

    def value(self, prior: float, weight: float) -> float:
        """Return the mean, smoothed towards ``prior``."""
        return (self.total + weight * prior) / (self.count + weight)


class RunningMeans:
    """Scores a pair by how far its two running means of past labels lie above a threshold.

    With labels as 0 and 1, the score is m_user + m_item - 1 (``fixed``) or m_user + m_item - (m + 1/2)
    (``running``), where m is the mean of all labels, to which the other two are smoothed. No source: this
    is what anybody would try first.

    Parameters
    ----------
    threshold : ``fixed`` or ``running``
    prior_weight : events of the average entity that every entity starts with, > 0

    Examples
    --------
    >>> means = RunningMeans("fixed")
    >>> means.learn_one(("ann", "film"), 1)
    >>> means.predict_one(("ann", "another")) > 0
    True
    """

    def __init__(self, threshold: Threshold = "running", *, prior_weight: float = 10.0) -> None:
        if threshold not in {"fixed", "running"}:
            raise ValueError(f"threshold must be 'fixed' or 'running', not {threshold!r}")
        if not prior_weight > 0.0:
            raise ValueError(f"prior_weight must be > 0, not {prior_weight}")
        self._running = threshold == "running"
        self._weight = prior_weight
        self._users: defaultdict[Hashable, Mean] = defaultdict(Mean)
        self._items: defaultdict[Hashable, Mean] = defaultdict(Mean)
        self._all = Mean()

    def predict_one(self, x: tuple[Hashable, Hashable]) -> float:
        """Return the score of a (user, item); its sign is the label."""
        mean = self._all.value(0.5, 1.0)
        user, item = x
        score = sum(
            means[entity].value(mean, self._weight) if entity in means else mean
            for means, entity in ((self._users, user), (self._items, item))
        )
        return score - (mean + 0.5 if self._running else 1.0)

    def learn_one(self, x: tuple[Hashable, Hashable], y: float) -> None:
        """Learn the label ``y``, -1 or +1, of a (user, item)."""
        user, item = x
        for mean in (self._users[user], self._items[item], self._all):
            mean.add(float(y > 0))
