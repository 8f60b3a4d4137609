"""Which messages of an input the outputs say they came of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pipeline.records import Id, Interaction, Outcome, Prediction, WatchLabel

Key: TypeAlias = tuple[Id, Id, int, float | None]
"""User, video, time and, of a label, the watch ratio."""


class Claims:
    """What outputs claim, until it is found in the input.

    Examples
    --------
    >>> claims = Claims()
    >>> shown = Interaction(1, 7, 3, 1_000, 9_000.0)
    >>> claims.add(1, key_of(shown), offset=5)
    >>> claims.take(1, key_of(shown)), claims.take(1, key_of(shown)), claims.knows(1)
    (True, False, True)
    """

    def __init__(self) -> None:
        self._open: dict[Id, list[tuple[Key, int]]] = {}

    def add(self, event_id: Id, key: Key, offset: int) -> None:
        """Note what the output at an offset claims."""
        self._open.setdefault(event_id, []).append((key, offset))

    def take(self, event_id: Id, key: Key) -> bool:
        """Whether an output claims this message; each claim holds once."""
        claimed = self._open.get(event_id, [])
        for number, (other, _) in enumerate(claimed):
            if other == key:
                del claimed[number]
                return True
        return False

    def knows(self, event_id: Id) -> bool:
        """Whether any output was about this event."""
        return event_id in self._open

    def left(self) -> Iterator[tuple[Id, int]]:
        """Event and offset of the outputs whose message was not found."""
        for event_id, claimed in self._open.items():
            for _, offset in claimed:
                yield event_id, offset


def key_of(record: Interaction | WatchLabel | Prediction) -> Key:
    """By what a message, or the prediction of one, is known."""
    ratio = record.watch_ratio if isinstance(record, WatchLabel) else None
    return record.user_id, record.video_id, record.timestamp, ratio


def label_key(outcome: Outcome) -> Key:
    """By what the label of a labelled outcome is known."""
    return outcome.user_id, outcome.video_id, outcome.label_timestamp or 0, outcome.watch_ratio
