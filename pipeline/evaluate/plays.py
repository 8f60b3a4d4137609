"""KuaiRec's plays as a stream, and the pipeline's model as a learner of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from forks.validation import Event
from pipeline.kuairec import Events
from pipeline.model import Model
from pipeline.records import Interaction
from pipeline.statistics import FEATURES
from pipeline.task import WATCHED


class Play(NamedTuple):
    """A play: the interaction, its number in the stream, and what becomes known when it has ended."""

    number: int
    interaction: Interaction
    watch_ratio: float


class PlayLearner:
    """A model that learns each play from the running features as they were when it was asked for.

    Parameters
    ----------
    model
        As the pipeline has it, without tables.
    plays
        How many there will be.
    """

    def __init__(self, model: Model, plays: int) -> None:
        self.model = model
        self.features = np.zeros((plays, len(FEATURES)))
        """The running features of each play, once it was asked for."""

    def predict_one(self, play: Play) -> float:
        """Give the model's score of a play."""
        judgement = self.model.judge(play.interaction)
        self.features[play.number] = judgement.features
        return judgement.score

    def learn_one(self, play: Play, y: float) -> None:
        """Learn whether the play was watched."""
        features = self.features[play.number].tolist()
        self.model.learn(play.interaction, features, y > 0, play.watch_ratio)


def plays(events: Events, *, delayed: bool) -> Iterator[Event[Play]]:
    """Give the plays in the frame's order, with labels at once, or `delayed` until the play has ended."""
    columns = (
        "event_id",
        "user_id",
        "video_id",
        "timestamp",
        "video_duration",
        "watch_ratio",
        "label_timestamp",
    )
    for number, row in enumerate(events.frame.select(columns).iter_rows()):
        *fields, watch_ratio, ended = row
        interaction = Interaction(*fields)
        moment, delay = (interaction.timestamp, ended - interaction.timestamp) if delayed else (number, 0)
        yield Event(
            Play(number, interaction, watch_ratio), 1.0 if watch_ratio > WATCHED else -1.0, moment, delay
        )
