"""The kinds of records that `forks inspect` can show."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.config.topics import Topics


class Kind(StrEnum):
    """Kind of a record that workers read or write."""

    INTERACTIONS = "interactions"
    LABELS = "labels"
    PREDICTIONS = "predictions"
    OUTCOMES = "outcomes"
    DEAD_LETTERS = "dead-letters"
    CHECKPOINTS = "checkpoints"
    LABEL_REQUESTS = "label-requests"
    SHARED = "shared"

    def topic(self, topics: Topics) -> str:
        """Return the topic that holds these records."""
        name: str = getattr(topics, self.name.lower())
        return name
