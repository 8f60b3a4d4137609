"""A stream of KuaiRec's shape, made up: wide blocks of users and videos, and a few columns that vary."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forks import EntityTables, Forks, ForksSettings
from forks.arrays import FloatArray, IntArray

USERS, VIDEOS = 7000, 10_000
VARYING = 6


class Workload(NamedTuple):
    """Events and the tables that they refer to.

    Parameters
    ----------
    users : (users, columns) float64
    videos : (videos, columns) float64
    numbers : (n, 2) int64, each event's user and video
    varying : (n, 6) float64
    y : (n,) float64, -1 or 1
    """

    users: FloatArray
    videos: FloatArray
    numbers: IntArray
    varying: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, columns: int, events: int, users: int = USERS) -> Workload:
        """Return events of so many columns in all, one part in seven of the entities' the video's."""
        chance = np.random.default_rng(0)
        video_columns = (columns - VARYING) // 7
        user_table = chance.normal(size=(users, columns - VARYING - video_columns))
        video_table = chance.normal(size=(VIDEOS, video_columns))
        numbers = np.column_stack([chance.integers(0, users, events), chance.integers(0, VIDEOS, events)])
        varying = chance.normal(size=(events, VARYING))
        signal = user_table[numbers[:, 0], 0] * varying[:, 0] + chance.normal(size=events)
        return cls(user_table, video_table, numbers, varying, np.where(signal > 0, 1.0, -1.0))

    def rows(self, count: int) -> FloatArray:
        """Return the first events as whole rows, (count, columns)."""
        user, video = self.numbers[:count].T
        return np.hstack([self.users[user], self.videos[video], self.varying[:count]])

    def settings(self, **changes: Any) -> ForksSettings:
        """Return the paper's settings, with the entities' blocks, a map that stays, and ``changes``."""
        users = self.users.shape[1]
        entities = users + self.videos.shape[1]
        columns = entities + VARYING
        defaults: dict[str, Any] = {
            "width": float(np.sqrt(columns)),
            "cycle": 10**9,
            "entity_blocks": ((0, users), (users, entities)),
        }
        return ForksSettings.paper(columns, **(defaults | changes))

    def tables(self, settings: ForksSettings, max_entities: int = 100_000) -> EntityTables:
        """Return the entities' tables for a learner."""
        return EntityTables(settings, [self.users, self.videos], max_entities=max_entities)

    def learner(self, settings: ForksSettings) -> Forks:
        """Return a learner that has just made its first map."""
        learner = Forks(settings)
        count = 2 * settings.budget
        learner.learn_many(self.rows(count), self.y[:count])
        if learner.state()["stage"] != 2:
            raise RuntimeError(f"{count} events did not fill a budget of {settings.budget}")
        return learner
