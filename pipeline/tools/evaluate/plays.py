"""Turn the plays of KuaiRec into a stream of events, with the features and targets of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from forks import Forks, LossName
from forks.arrays import FloatArray, IntArray
from forks.validation import Event
from pipeline.config import settings as config
from pipeline.config.feature_layout import FeatureKind
from pipeline.config.stream import KUAIREC
from pipeline.features.binary import TARGET
from pipeline.features.feature_set import FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.features.tables import TagTable
from pipeline.features.tags import TagLists
from pipeline.sources.kuairec import Events, tables_beside
from pipeline.sources.schedule import merge_by_time


class PlayStream(NamedTuple):
    """Plays in the order of the stream.

    Attributes
    ----------
    moments
        Time of each prediction, shape (n,).
    label_moments
        Time at which each label is known, shape (n,).
    labels
        Whether each play was watched, -1 or +1, shape (n,).
    X
        Running features of each play when it is predicted, shape (n, features).
    targets
        Targets that are learned, shape (n,): see `pipeline.features.target.Target.value`.
    """

    moments: IntArray
    label_moments: IntArray
    labels: FloatArray
    X: FloatArray
    targets: FloatArray

    def stream(self) -> Iterator[Event[int]]:
        """Yield the number, label, time and label delay of each play."""
        columns = zip(self.labels.tolist(), self.moments.tolist(), self.label_moments.tolist(), strict=True)
        for number, (label, moment, end) in enumerate(columns):
            yield Event(number, label, moment, end - moment)


class PlayLearner:
    """A learner of plays that are given by their number.

    Parameters
    ----------
    learner
        Learner of feature vectors.
    plays
        Features and targets of the plays.
    """

    def __init__(self, learner: Forks, plays: PlayStream) -> None:
        self._learner = learner
        self._plays = plays

    def predict_one(self, number: int) -> float:
        """Return the score of a play."""
        return self._learner.predict_one(self._plays.X[number])

    def learn_one(self, number: int, y: float) -> None:  # noqa: ARG002 - the target is learned instead of the label
        """Learn the target of a play."""
        self._learner.learn_one(self._plays.X[number], self._plays.targets[number])


def play_stream(
    events: Events,
    tags: TagLists | None,
    loss: LossName,
    *,
    delayed: bool,
    kind: FeatureKind = "effects",
) -> PlayStream:
    """Compute features and targets of plays in the order of the frame.

    Parameters
    ----------
    events
        Plays.
    tags
        Tags of the videos; None without tags.
    loss
        Loss of the learner, which decides the targets.
    delayed
        Whether labels come when the play has ended, instead of at once.
    kind
        Kind of the running features.

    Returns
    -------
    PlayStream
        Columns of all plays.
    """
    frame = events.frame
    moments = label_moments = np.arange(len(events))
    if delayed:
        moments, label_moments = frame["timestamp"].to_numpy(), frame["label_timestamp"].to_numpy()
    ratios = frame["watch_ratio"].to_numpy()
    watched = TARGET.are_positive(ratios)
    statistics = RunningStatistics(config.Features().max_entities, tags, FeatureSet.of(KUAIREC, kind))
    users, videos = frame["user_id"].to_list(), frame["video_id"].to_list()
    X = statistics.run(merge_by_time(moments, label_moments), [users, videos], watched, ratios)
    return PlayStream(
        moments, label_moments, np.where(watched, 1.0, -1.0), X, TARGET.taught_many(loss, ratios)
    )


def tags_beside(path: Path) -> TagLists | None:
    """Read KuaiRec's table of tags in a folder, or beside a file; None if there is no such table."""
    table = tables_beside(path).get("tags")
    return TagTable(table).lists if table else None
