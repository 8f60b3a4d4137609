"""A consumer of inputs that are already there, which delivers them in pieces."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from hypothesis import strategies as st

from pipeline.task.record_queue import RecordQueue
from pipeline.task.task import Task
from tests.support.builders import ALL, Inputs
from tests.support.entries import Entry, queued


class Step(NamedTuple):
    """What happens between two batches."""

    interactions: int
    """Messages delivered."""
    labels: int
    end_seen: bool
    """Whether the news of an input's end come with its last messages, or only later."""
    limit: int
    """Most messages in the batch."""


steps = st.builds(
    Step,
    interactions=st.integers(0, 12),
    labels=st.integers(0, 12),
    end_seen=st.booleans(),
    limit=st.sampled_from([1, 2, 5, ALL]),
)
REST = Step(ALL, ALL, True, ALL)
"""All that there still is."""


class Delivery:
    """Feeds a task step by step. It never calls an input ended while more of it is to come."""

    def __init__(self, task: Task, given: Inputs) -> None:
        self._inputs: list[tuple[RecordQueue, deque[Entry]]] = [
            (task.interactions, deque(given.interactions)),
            (task.labels, deque(given.labels)),
        ]

    def deliver(self, step: Step) -> None:
        """Feed what the step says."""
        for (queue, left), count in zip(self._inputs, (step.interactions, step.labels), strict=True):
            piece = [left.popleft() for _ in range(min(count, len(left)))]
            if piece:
                queue.feed(queued(piece))
            if not left and step.end_seen:
                queue.at_end = True
