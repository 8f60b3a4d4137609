"""Records of KuaiRec's input topics, as this project's own sources send them."""

from __future__ import annotations

from pipeline.records.fields import Duration, Id, Timestamp, WatchRatio
from pipeline.records.inputs import Interaction, Label


class KuaiRecInteraction(Interaction, frozen=True, gc=False):
    """A video is presented to a user."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    video_duration: Duration

    @property
    def ids(self) -> tuple[Id, Id]:
        """The ids of user and video."""
        return self.user_id, self.video_id


class WatchLabel(Label, frozen=True, gc=False):
    """How much of the video the user watched; `timestamp` is when that became known."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    play_duration: Duration
    watch_ratio: WatchRatio

    @property
    def ids(self) -> tuple[Id, Id]:
        """The ids of user and video."""
        return self.user_id, self.video_id
