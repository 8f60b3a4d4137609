"""How much data to invent, and how fast the invented world changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

InventedStream: TypeAlias = Literal["kuairec", "deliveries"]
"""The streams that can be invented."""


@dataclass(frozen=True)
class Size:
    """How much data to invent, from which seed, and how fast its world changes.

    Attributes
    ----------
    events, users, videos, days
        Rows of the interactions, and numbers of users, videos and days.
    seed
        Seed of all random numbers.
    drift
        How many times as far as by default the tastes of users, and the quality and popularity of videos,
        move in a day.
    """

    events: int = 50_000
    users: int = 500
    videos: int = 2_000
    days: int = 7
    seed: int = 1
    drift: float = 1.0
