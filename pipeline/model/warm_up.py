"""Compile what a model calls before the first message comes."""

from __future__ import annotations

import numpy as np

from forks import LOSSES, Forks, ForksSettings
from forks.learning.event_loop import loss_values
from forks.losses import probabilities
from pipeline.features.statistics import RunningStatistics


def warm_up(settings: ForksSettings) -> None:
    """Compile what learner and statistics call, through all stages of the learner.

    This is quick where it was done before.

    Parameters
    ----------
    settings
        Settings of the learner.
    """
    rng = np.random.default_rng(0)
    events = 2 * (settings.budget + settings.cycle)
    labels = np.where(rng.random(events) < 0.5, -1.0, 1.0)
    learner = Forks(settings)
    learner.learn_many(rng.normal(size=(events, settings.dimension)), labels)
    learner.run(np.zeros((1, settings.dimension)), np.ones(1), np.arange(2))
    loss_values(np.zeros(1), np.ones(1), LOSSES[settings.loss])
    probabilities(np.zeros(1))
    warm_up_statistics()


def warm_up_statistics() -> None:
    """Compile what statistics call."""
    statistics = RunningStatistics(1)
    statistics.run(np.arange(2), [[0], [0]], np.ones(1, dtype=np.bool_), np.ones(1))
    statistics.merge_shared([])
