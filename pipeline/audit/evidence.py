"""What a partition's topics hold: the material of an audit, wherever it was read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from pipeline.letter import Letter
from pipeline.records import Source
from pipeline.state import State
from pipeline.topics import Topics

Item = TypeVar("Item")


class Buried(NamedTuple):
    """A dead letter, and what its headers say."""

    source: Source
    letter: Letter


class Stretch(NamedTuple, Generic[Item]):
    """The committed records of one topic's partition.

    Attributes
    ----------
    items
        The records in the order of their offsets.
    begin
        The first offset that retention has left.
    covered
        No record below this offset was written after the state record.
    """

    items: Iterable[Item]
    begin: int
    covered: int

    @property
    def whole(self) -> bool:
        """Whether nothing was deleted at the beginning."""
        return self.begin == 0


class Evidence(NamedTuple):
    """All of one partition.

    Attributes
    ----------
    topics
        Their names.
    state
        The state record that was committed when the audit began.
    state_offset
        Where it is.
    snapshot
        The bytes of the snapshot that it names; None if it names none.
    """

    topics: Topics
    state: State
    state_offset: int
    snapshot: bytes | None
    interactions: Stretch[Source]
    labels: Stretch[Source]
    predictions: Stretch[Source]
    outcomes: Stretch[Source]
    dead_letters: Stretch[Buried]
    requests: Stretch[Source] = Stretch((), 0, 0)
    """None where no labels are asked for."""
