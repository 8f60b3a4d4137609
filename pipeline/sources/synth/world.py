"""The latent users and videos behind the invented data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.sources.synth.size import Size

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TASTE_DIMENSIONS: Final = 6
"""Dimensions of the space of tastes and appeals."""
TAGS: Final = 31
"""Number of tags: 0 to 30, as in KuaiRec."""

# Standard deviations of the parts of a play's log watch ratio. With the noise of `plays` beside them, the
# running means of user and video predict about as well as on KuaiRec (see the package's tests).
USER_SPREAD: Final = 0.48
QUALITY_SPREAD: Final = 0.34
QUALITY_DRIFT: Final = 0.06
"""Standard deviation of a day's step of a video's quality."""
POPULARITY_DRIFT: Final = 0.15
"""The same of the logarithm of its popularity."""
TASTE_SPREAD: Final = 0.30
TASTE_ROTATION: Final = 0.05
"""Standard deviation of the angle by which a user's taste rotates in a day, in radians."""


@dataclass(frozen=True)
class Users:
    """Latent users.

    Attributes
    ----------
    activity
        Share of all sessions, shape (users,).
    bias
        Each user's addition to the log watch ratio of all plays, shape (users,).
    taste, next_taste
        Orthogonal axes of the plane in which a user's taste rotates, shape (users, TASTE_DIMENSIONS), rows of
        length 1.
    rotation
        Angle of the rotation in a day, in radians, shape (users,).
    """

    activity: Floats
    bias: Floats
    taste: Floats
    next_taste: Floats
    rotation: Floats

    @classmethod
    def draw(cls, count: int, drift: float, rng: np.random.Generator) -> Users:
        """Draw `count` users, whose tastes rotate `drift` times as fast as by default."""
        activity = rng.lognormal(0.0, 0.8, count)
        axes = np.linalg.qr(rng.normal(size=(count, TASTE_DIMENSIONS, 2))).Q
        return cls(
            activity=activity / activity.sum(),
            bias=rng.normal(0.0, USER_SPREAD, count),
            taste=axes[:, :, 0],
            next_taste=axes[:, :, 1],
            rotation=rng.normal(0.0, drift * TASTE_ROTATION, count),
        )


@dataclass(frozen=True)
class Videos:
    """Latent videos.

    Attributes
    ----------
    popularity
        Share of all plays on each day, shape (days, videos): Zipf's law, flattened at its head because no
        service shows the same few videos all the time, with a random walk from day to day.
    quality
        Each video's addition to the log watch ratio on each day, shape (days, videos).
    appeal
        The tastes that a video appeals to, shape (videos, TASTE_DIMENSIONS).
    duration
        Duration in whole milliseconds, shape (videos,), int64.
    tag
        The main tag, shape (videos,), int64.
    """

    popularity: Floats
    quality: Floats
    appeal: Floats
    duration: Integers
    tag: Integers

    @classmethod
    def draw(cls, count: int, days: int, drift: float, rng: np.random.Generator) -> Videos:
        """Draw `count` videos, and their popularity and quality over `days` days, which drift."""
        rank = rng.permutation(count)
        popularity_walk = np.cumsum(rng.normal(0.0, drift * POPULARITY_DRIFT, (days, count)), axis=0)
        popularity = np.exp(popularity_walk) / (rank + 1 + 0.02 * count)
        quality_walk = np.cumsum(rng.normal(0.0, drift * QUALITY_DRIFT, (days, count)), axis=0)
        tag = rng.choice(TAGS, size=count, p=zipf(TAGS, 0.8))
        of_tag = rng.normal(size=(TAGS, TASTE_DIMENSIONS))
        appeal = 0.8 * of_tag[tag] + 0.6 * rng.normal(size=(count, TASTE_DIMENSIONS))
        long = rng.random(count) < 0.12
        seconds = np.where(long, rng.lognormal(4.3, 0.7, count), rng.lognormal(2.2, 0.3, count))
        return cls(
            popularity=popularity / popularity.sum(axis=1, keepdims=True),
            quality=rng.normal(0.0, QUALITY_SPREAD, count) + quality_walk - 0.5 * long,
            appeal=appeal,
            duration=np.rint(1000 * seconds.clip(3.0, 600.0)).astype(np.int64),
            tag=tag,
        )


class World:
    """The users and videos of one seed."""

    def __init__(self, size: Size) -> None:
        self.size = size

    def generator(self, part: int) -> np.random.Generator:
        """Return the random numbers of one part, so that no part depends on how much another one draws.

        Parameters
        ----------
        part
            Number of the part.

        Returns
        -------
        numpy.random.Generator
            A new generator, the same for each call with the same part.
        """
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.size.seed, part])))

    @cached_property
    def users(self) -> Users:
        """The users."""
        return Users.draw(self.size.users, self.size.drift, self.generator(0))

    @cached_property
    def videos(self) -> Videos:
        """The videos."""
        return Videos.draw(self.size.videos, self.size.days, self.size.drift, self.generator(1))

    def attraction(self, user: Integers, video: Integers, day: Integers) -> Floats:
        """Return the mean log watch ratio of plays, apart from a constant.

        Parameters
        ----------
        user, video, day
            Numbers of the user, video and day of each play, shape (n,), int64.

        Returns
        -------
        ndarray
            Means, shape (n,), float64.
        """
        users, videos = self.users, self.videos
        angle = (users.rotation[user] * day)[:, None]
        taste = np.cos(angle) * users.taste[user] + np.sin(angle) * users.next_taste[user]
        fit = np.einsum("nd,nd->n", taste, videos.appeal[video])
        attraction: Floats = users.bias[user] + videos.quality[day, video] + TASTE_SPREAD * fit
        return attraction


def zipf(count: int, exponent: float) -> Floats:
    """Return probabilities in proportion to rank ** -exponent, shape (count,), float64."""
    weights = np.arange(1, count + 1) ** -exponent
    probabilities: Floats = weights / weights.sum()
    return probabilities
