"""Records of KuaiRec's input topics, as this project's own sources send them."""

from __future__ import annotations

from pipeline.records.fields import Duration, WatchRatio
from pipeline.records.inputs import Interaction, Label


class KuaiRecInteraction(Interaction, frozen=True, gc=False):
    """A video is presented to a user."""

    video_duration: Duration


class WatchLabel(Label, frozen=True, gc=False):
    """How much of the video the user watched; `timestamp` is when that became known."""

    play_duration: Duration
    watch_ratio: WatchRatio
