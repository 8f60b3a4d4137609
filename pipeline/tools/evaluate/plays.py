"""KuaiRec's plays as a stream, from the features and with the targets that the pipeline has for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from forks import Forks, LossName
from forks.arrays import FloatArray, IntArray
from forks.validation import Event
from pipeline.config import tree as config
from pipeline.features.statistics import RunningStatistics
from pipeline.features.tables import TagTable
from pipeline.features.tags import TagLists
from pipeline.features.target import TARGET
from pipeline.sources.kuairec import Events, tables_beside
from pipeline.sources.schedule import merge_by_time


class PlayStream(NamedTuple):
    """Plays by their number in the stream.

    Parameters
    ----------
    moments, ends
        When each is predicted and when its label is known, shape (n,).
    labels
        Whether it was watched, -1 or +1, shape (n,).
    X
        Its running features when it is predicted, shape (n, features).
    targets
        What the learner is taught of it, shape (n,): see `pipeline.features.target.Target.value`.
    """

    moments: IntArray
    label_moments: IntArray
    labels: FloatArray
    X: FloatArray
    targets: FloatArray

    def stream(self) -> Iterator[Event[int]]:
        """Give each play's number, label, moment and delay."""
        columns = zip(self.labels.tolist(), self.moments.tolist(), self.label_moments.tolist(), strict=True)
        for number, (label, moment, end) in enumerate(columns):
            yield Event(number, label, moment, end - moment)


class PlayLearner:
    """A learner that is told numbers of plays."""

    def __init__(self, learner: Forks, plays: PlayStream) -> None:
        self._learner = learner
        self._plays = plays

    def predict_one(self, number: int) -> float:
        """Give the learner's score of a play."""
        return self._learner.predict_one(self._plays.X[number])

    def learn_one(self, number: int, y: float) -> None:  # noqa: ARG002 - the target says more than the label
        """Learn a play's target."""
        self._learner.learn_one(self._plays.X[number], self._plays.targets[number])


def play_stream(events: Events, tags: TagLists | None, loss: LossName, *, delayed: bool) -> PlayStream:
    """Work out plays in the frame's order, with labels at once, or `delayed` until the play has ended."""
    frame = events.frame
    moments = label_moments = np.arange(len(events))
    if delayed:
        moments, label_moments = frame["timestamp"].to_numpy(), frame["label_timestamp"].to_numpy()
    ratios = frame["watch_ratio"].to_numpy()
    watched = TARGET.are_positive(ratios)
    statistics = RunningStatistics(config.Features().max_entities, tags)
    users, videos = frame["user_id"].to_list(), frame["video_id"].to_list()
    X = statistics.run(merge_by_time(moments, label_moments), users, videos, watched, ratios)
    return PlayStream(
        moments, label_moments, np.where(watched, 1.0, -1.0), X, TARGET.values(loss, watched, ratios)
    )


def tags_beside(path: Path) -> TagLists | None:
    """Read the videos' tags from KuaiRec's table in a folder, or beside a file; None if it is not there."""
    table = tables_beside(path).get("tags")
    return TagTable(table).lists if table else None
