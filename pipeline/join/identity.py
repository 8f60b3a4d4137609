"""What the join finds a prediction by: its event's id, and in a slate the ids of the item too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Protocol, TypeAlias

from pipeline.records.fields import Id


class Identified(Protocol):
    """What has an event and ids: an item of an interaction, a label, a prediction, an outcome."""

    @property
    def event_id(self) -> Id:
        """The event's id."""

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the stream's entities."""


Identity: TypeAlias = Id | tuple[Id, ...]
"""The event's id, or that and the ids of an item."""
Identify: TypeAlias = Callable[[Identified], Identity]
"""Returns what the join finds something by."""


def identify_by(item_entities: Sequence[int]) -> Identify:
    """Return what identifies the events of a stream, or the items of its slates.

    Parameters
    ----------
    item_entities
        The numbers of the entities that each item of a slate names; empty where an event is one item.

    Examples
    --------
    >>> from pipeline.records.kuairec import WatchLabel
    >>> label = WatchLabel("e", 7, "v", 5, play_duration=1.0, watch_ratio=0.5)
    >>> identify_by([])(label), identify_by([1])(label)
    ('e', ('e', 'v'))
    """
    if not item_entities:
        return attrgetter("event_id")
    return lambda each: (each.event_id, *(each.ids[number] for number in item_entities))
