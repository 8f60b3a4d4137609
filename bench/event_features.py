"""Features of an event itself, which need no label: KuaiRand's times and lengths of videos are real."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import polars as pl

from forks.arrays import FloatArray
from pipeline.features.tags import TagLists

SESSION: Final = 30 * 60_000
"""Milliseconds without an event of the user after which a session ends."""
DAY: Final = 86_400_000
ZONE: Final = 8 * 3_600_000
"""Milliseconds from UTC to the time of day in China."""


def of_event(frame: pl.DataFrame) -> dict[str, FloatArray]:
    """Return columns that are known when an event comes, without any label, (n, some) each, by name."""
    times, users = frame["time_ms"].to_numpy(), frame["user_id"].to_list()
    angle = 2.0 * math.pi * ((times + ZONE) % DAY) / DAY
    since, position = sessions(users, times.tolist())
    length = frame["duration_ms"].to_numpy().astype(np.float64)
    return {
        "hour of the day": np.column_stack([np.sin(angle), np.cos(angle)]),
        "time since the user's last event": since,
        "position in the session": position,
        "length of the video": np.column_stack([np.log(np.maximum(length, 1000.0)), length == 0.0]),
    }


def sessions(users: list[int], times: list[int]) -> tuple[FloatArray, FloatArray]:
    """Return the log of seconds since the user's last event, and of its place in the session, (n, 1) each.

    Examples
    --------
    >>> since, position = sessions([1, 2, 1, 1], [0, 5, 7_000, 9_000_000])
    >>> np.exp(since[:, 0]).round().tolist(), np.exp(position[:, 0]).round().tolist()
    ([86401.0, 86401.0, 8.0, 8994.0], [1.0, 1.0, 2.0, 1.0])
    """
    last: dict[int, tuple[int, int]] = {}
    since, position = np.empty((len(users), 1)), np.empty((len(users), 1))
    for number, (user, time) in enumerate(zip(users, times, strict=True)):
        before, place = last.get(user, (time - DAY, 0))
        place = place + 1 if time - before < SESSION else 1
        last[user] = time, place
        since[number], position[number] = math.log1p((time - before) / 1000.0), math.log(place)
    return since, position


def by_length(frame: pl.DataFrame) -> TagLists:
    """Return one tag for each video: the power of two of its length, or that it is unknown."""
    lengths = dict(frame.select("video_id", "duration_ms").rows())
    return TagLists({video: [int(length / 1000).bit_length()] for video, length in lengths.items()})
