"""One input of one partition: what has been read and not yet processed, in the order of offsets."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.records.decoding import FIRST, Decoded, Poison, Record, times_of
from pipeline.records.inputs import Delivered, Interaction, Source, WatchLabel

SPENT = 4_096
"""Messages taken, after which the room that they took is made free."""


class Arrived(NamedTuple):
    """Messages in the order of their offsets, column by column."""

    messages: Sequence[Delivered]
    """As they came."""
    decoded: Decoded
    """What they come to."""
    sizes: list[int]
    """In bytes."""


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
        self._taken: Delivered | None = None
        self._clear()

    def _clear(self) -> None:
        """Hold nothing: columns of what was fed, in which what was taken lies before `_at`."""
        self._times = array("q")
        self._records: list[Record] = []
        self._sizes: list[int] = []
        self._messages: list[Delivered] = []
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
        records, times = arrived.decoded
        if not self._close_together(times):
            records = self._judged(arrived)
            times = times_of(records)
        self._times.frombytes(times.tobytes())
        self._records += records
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
        time, record = self._times[at], self._records[at]
        self._move(1)
        if time != FIRST:
            self._clock, self._ahead = time, None
        elif (refused := self._refused.pop(self._next - 1, None)) is not None:
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
        self._taken = self._messages[end - 1]
        self._next = _offset(self._taken) + 1
        self._at = end
        if end >= SPENT or end == len(self._times):
            for column in (self._times, self._records, self._sizes, self._messages):
                del column[:end]
            self._at = 0
        self._look()

    def _look(self) -> None:
        self.time = self._times[self._at] if len(self) else None

    def source(self) -> Source:
        """The message that was taken last."""
        assert self._taken is not None, "none was taken"
        return Source.of(self._taken)

    def _close_together(self, times: NDArray[np.int64]) -> bool:
        """Whether all can be used, and none is a jump from any other; the last one is then noted."""
        if self._fed_clock is None or not len(times):
            return False
        first = int(times.min())
        if first == FIRST or times.max() > min(self._fed_clock, first) + self.max_jump:
            return False
        self._fed_clock, self._fed_ahead = int(times[-1]), None
        return True

    def _judged(self, arrived: Arrived) -> list[Record]:
        """The records, of which some are refused for their jump."""
        return [
            record if isinstance(record, Poison) else self._judge(record, _offset(message))
            for record, message in zip(arrived.decoded.records, arrived.messages, strict=True)
        ]

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


def _offset(message: Delivered) -> int:
    return message.offset() or 0
