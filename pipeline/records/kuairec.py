"""Records of KuaiRec's input topics, as this project's own sources send them."""

from __future__ import annotations

from typing import ClassVar

from pipeline.records.fields import Duration, Id, Timestamp, WatchRatio
from pipeline.records.inputs import Interaction, Label


class KuaiRecInteraction(Interaction, frozen=True, gc=False):
    """A video is presented to a user. Further fields are ignored."""

    id_fields: ClassVar[tuple[str, ...]] = ("user_id", "video_id")

    event_id: Id
    """Id of the event; its label has the same."""
    user_id: Id
    """The user."""
    video_id: Id
    """The video."""
    timestamp: Timestamp
    """When the video was shown."""
    video_duration: Duration
    """Length of the video in milliseconds."""

    @property
    def ids(self) -> tuple[Id, Id]:
        """The ids of user and video."""
        return self.user_id, self.video_id


class WatchLabel(Label, frozen=True, gc=False):
    """How much of a video the user watched. Further fields are ignored."""

    id_fields: ClassVar[tuple[str, ...]] = ("user_id", "video_id")

    event_id: Id
    """Id of the event that is labelled."""
    user_id: Id
    """The user."""
    video_id: Id
    """The video."""
    timestamp: Timestamp
    """When the label became known."""
    play_duration: Duration
    """How long the video was played, in milliseconds."""
    watch_ratio: WatchRatio
    """Play duration over video duration; above 1 where a video was watched more than once. The label is
    positive above 0.75."""

    @property
    def ids(self) -> tuple[Id, Id]:
        """The ids of user and video."""
        return self.user_id, self.video_id
