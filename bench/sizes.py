"""Bytes of a snapshot: the learner's part, and what each user and video adds."""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.model.model import Model
from pipeline.model.snapshot import pack

ENTITIES: Final = 20_000
"""Users, then videos, that are added to see what one adds."""


def snapshot_bytes(model: Model) -> dict[str, float]:
    """Return the bytes of a model whose learner is beyond its first stage, and those of an entity.

    Parameters
    ----------
    model
        One that has seen nothing; it is changed.
    """
    end_first_stage(model)
    without = len(pack(model))
    count_labels(model, list(range(ENTITIES)), [0] * ENTITIES)
    with_users = len(pack(model))
    count_labels(model, [0] * ENTITIES, list(range(ENTITIES)))
    with_both = len(pack(model))
    return {
        "learner": without,
        "user": round((with_users - without) / ENTITIES, 1),
        "video": round((with_both - with_users) / ENTITIES, 1),
    }


def end_first_stage(model: Model) -> None:
    """Have a model's learner learn until its sketch is beyond the first stage."""
    settings = model.learner.settings
    chance = np.random.default_rng(0)
    events = settings.budget + settings.cycle
    model.learner.learn_many(
        chance.normal(size=(events, settings.dimension)), np.where(chance.random(events) < 0.5, -1.0, 1.0)
    )


def count_labels(model: Model, users: list[int], videos: list[int]) -> None:
    """Have labels of these counted."""
    count = len(users)
    model.statistics.run(
        np.arange(count, 2 * count), [users, videos], np.ones(count, dtype=np.bool_), np.ones(count)
    )
