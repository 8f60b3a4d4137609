"""The running statistics, slow and plain: what the compiled ones are compared with."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pipeline.features.binary import TARGET
from pipeline.records.fields import Id
from pipeline.records.outputs import Share


class Totals(NamedTuple):
    """Sums over labels."""

    events: float = 0.0
    labels: float = 0.0
    ratios: float = 0.0

    def plus(self, other: Totals) -> Totals:
        return Totals(*(a + b for a, b in zip(self, other, strict=True)))


class Prior(NamedTuple):
    """Means to smooth towards."""

    label: float
    ratio: float

    def means(self, totals: Totals) -> Prior:
        return Prior(
            (totals.labels + 10.0 * self.label) / (totals.events + 10.0),
            (totals.ratios + 10.0 * self.ratio) / (totals.events + 10.0),
        )


class PlainStatistics:
    """As `pipeline.features.statistics.RunningStatistics`, in dictionaries."""

    def __init__(self, max_entities: int, tags: Mapping[Id, Collection[int]]) -> None:
        self.limit = max_entities
        self.users: OrderedDict[Id, Totals] = OrderedDict()
        self.videos: OrderedDict[Id, Totals] = OrderedDict()
        self.tags: dict[int, Totals] = {}
        self.everything = Totals()
        self._tags_of = {video: sorted(set(numbers)) for video, numbers in tags.items()}

    def features(self, ids: tuple[Id, Id]) -> list[float]:
        user_id, video_id = ids
        events, labels, ratios = self.everything
        prior = Prior((labels + 0.5) / (events + 1.0), (ratios + 0.5) / (events + 1.0))
        of_tags = Totals()
        for tag in self._tags_of.get(video_id, []):
            of_tags = of_tags.plus(self.tags.get(tag, Totals()))
        user, video = self.users.get(user_id, Totals()), self.videos.get(video_id, Totals())
        tag_prior = prior.means(of_tags) if of_tags.events else prior
        whole = [*_block(user, prior), *_block(video, prior), *tag_prior.means(video)]
        return [round(value * 1e6) / 1e6 for value in whole]

    def update(self, ids: tuple[Id, Id], label: bool, watch_ratio: float) -> None:
        _, video_id = ids
        one = Totals(1.0, float(label), min(watch_ratio, TARGET.cap))
        for entities, entity in zip((self.users, self.videos), ids, strict=True):
            entities[entity] = entities.pop(entity, Totals()).plus(one)
            if len(entities) > self.limit:
                entities.popitem(last=False)
        for tag in self._tags_of.get(video_id, []):
            self.tags[tag] = self.tags.get(tag, Totals()).plus(one)
        self.everything = self.everything.plus(one)

    def merge_shared(self, shares: Iterable[Share]) -> None:
        for counts in (counts for share in shares for counts in share.videos):
            sums = Totals(counts.events, counts.labels, counts.values)
            video = counts.entity
            self.videos[video] = self.videos.pop(video, Totals()).plus(sums)
            if len(self.videos) > self.limit:
                self.videos.popitem(last=False)
            for tag in self._tags_of.get(video, []):
                self.tags[tag] = self.tags.get(tag, Totals()).plus(sums)
            self.everything = self.everything.plus(sums)


def _block(totals: Totals, prior: Prior) -> tuple[float, float, float, float]:
    label, ratio = prior.means(totals)
    return label, math.log(label / (1.0 - label)), ratio, math.log1p(totals.events)
