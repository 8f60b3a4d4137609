"""Draw `user_features.csv` of the invented data, in the columns of KuaiRec's file."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.sources.synth.world import Floats, Integers, Users, World, zipf

Texts = NDArray[np.str_]

RANGES: Final[dict[str, tuple[tuple[int, ...], tuple[str, ...]]]] = {
    "follow_user_num": (
        (1, 11, 51, 101, 151, 251, 501),
        ("0", "(0,10]", "(10,50]", "(50,100]", "(100,150]", "(150,250]", "(250,500]", "500+"),
    ),
    "fans_user_num": (
        (1, 10, 100, 1_000, 5_000),
        ("0", "[1,10)", "[10,100)", "[100,1k)", "[1k,5k)", "[5k,1w)"),
    ),
    "friend_user_num": (
        (1, 5, 30, 60, 120, 250),
        ("0", "[1,5)", "[5,30)", "[30,60)", "[60,120)", "[120,250)", "250+"),
    ),
    "register_days": (
        (31, 61, 91, 181, 366, 731),
        ("15-30", "31-60", "61-90", "91-180", "181-365", "366-730", "730+"),
    ),
}
"""Least values of the second and each further range, and the names of the ranges."""

CATEGORIES: Final = (2, 8, 30, 1_000, 13, 10, 3, 47, 340, 7, 5, 3, 2, 2, 2, 2, 2, 2)
"""Number of values of onehot_feat0, onehot_feat1 and so on."""
TASTE_FIELDS: Final = {0: 0, 1: 1, 9: 2}
"""Encrypted fields that depend on a user's taste, and the dimension of the taste."""
MISSING_SHARES: Final = {4: 0.028, **dict.fromkeys(range(12, 18), 0.01)}
"""Shares of missing values, by field."""


def draw_user_features(world: World) -> pl.DataFrame:
    """Draw the features of each user, in the columns of KuaiRec's file."""
    users = world.users
    count = world.size.users
    rng = world.generator(3)
    columns: dict[str, Integers | Texts | pl.Series] = {
        "user_id": np.arange(count),
        "user_active_degree": _active_degree(users, rng),
        "is_lowactive_period": _flag(0.002, count, rng),
        "is_live_streamer": _flag(0.007, count, rng),
        "is_video_author": _flag(0.17, count, rng),
    }
    for name, values in _numbers(users, rng).items():
        edges, labels = RANGES[name]
        columns[name] = values
        columns[f"{name}_range"] = np.array(labels)[np.searchsorted(edges, values, side="right")]
    for field, cardinality in enumerate(CATEGORIES):
        drawn = pl.Series(_category(field, cardinality, users, rng))
        known = pl.Series(rng.random(count) >= MISSING_SHARES.get(field, 0.0))
        columns[f"onehot_feat{field}"] = drawn.set(~known, None)
    return pl.DataFrame(columns)


def _active_degree(users: Users, rng: np.random.Generator) -> Texts:
    """Draw the degree of activity: the most active users are `full_active`, a few are `UNKNOWN`."""
    rank = np.argsort(np.argsort(users.activity)) / len(users.activity)
    degree = np.select([rank < 0.01, rank < 0.14], ["middle_active", "high_active"], "full_active")
    return np.where(rng.random(len(degree)) < 0.016, "UNKNOWN", degree)


def _flag(share: float, count: int, rng: np.random.Generator) -> Integers:
    return (rng.random(count) < share).astype(np.int64)


def _numbers(users: Users, rng: np.random.Generator) -> dict[str, Integers]:
    """Draw follows, fans, friends and days since registration; users with a higher bias follow more."""
    count = len(users.bias)
    followed = np.floor(rng.lognormal(3.4 + 0.8 * users.bias, 1.5))
    fans = np.floor(rng.lognormal(0.8, 1.5, count))
    friends = np.floor(np.minimum(followed, fans) * rng.beta(0.6, 1.4, count))
    registered = 15 + np.floor(rng.lognormal(5.2, 0.9, count))
    numbers = {
        "follow_user_num": followed,
        "fans_user_num": fans,
        "friend_user_num": friends,
        "register_days": registered,
    }
    return {name: values.astype(np.int64) for name, values in numbers.items()}


def _category(field: int, cardinality: int, users: Users, rng: np.random.Generator) -> Integers:
    """Draw each user's value: from the taste plus noise for `TASTE_FIELDS`, else by Zipf's law."""
    count = len(users.bias)
    if field in TASTE_FIELDS:
        return _quantile_of(users.taste[:, TASTE_FIELDS[field]] + rng.normal(0.0, 0.15, count), cardinality)
    return rng.choice(cardinality, size=count, p=zipf(cardinality, 1.0)).astype(np.int64)


def _quantile_of(value: Floats, parts: int) -> Integers:
    """Return the number of the quantile of each value, 0 to parts - 1."""
    rank: Integers = np.argsort(np.argsort(value)) * parts // len(value)
    return rank
