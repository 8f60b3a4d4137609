"""Small data for experiments, made up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from research.harness.labelled import Labelled


def noise(events: int) -> Labelled:
    chance = np.random.default_rng(0)
    return Labelled(chance.normal(size=(events, 3)), chance.choice([-1.0, 1.0], events))


@dataclass(frozen=True)
class Invented:
    """A source whose rows say their number, with two labels in three negative."""

    name: str = "invented"
    fingerprint: str = "0"
    events: int = 600

    def read(self) -> Labelled:
        numbers = np.arange(self.events)
        return Labelled(numbers[:, None] / 1.0, np.where(numbers % 3 == 0, 1.0, -1.0))
