"""Invent deliveries: how long couriers need from a restaurant to a customer.

The minutes of an order are those that the restaurant cooks, which are more at its busy hours and with more
dishes, and those of the way, which depend on the distance, the courier's pace and rain. Paces and kitchens
drift from day to day. A tenth of the noise is a rare long delay.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from pipeline.sources.synth.size import Size

FIRST_DAY: Final = 1_772_323_200_000
"""Midnight of 2026-03-01, UTC, in milliseconds since 1970."""
DAY: Final = 86_400_000
HOUR: Final = 3_600_000
RHYTHM: Final = (1, 0, 0, 0, 0, 0, 1, 2, 3, 3, 5, 12, 18, 14, 7, 5, 6, 11, 19, 21, 16, 9, 5, 2)
"""Orders of each hour of the day, as weights."""
COOKING: Final = 11.0
"""Minutes that a usual restaurant cooks."""
PACE: Final = 4.2
"""Minutes that a usual courier needs for a kilometre."""
MEAN_DISTANCE: Final = 2.4
RAIN_SHARE: Final = 0.2
"""Share of hours in which it rains."""
RAIN_FACTOR: Final = 1.3
"""How much longer the way takes in rain."""
DAILY_DRIFT: Final = 0.03
"""Standard deviation by which the log of a pace or of a cooking time moves in a day."""
NOISE: Final = 0.15
"""Standard deviation of the log of the minutes."""
LATE_SHARE: Final = 0.03
"""Share of orders that are late by chance, by 15 minutes in the mean."""


def draw_deliveries(size: Size) -> pl.DataFrame:
    """Return the orders with their arrivals, in the order of time.

    Parameters
    ----------
    size
        How much to invent: `users` are couriers, and `videos` restaurants.

    Returns
    -------
    DataFrame
        One row for each order, with the fields of ``pipeline/config/streams/deliveries.toml``.
    """
    rng = np.random.default_rng([size.seed, 0xDE1])
    n = size.events
    days = rng.integers(0, size.days, n)
    hours = rng.choice(24, n, p=np.array(RHYTHM) / sum(RHYTHM))
    times = np.sort(FIRST_DAY + DAY * days + HOUR * hours + rng.integers(0, HOUR, n))
    days, hours = (times - FIRST_DAY) // DAY, (times - FIRST_DAY) // HOUR % 24
    couriers, restaurants = rng.integers(0, size.users, n), _popular(size.videos, n, rng)
    distance = np.round(rng.gamma(2.0, MEAN_DISTANCE / 2.0, n) + 0.2, 2)
    dishes = 1 + rng.poisson(1.6, n)
    rain = (rng.random(size.days * 24) < RAIN_SHARE)[days * 24 + hours]
    pace = PACE * np.exp(_drifting(size.users, 0.25, size, rng))[days, couriers]
    kitchen = COOKING * np.exp(_drifting(size.videos, 0.35, size, rng))[days, restaurants]
    busy = 1.0 + 0.4 * np.array(RHYTHM)[hours] / max(RHYTHM)
    way = distance * pace * np.where(rain, RAIN_FACTOR, 1.0)
    minutes = (kitchen * busy * dishes**0.3 + way) * np.exp(rng.normal(0.0, NOISE, n))
    minutes += np.where(rng.random(n) < LATE_SHARE, rng.exponential(15.0, n), 0.0)
    minutes = np.round(minutes, 1)
    arrived = times + np.rint(minutes * 60_000).astype(np.int64)
    return pl.DataFrame(
        {
            "order": [f"o{number}" for number in range(n)],
            "courier": [f"c{number}" for number in couriers],
            "restaurant": [f"r{number}" for number in restaurants],
            "ordered_at": _text(times),
            "distance_km": distance,
            "dishes": dishes,
            "rain": rain,
            "arrived_at": _text(arrived),
            "minutes": minutes,
        }
    )


def _popular(count: int, n: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Draw which of so many restaurants each order is from: a few have many."""
    weights = 1.0 / np.arange(1, count + 1) ** 0.7
    return rng.choice(count, n, p=weights / weights.sum())


def _drifting(
    count: int, spread: float, size: Size, rng: np.random.Generator
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Draw what each of so many has on each day: a start, and small steps; shape (days, count)."""
    steps = rng.normal(0.0, size.drift * DAILY_DRIFT, (size.days, count))
    steps[0] = rng.normal(0.0, spread, count)
    return np.cumsum(steps, axis=0)


def _text(times: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pl.Series:
    return pl.Series(times).cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
