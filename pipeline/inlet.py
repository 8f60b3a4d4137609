"""One input of one partition: what has been read and not yet processed, in the order of offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from pipeline.records import Delivered, Interaction, Poison, Record, Source, WatchLabel

FIRST = -1
"""Merge time of a message that cannot be used: it goes before everything that has a timestamp."""


Queued: TypeAlias = tuple[int, int, Record, Source | Delivered]
"""Offset, size in bytes, what it was decoded to, and the message itself."""


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
        self.time: int | None = None
        """Merge time of the next message; None if there is none."""
        self._queue: deque[Queued] = deque()
        self._refused = False
        """Whether the next message is refused for its jump."""
        self._taken: Source | Delivered | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def feed(self, arrived: Sequence[Queued]) -> None:
        """Append messages, in the order of their offsets."""
        self._queue.extend(arrived)
        self.bytes += sum([size for _, size, _, _ in arrived])
        self.at_end = False
        if self.time is None:
            self._look_ahead()

    def rewind(self) -> None:
        """Drop the messages that were not yet processed: they will be fed again."""
        self._queue.clear()
        self.bytes = 0
        self.at_end = False
        self.time = None

    @property
    def ready(self) -> bool:
        """Whether the next message is known, or that there is none for now."""
        return self.time is not None or self.at_end

    def pop(self) -> Record:
        """Take the next message; its offset then counts as processed."""
        offset, size, record, self._taken = self._queue.popleft()
        self.bytes -= size
        position = self.position
        position.offset = offset + 1
        if isinstance(record, Poison):
            pass
        elif self._refused:
            position.ahead = record.timestamp
            record = Poison("future", self._jump_reason(record))
        else:
            position.clock, position.ahead = record.timestamp, None
        self._look_ahead()
        return record

    def source(self) -> Source:
        """The message that was taken last."""
        assert self._taken is not None, "none was taken"
        return self._taken if isinstance(self._taken, Source) else Source.of(self._taken)

    def _look_ahead(self) -> None:
        if not self._queue:
            self.time = None
            return
        record = self._queue[0][2]
        self._refused = not isinstance(record, Poison) and self._jumps(record.timestamp)
        self.time = FIRST if self._refused or isinstance(record, Poison) else record.timestamp

    def _jumps(self, timestamp: int) -> bool:
        clock, ahead = self.position.clock, self.position.ahead
        if clock is None or timestamp <= clock + self.max_jump:
            return False
        return ahead is None or abs(timestamp - ahead) > self.max_jump

    def _jump_reason(self, record: Interaction | WatchLabel) -> str:
        return (
            f"the timestamp {record.timestamp} lies {record.timestamp - (self.position.clock or 0)} ms after "
            f"the one before it; a jump beyond join.max_jump ({self.max_jump} ms) is taken as a wrong clock "
            "unless the next message confirms it"
        )
