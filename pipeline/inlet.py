"""One input of one partition: what has been read and not yet processed, in the order of offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from pipeline.records import Entry, Interaction, Poison, WatchLabel

FIRST = -1
"""Merge time of a message that cannot be used: it goes before everything that has a timestamp."""


class Position(msgspec.Struct):
    """How far an input has been processed. Part of the state record."""

    offset: int
    """The next message to process."""
    clock: int | None = None
    """Timestamp of the last message accepted, in milliseconds."""
    ahead: int | None = None
    """Timestamp of the last message, if it was refused for jumping too far ahead."""


class Inlet:
    """A queue of decoded messages that knows whether more may come.

    A timestamp more than `max_jump` beyond the one accepted before it is refused once, lest a single
    wrong clock push stream time ahead and let everything expire. If the next message confirms it (the
    stream was silent that long), time goes on from there.
    """

    def __init__(self, position: Position, max_jump: int) -> None:
        self.position = position
        self.max_jump = max_jump
        self.at_end = False
        """Whether the input is known to hold nothing beyond what was fed."""
        self.bytes = 0
        """Size of the messages, as they came, that were fed and not yet taken."""
        self._entries: deque[Entry] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def feed(self, entries: Sequence[Entry]) -> None:
        """Append messages, in the order of their offsets."""
        self._entries.extend(entries)
        self.bytes += sum([entry.source.size for entry in entries])
        self.at_end = False

    def rewind(self) -> None:
        """Drop the messages that were not yet processed: they will be fed again."""
        self._entries.clear()
        self.bytes = 0
        self.at_end = False

    @property
    def ready(self) -> bool:
        """Whether the next message is known, or that there is none for now."""
        return bool(self._entries) or self.at_end

    def head_time(self) -> int | None:
        """Merge time of the next message; None if there is none."""
        if not self._entries:
            return None
        record = self._entries[0].record
        return FIRST if isinstance(record, Poison) or self._jumps(record) else record.timestamp

    def pop(self) -> Entry:
        """Take the next message; its offset then counts as processed."""
        entry = self._entries.popleft()
        self.bytes -= entry.source.size
        position, record = self.position, entry.record
        position.offset = entry.source.offset + 1
        if isinstance(record, Poison):
            return entry
        if self._jumps(record):
            position.ahead = record.timestamp
            return Entry(entry.source, Poison("future", self._jump_reason(record)))
        position.clock, position.ahead = record.timestamp, None
        return entry

    def _jumps(self, record: Interaction | WatchLabel) -> bool:
        clock, ahead = self.position.clock, self.position.ahead
        if clock is None or record.timestamp <= clock + self.max_jump:
            return False
        return ahead is None or abs(record.timestamp - ahead) > self.max_jump

    def _jump_reason(self, record: Interaction | WatchLabel) -> str:
        return (
            f"the timestamp {record.timestamp} lies {record.timestamp - (self.position.clock or 0)} ms after "
            f"the one before it; a jump beyond join.max_jump ({self.max_jump} ms) is taken as a wrong clock "
            "unless the next message confirms it"
        )
