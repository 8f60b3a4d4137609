"""A policy that may ask for labels: as the workers are told of it, and as the checker makes it."""

from __future__ import annotations

from typing import Final

from pipeline.config.settings import Labels
from pipeline.model.label_policy import LabelPolicy

RATE: Final = 0.4
SETTINGS: Final = {"FORKS_LABELS__POLICY": "adaptive", "FORKS_LABELS__RATE": str(RATE)}


def policy() -> LabelPolicy:
    """The same one."""
    return LabelPolicy(Labels(policy="adaptive", rate=RATE))
