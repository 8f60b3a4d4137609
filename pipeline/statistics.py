"""The running block of the context vector: what users and videos did until now.

Everything here changes only when an outcome is folded, never before, so a feature is what was known
when the prediction was made, and no more. Memory is bounded: the entity seen longest ago goes first.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import NamedTuple

from pipeline.records import Id

FEATURES = (
    "user_label_mean",
    "user_label_logit",
    "user_ratio_mean",
    "user_log_count",
    "video_label_mean",
    "video_label_logit",
    "video_ratio_mean",
    "video_log_count",
)
"""Names of the running features, in the order in which predictions carry them."""

PRIOR_WEIGHT = 10.0
"""How many events of the average entity every entity starts with."""

RATIO_CAP = 2.0
"""Watch ratios above this count as this: a video on repeat says no more than one seen twice."""


class Totals(NamedTuple):
    """Sums over the labels of one entity, or of all."""

    events: float
    labels: float
    ratios: float

    def plus(self, label: bool, ratio: float) -> Totals:
        """These sums with one more label."""
        return Totals(self.events + 1.0, self.labels + label, self.ratios + ratio)


NOTHING = Totals(0.0, 0.0, 0.0)


class EntityTotals:
    """Totals by entity for at most `limit` entities, the one updated longest ago forgotten first.

    Examples
    --------
    >>> totals = EntityTotals(limit=2)
    >>> for user in ["a", "b", "a", "c"]:
    ...     totals.add(user, True, 1.0)
    >>> totals.get("a").events, totals.get("b").events
    (2.0, 0.0)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.totals: OrderedDict[Id, Totals] = OrderedDict()
        """From the entity updated longest ago to the latest."""

    def get(self, entity: Id) -> Totals:
        """The entity's totals; zeros if it is unknown."""
        return self.totals.get(entity, NOTHING)

    def add(self, entity: Id, label: bool, ratio: float) -> None:
        """Count one more label of the entity."""
        self.totals[entity] = self.totals.pop(entity, NOTHING).plus(label, ratio)
        if len(self.totals) > self.limit:
            self.totals.popitem(last=False)


class RunningStatistics:
    """Running label means, their logits, running ratio means and log counts of users and videos.

    Means are smoothed towards the global mean with a prior weight of `PRIOR_WEIGHT`.

    Examples
    --------
    >>> statistics = RunningStatistics(max_entities=1000)
    >>> statistics.update(7, 3, True, 1.2)
    >>> dict(zip(FEATURES, statistics.features(7, 4), strict=True))["user_log_count"]
    0.6931471805599453
    """

    def __init__(self, max_entities: int) -> None:
        self.users = EntityTotals(max_entities)
        self.videos = EntityTotals(max_entities)
        self.everything = NOTHING

    def features(self, user_id: Id, video_id: Id) -> list[float]:
        """The running block for a user and a video, in the order of `FEATURES`."""
        events, labels, ratios = self.everything
        label_prior = (labels + 0.5) / (events + 1.0)
        ratio_prior = (ratios + 0.5) / (events + 1.0)
        return [
            *_block(self.users.get(user_id), label_prior, ratio_prior),
            *_block(self.videos.get(video_id), label_prior, ratio_prior),
        ]

    def update(self, user_id: Id, video_id: Id, label: bool, watch_ratio: float) -> None:
        """Count a label that was joined."""
        ratio = min(watch_ratio, RATIO_CAP)
        self.users.add(user_id, label, ratio)
        self.videos.add(video_id, label, ratio)
        self.everything = self.everything.plus(label, ratio)


def _block(totals: Totals, label_prior: float, ratio_prior: float) -> tuple[float, float, float, float]:
    weight = totals.events + PRIOR_WEIGHT
    mean = (totals.labels + PRIOR_WEIGHT * label_prior) / weight
    return (
        mean,
        math.log(mean / (1.0 - mean)),
        (totals.ratios + PRIOR_WEIGHT * ratio_prior) / weight,
        math.log1p(totals.events),
    )
