"""One input of one partition: what has been read and not yet processed, in the order of offsets."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from pipeline.decoding import Poison, Record
from pipeline.records import Delivered, Interaction, Source, WatchLabel

FIRST = -1
"""Merge time of a message that cannot be used: it goes before everything that has a timestamp."""


_timestamp = attrgetter("timestamp")
SPENT = 4_096
"""Messages taken, after which the room that they took is made free."""


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
        self._next, self._clock, self._ahead = position.offset, position.clock, position.ahead
        self._fed_clock, self._fed_ahead = position.clock, position.ahead
        self._taken: Source | Delivered | None = None
        self._clear()

    def _clear(self) -> None:
        """Hold nothing: columns of what was fed, in which what was taken lies before `_at`."""
        self._times = array("q")
        self._records: list[Record] = []
        self._offsets: list[int] = []
        self._sizes: list[int] = []
        self._messages: list[Source | Delivered] = []
        self._refused: dict[int, int] = {}
        """Timestamps that were refused, by offset."""
        self._at = 0

    def __len__(self) -> int:
        return len(self._times) - self._at

    @property
    def position(self) -> Position:
        """How far the messages were taken."""
        return Position(self._next, self._clock, self._ahead)

    def feed(self, arrived: Arrived) -> None:
        """Append messages."""
        records = arrived.records
        times = self._times_close_together(records)
        if times is None:
            times, records = self._judged(arrived)
        self._times.extend(times)
        self._records += records
        self._offsets += arrived.offsets
        self._sizes += arrived.sizes
        self._messages += arrived.messages
        self.bytes += sum(arrived.sizes)
        self.at_end = False
        self._look()

    def rewind(self) -> None:
        """Drop the messages that were not yet processed: they will be fed again."""
        self._clear()
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
        at = self._at
        time, record, offset = self._times[at], self._records[at], self._offsets[at]
        self._move(1)
        if time != FIRST:
            self._clock, self._ahead = time, None
        elif (refused := self._refused.pop(offset, None)) is not None:
            self._ahead = refused
        return record

    def peek(self, most: int) -> tuple[array[int], list[Record]]:
        """Merge times and records of the next messages, without taking them."""
        ahead = slice(self._at, self._at + most)
        return self._times[ahead], self._records[ahead]

    def take(self, count: int) -> None:
        """Take messages that all can be used."""
        if count:
            self._clock, self._ahead = self._times[self._at + count - 1], None
            self._move(count)

    def _move(self, count: int) -> None:
        begin, end = self._at, self._at + count
        self.bytes -= sum(self._sizes[begin:end])
        self._next = self._offsets[end - 1] + 1
        self._taken = self._messages[end - 1]
        self._at = end
        if end >= SPENT or end == len(self._times):
            for column in (self._times, self._records, self._offsets, self._sizes, self._messages):
                del column[:end]
            self._at = 0
        self._look()

    def _look(self) -> None:
        self.time = self._times[self._at] if len(self) else None

    def source(self) -> Source:
        """The message that was taken last."""
        assert self._taken is not None, "none was taken"
        return self._taken if isinstance(self._taken, Source) else Source.of(self._taken)

    def _times_close_together(self, records: list[Record]) -> list[int] | None:
        """Times of the records, if all can be used and none is a jump from any other; that is then noted."""
        if self._fed_clock is None or not records or Poison in set(map(type, records)):
            return None
        times: list[int] = list(map(_timestamp, records))
        if max(times) > min(self._fed_clock, *times) + self.max_jump:
            return None
        self._fed_clock, self._fed_ahead = times[-1], None
        return times

    def _judged(self, arrived: Arrived) -> tuple[list[int], list[Record]]:
        """Merge times, and records of which some are refused for their jump."""
        times, records = [], []
        for offset, record in zip(arrived.offsets, arrived.records, strict=True):
            judged = record if isinstance(record, Poison) else self._judge(record, offset)
            records.append(judged)
            times.append(FIRST if isinstance(judged, Poison) else judged.timestamp)
        return times, records

    def _judge(self, record: Interaction | WatchLabel, offset: int) -> Record:
        time, clock, ahead = record.timestamp, self._fed_clock, self._fed_ahead
        if (
            clock is None
            or time <= clock + self.max_jump
            or (ahead is not None and abs(time - ahead) <= self.max_jump)
        ):
            self._fed_clock, self._fed_ahead = time, None
            return record
        self._fed_ahead = self._refused[offset] = time
        return Poison(
            "future",
            f"the timestamp {time} lies {time - clock} ms after the one before it; a jump beyond "
            f"join.max_jump ({self.max_jump} ms) counts as a wrong clock unless the next message confirms it",
        )
