"""One input of one partition: what has been read and not yet processed, in the order of offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice, repeat
from typing import NamedTuple, TypeAlias

import msgspec

from pipeline.records import Delivered, Poison, Record, Source

FIRST = -1
"""Merge time of a message that cannot be used: it goes before everything that has a timestamp."""


_Entry: TypeAlias = tuple[int, int | None, int, int, Record, Source | Delivered]
"""Merge time, timestamp if it was refused for it, offset, size, record and message."""


class Arrived(NamedTuple):
    """Messages in the order of their offsets, column by column."""

    offsets: list[int]
    sizes: list[int]
    """In bytes."""
    records: list[Record]
    """What they were decoded to."""
    messages: Sequence[Source | Delivered]
    """As they came."""


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
        self.max_jump = max_jump
        self.at_end = False
        """Whether the input is known to hold nothing beyond what was fed."""
        self.bytes = 0
        """Size of the messages, as they came, that were fed and not yet taken."""
        self.time: int | None = None
        """Merge time of the next message; None if there is none."""
        self._queue: deque[_Entry] = deque()
        self._next, self._clock, self._ahead = position.offset, position.clock, position.ahead
        self._fed_clock, self._fed_ahead = position.clock, position.ahead
        self._taken: Source | Delivered | None = None

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def position(self) -> Position:
        """How far the messages were taken."""
        return Position(self._next, self._clock, self._ahead)

    def feed(self, arrived: Arrived) -> None:
        """Append messages."""
        self._queue.extend(self._close_together(arrived) or map(self._judged, *arrived))
        self.bytes += sum(arrived.sizes)
        self.at_end = False
        if self.time is None and self._queue:
            self.time = self._queue[0][0]

    def rewind(self) -> None:
        """Drop the messages that were not yet processed: they will be fed again."""
        self._queue.clear()
        self._fed_clock, self._fed_ahead = self._clock, self._ahead
        self.bytes = 0
        self.at_end = False
        self.time = None

    @property
    def ready(self) -> bool:
        """Whether the next message is known, or that there is none for now."""
        return self.time is not None or self.at_end

    def pop(self) -> Record:
        """Take the next message; its offset then counts as processed."""
        time, ahead, offset, size, record, self._taken = self._queue.popleft()
        self.bytes -= size
        self._next = offset + 1
        if time != FIRST:
            self._clock, self._ahead = time, None
        elif ahead is not None:
            self._ahead = ahead
        self.time = self._queue[0][0] if self._queue else None
        return record

    def peek(self, most: int) -> tuple[list[int], list[Record]]:
        """Merge times and records of the next messages, without taking them."""
        ahead = list(islice(self._queue, most))
        return [entry[0] for entry in ahead], [entry[4] for entry in ahead]

    def take(self, count: int) -> None:
        """Take messages that all can be used."""
        if not count:
            return
        taken = [self._queue.popleft() for _ in range(count)]
        self._clock, _, offset, _, _, self._taken = taken[-1]
        self._ahead = None
        self._next = offset + 1
        self.bytes -= sum([entry[3] for entry in taken])
        self.time = self._queue[0][0] if self._queue else None

    def source(self) -> Source:
        """The message that was taken last."""
        assert self._taken is not None, "none was taken"
        return self._taken if isinstance(self._taken, Source) else Source.of(self._taken)

    def _close_together(self, arrived: Arrived) -> list[_Entry] | None:
        """The messages with their merge times, if all can be used and none is a jump from any other."""
        times = [record.timestamp for record in arrived.records if not isinstance(record, Poison)]
        if self._fed_clock is None or not times or len(times) < len(arrived.records):
            return None
        if max(times) > min(self._fed_clock, *times) + self.max_jump:
            return None
        self._fed_clock, self._fed_ahead = times[-1], None
        return list(zip(times, repeat(None), *arrived, strict=False))

    def _judged(self, offset: int, size: int, record: Record, message: Source | Delivered) -> _Entry:
        """The message with its merge time, or refused for its jump."""
        if isinstance(record, Poison):
            return FIRST, None, offset, size, record, message
        time, clock, ahead = record.timestamp, self._fed_clock, self._fed_ahead
        if (
            clock is None
            or time <= clock + self.max_jump
            or (ahead is not None and abs(time - ahead) <= self.max_jump)
        ):
            self._fed_clock, self._fed_ahead = time, None
            return time, None, offset, size, record, message
        self._fed_ahead = time
        reason = (
            f"the timestamp {time} lies {time - clock} ms after the one before it; a jump beyond "
            f"join.max_jump ({self.max_jump} ms) counts as a wrong clock unless the next message confirms it"
        )
        return FIRST, time, offset, size, Poison("future", reason), message
