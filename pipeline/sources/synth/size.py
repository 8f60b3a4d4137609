"""How much data to invent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """How much data to invent, and from which seed.

    Attributes
    ----------
    events, users, videos, days
        Rows of the interactions, and numbers of users, videos and days.
    seed
        Seed of all random numbers.
    """

    events: int = 50_000
    users: int = 500
    videos: int = 2_000
    days: int = 7
    seed: int = 1
