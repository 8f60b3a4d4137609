"""Draw `item_categories.csv` and `item_daily_features.csv` of the invented data."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

import numpy as np
import polars as pl

from pipeline.sources.synth.world import TAGS, Floats, Integers, World

FIRST_DATE: Final = date(2020, 7, 5)
IMPRESSIONS_PER_DAY: Final = 300
"""Users who see a video of mean popularity in a day, in the whole service and not only in the sample."""
TAG_COUNT_SHARES: Final = (0.836, 0.146, 0.017, 0.001)
"""Shares of videos with one, two, three and four tags."""
UPLOADS: Final = ("ShortImport", "LongImport", "ShortCamera", "LongCamera", "Kmovie", "PictureSet")

REACTIONS: Final[dict[str, tuple[float, float]]] = {
    "complete_play": (0.40, 1.0),
    "valid_play": (0.50, 0.8),
    "long_time_play": (0.38, 1.0),
    "short_time_play": (0.25, -1.0),
    "like": (0.025, 1.2),
    "cancel_like": (0.002, 0.5),
    "comment": (0.003, 1.0),
    "delete_comment": (0.0003, 0.0),
    "comment_like": (0.005, 0.8),
    "follow": (0.004, 1.0),
    "cancel_follow": (0.0003, 0.0),
    "share": (0.002, 1.0),
    "download": (0.002, 0.8),
    "report": (0.00005, -1.0),
    "reduce_similar": (0.001, -1.5),
    "collect": (0.0006, 1.0),
    "cancel_collect": (0.0001, 0.0),
}
"""Share of a typical video's viewers with the reaction in a day, and how its logarithm grows with quality."""

COLUMNS: Final = (
    *("video_id", "date", "author_id", "video_type", "upload_dt", "upload_type", "visible_status"),
    *("video_duration", "video_width", "video_height", "music_id", "video_tag_id", "video_tag_name"),
    *("show_cnt", "show_user_num", "play_cnt", "play_user_num", "play_duration"),
    *("complete_play_cnt", "complete_play_user_num", "valid_play_cnt", "valid_play_user_num"),
    *("long_time_play_cnt", "long_time_play_user_num", "short_time_play_cnt", "short_time_play_user_num"),
    *("play_progress", "comment_stay_duration", "like_cnt", "like_user_num", "click_like_cnt"),
    *("double_click_cnt", "cancel_like_cnt", "cancel_like_user_num", "comment_cnt", "comment_user_num"),
    *("direct_comment_cnt", "reply_comment_cnt", "delete_comment_cnt", "delete_comment_user_num"),
    *("comment_like_cnt", "comment_like_user_num", "follow_cnt", "follow_user_num"),
    *("cancel_follow_cnt", "cancel_follow_user_num", "share_cnt", "share_user_num"),
    *("download_cnt", "download_user_num", "report_cnt", "report_user_num"),
    *("reduce_similar_cnt", "reduce_similar_user_num", "collect_cnt", "collect_user_num"),
    *("cancel_collect_cnt", "cancel_collect_user_num"),
)
"""The columns of KuaiRec's `item_daily_features.csv`, in its order."""


def draw_tags(world: World) -> pl.DataFrame:
    """Draw each video's list of tags, its main tag first."""
    first = world.videos.tag
    rng = world.generator(4)
    number = 1 + rng.choice(len(TAG_COUNT_SHARES), size=len(first), p=TAG_COUNT_SHARES)
    steps = np.argsort(rng.random((len(first), TAGS - 1)), axis=1)[:, : len(TAG_COUNT_SHARES) - 1] + 1
    tags = np.column_stack([first, (first[:, None] + steps) % TAGS])
    feat = [str(row[:n].tolist()) for row, n in zip(tags, number, strict=True)]
    return pl.DataFrame({"video_id": np.arange(len(first)), "feat": feat})


def draw_daily_features(world: World) -> pl.DataFrame:
    """Draw each video's figures for each day, by video and then by day."""
    size = world.size
    rng = world.generator(5)
    video = np.repeat(np.arange(size.videos), size.days)
    day = np.tile(np.arange(size.days), size.videos)
    columns = _fixed_columns(world, rng).select(pl.all().gather(video)).to_dict(as_series=True)
    dates = [(FIRST_DATE + timedelta(days=d)).strftime("%Y%m%d") for d in range(size.days)]
    columns["date"] = pl.Series(dates).cast(pl.Int64)[day]
    counts = _counts(world, video, day, rng)
    return pl.DataFrame({**columns, **counts}).select(COLUMNS)


def _fixed_columns(world: World, rng: np.random.Generator) -> pl.DataFrame:
    """Draw the columns that are the same on all days of a video."""
    videos = world.videos
    count = world.size.videos
    upright = rng.random(count) < 0.85
    age = rng.integers(1, 120, count)
    return pl.DataFrame(
        {
            "video_id": np.arange(count),
            "author_id": rng.integers(0, 1 + count * 3 // 4, count),
            "video_type": np.where(rng.random(count) < 0.98, "NORMAL", "AD"),
            "upload_dt": [str(FIRST_DATE - timedelta(days=days)) for days in age.tolist()],
            "upload_type": np.array(UPLOADS)[rng.integers(0, len(UPLOADS), count)],
            "visible_status": np.full(count, "public"),
            "video_duration": videos.duration.astype(np.float64),
            "video_width": np.where(upright, 720, 1280),
            "video_height": np.where(upright, 1280, 720),
            "music_id": rng.integers(10**8, 10**10, count),
            "video_tag_id": videos.tag,
            "video_tag_name": [f"tag {tag}" for tag in videos.tag.tolist()],
        }
    )


def _counts(
    world: World, video: Integers, day: Integers, rng: np.random.Generator
) -> dict[str, Integers | Floats]:
    """Draw the counts of reactions to each video on each day."""
    videos = world.videos
    quality = videos.quality[day, video]
    impressions = rng.poisson(IMPRESSIONS_PER_DAY * len(videos.duration) * videos.popularity[day, video])
    viewers = rng.binomial(impressions, 0.65)
    plays = viewers + rng.poisson(0.3 * viewers)
    progress = (0.55 + 0.22 * quality + rng.normal(0.0, 0.03, len(video))).clip(0.02, 0.98)
    counts: dict[str, Integers | Floats] = {
        "show_cnt": impressions + rng.poisson(0.25 * impressions),
        "show_user_num": impressions,
        "play_cnt": plays,
        "play_user_num": viewers,
        "play_duration": np.rint(plays * videos.duration[video] * 1.2 * progress).astype(np.int64),
        "play_progress": np.where(plays > 0, progress, 0.0),
        "comment_stay_duration": np.rint(600.0 * viewers * rng.lognormal(0.0, 0.5, len(video))).astype(
            np.int64
        ),
    }
    for name, (share, growth) in REACTIONS.items():
        who = rng.binomial(viewers, (share * np.exp(growth * quality)).clip(max=0.95))
        counts[f"{name}_user_num"] = who
        counts[f"{name}_cnt"] = who + rng.poisson(0.1 * who)
    counts["click_like_cnt"] = rng.binomial(counts["like_cnt"].astype(np.int64), 0.55)
    counts["double_click_cnt"] = counts["like_cnt"] - counts["click_like_cnt"]
    counts["direct_comment_cnt"] = rng.binomial(counts["comment_cnt"].astype(np.int64), 0.7)
    counts["reply_comment_cnt"] = counts["comment_cnt"] - counts["direct_comment_cnt"]
    return counts
