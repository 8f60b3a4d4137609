"""Invented events once more and once more, later each time, with users and videos that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from bench.deployment import USERS, VIDEOS
from pipeline.config.topics import Topics
from pipeline.records.encoding import encode
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.sources.kuairec import Events

SPEED_UP: Final = 50
"""How many times faster than invented the events happen: a week takes less than four hours."""
UNLABELLED: Final = 5
"""One event in so many has no label."""


class EventChunks:
    """Chunks of events that follow one another.

    Parameters
    ----------
    events
        What each is made of, at least `unlabelled`.
    unlabelled
        One event in so many has no label; None where all have one.
    """

    def __init__(self, events: Events, unlabelled: int | None = UNLABELLED) -> None:
        begin = pl.col("timestamp").min()
        later = (pl.col("timestamp", "label_timestamp") - begin) // SPEED_UP + begin
        self._frame = events.frame.with_columns(later, number=pl.int_range(len(events)))
        first, last = self._frame.select(pl.col("timestamp").min(), pl.col("label_timestamp").max()).row(0)
        self._duration: int = last - first + 1
        self.events = len(events)
        """Interactions in each."""
        labelled = (
            self._frame if unlabelled is None else self._frame.filter(pl.col("number") % unlabelled > 0)
        )
        self._labelled = labelled.sort("label_timestamp", maintain_order=True)
        self.messages = self.events + self._labelled.height
        """Interactions and labels in each."""

    def records(self, topics: Topics, chunk: int) -> Iterator[tuple[str, bytes, bytes, int]]:
        """Make a chunk's records: topic, key, value and timestamp of each, in the order of each topic.

        Half of the users, and of the videos, are those of the chunk before; ids of events are numbers.
        """
        user_shift, video_shift = chunk * USERS // 2, chunk * VIDEOS // 2
        id_shift, time_shift = chunk * self.events, chunk * self._duration
        interaction_columns = ("number", "user_id", "video_id", "timestamp", "video_duration")
        for number, user, video, timestamp, duration in self._frame.select(interaction_columns).iter_rows():
            interaction = KuaiRecInteraction(
                number + id_shift, user + user_shift, video + video_shift, timestamp + time_shift, duration
            )
            yield (
                topics.interactions,
                str(interaction.user_id).encode(),
                encode(interaction),
                interaction.timestamp,
            )
        label_columns = ("number", "user_id", "video_id", "label_timestamp", "play_duration", "watch_ratio")
        for number, user, video, timestamp, played, ratio in self._labelled.select(label_columns).iter_rows():
            label = WatchLabel(
                number + id_shift,
                user + user_shift,
                video + video_shift,
                timestamp + time_shift,
                played,
                ratio,
            )
            yield topics.labels, str(label.user_id).encode(), encode(label), label.timestamp
