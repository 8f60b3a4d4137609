"""Draw the interactions of the invented data: who watched what, when, and how much of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from pipeline.sources.synth.world import Floats, Integers, World

FIRST_DAY: Final = 1_593_878_400_000
"""Midnight of 2020-07-05 in China, KuaiRec's first day, in milliseconds since 1970, UTC."""
CHINA: Final = 8 * 3_600_000
DAY: Final = 86_400_000

SESSION_LENGTH: Final = 14
"""Mean number of plays in a row."""
MEAN_PAUSE: Final = 2_500
"""Mean milliseconds between the end of a play and the start of the next."""
MISSING_TIME_SHARE: Final = 0.038
"""Share of rows without time, date and timestamp, as in KuaiRec's small matrix."""
BASE_LOG_RATIO: Final = -0.12
"""Log watch ratio of a play without attraction, apart from skips and loops."""
NOISE: Final = 0.42
INTEREST_AFTER_END: Final = 0.6
"""Factor of the interest (in log watch ratio) above 0, once a video has been seen to its end."""

DAILY_RHYTHM: Final = (
    9,
    5,
    3,
    2,
    2,
    3,
    6,
    10,
    12,
    12,
    13,
    15,
    20,
    18,
    14,
    13,
    13,
    15,
    19,
    23,
    26,
    28,
    25,
    17,
)
"""Sessions begun in each hour of the day, as weights."""


def draw_plays(world: World) -> pl.DataFrame:
    """Invent the interactions, in KuaiRec's columns, by user and then by time."""
    size = world.size
    rng = world.generator(2)
    session = _sessions(size.events, rng)
    sessions = int(session[-1]) + 1
    user = rng.choice(size.users, size=sessions, p=world.users.activity)[session]
    day = np.sort(rng.integers(0, size.days, sessions))
    start = FIRST_DAY + DAY * day + _time_of_day(sessions, rng)
    video = _choose_videos(world.videos.popularity, day[session], rng)
    ratio = _watch_ratio(BASE_LOG_RATIO + world.attraction(user, video, day[session]), rng)
    video_duration = world.videos.duration[video]
    play_duration = np.rint(ratio * video_duration).astype(np.int64)
    plays = pl.DataFrame(
        {
            "user_id": user,
            "video_id": video,
            "play_duration": play_duration,
            "video_duration": video_duration,
            "timestamp": _start_times(session, start, play_duration + _pauses(size.events, rng)),
            "without_time": rng.random(size.events) < MISSING_TIME_SHARE,
        }
    )
    return _in_columns(plays)


def _sessions(events: int, rng: np.random.Generator) -> Integers:
    """Draw the number of each play's session, ascending from 0, shape (events,), int64."""
    begins = rng.random(events) < 1 / SESSION_LENGTH
    begins[0] = False
    return np.cumsum(begins, dtype=np.int64)


def _time_of_day(count: int, rng: np.random.Generator) -> Integers:
    """Draw milliseconds since midnight by the daily rhythm, shape (count,), int64."""
    cumulated = np.concatenate([[0.0], np.cumsum(DAILY_RHYTHM)])
    hours = np.interp(rng.random(count) * cumulated[-1], cumulated, np.arange(25.0))
    milliseconds: Integers = np.floor(hours * 3_600_000).astype(np.int64)
    return milliseconds


def _choose_videos(popularity: Floats, day: Integers, rng: np.random.Generator) -> Integers:
    """Draw a video for each play from its day's popularity; `day` is ascending."""
    edges = np.searchsorted(day, np.arange(len(popularity) + 1))
    chance = rng.random(len(day))
    cumulated = np.cumsum(popularity, axis=1)
    cumulated[:, -1] = 1.0  # a sum that rounding leaves below 1 must not give a video beyond the last
    video = np.empty(len(day), dtype=np.int64)
    for of_day, (begin, end) in zip(cumulated, pairwise(edges), strict=True):
        video[begin:end] = np.searchsorted(of_day, chance[begin:end], side="right")
    return video


def _watch_ratio(attraction: Floats, rng: np.random.Generator) -> Floats:
    """Draw the watch ratios, given the attraction: some users skip at once, a few let a video loop."""
    count = len(attraction)
    kind = rng.random(count)
    skips = np.where(kind < 0.13, rng.exponential(1.2, count), 0.0)
    loops = np.where(kind > 0.97, rng.exponential(0.75, count), 0.0)
    interest = attraction + rng.normal(0.0, NOISE, count) - skips
    once = np.where(interest > 0, INTEREST_AFTER_END * interest, interest)
    ratio: Floats = np.exp((once + loops).clip(max=5.0))
    return ratio


def _pauses(count: int, rng: np.random.Generator) -> Integers:
    return np.rint(rng.exponential(MEAN_PAUSE, count)).astype(np.int64)


def _start_times(session: Integers, start: Integers, length: Integers) -> Integers:
    """Return the start time of each play, the end of the one before it in its session, shape (events,)."""
    begun = np.cumsum(length) - length
    first = np.searchsorted(session, np.arange(len(start)))
    times: Integers = start[session] + begun - begun[first][session]
    return times


def _in_columns(plays: pl.DataFrame) -> pl.DataFrame:
    """Convert the plays to KuaiRec's columns and order; the time of those without one is null."""
    local = pl.from_epoch(pl.col("timestamp") + CHINA, time_unit="ms")
    known = ~pl.col("without_time")
    return plays.sort("user_id", "timestamp", maintain_order=True).select(
        "user_id",
        "video_id",
        "play_duration",
        "video_duration",
        pl.when(known).then(local.dt.strftime("%Y-%m-%d %H:%M:%S%.3f")).alias("time"),
        pl.when(known).then(local.dt.strftime("%Y%m%d").cast(pl.Float64)).alias("date"),
        pl.when(known).then(pl.col("timestamp") / 1000).alias("timestamp"),
        (pl.col("play_duration") / pl.col("video_duration")).alias("watch_ratio"),
    )
