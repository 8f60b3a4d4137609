"""A record queue: messages of one input of one partition that are read and not yet processed."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.records.decoding import NO_TIMESTAMP, Decoded, Record, RejectedRecord, no_record
from pipeline.records.fields import WrittenCount
from pipeline.records.input_columns import InputColumns
from pipeline.records.inputs import Interaction, KafkaMessage, Label, RawMessage, Slate
from pipeline.records.names import Fault
from pipeline.records.places import flagged

AnyInput: TypeAlias = Interaction | Label

COMPACT_AFTER = 4_096
"""Processed messages after which their room is freed."""


class _Chunk(NamedTuple):
    """Consecutive messages in the queue."""

    size: int
    columns: InputColumns | None = None
    """None where each has a record."""
    decode: Callable[[bytes], Record] = no_record
    """Makes the record of a message that has none."""


class Position(msgspec.Struct):
    """How far an input has been processed. Part of the state record."""

    offset: WrittenCount
    """The next message to process."""
    clock: WrittenCount | None = None
    """Timestamp of the last message accepted, in milliseconds; null before the first."""
    ahead: WrittenCount | None = None
    """Timestamp of the last message, if it was refused for jumping too far ahead; else null."""


class RecordQueue:
    """A queue of decoded messages that knows whether more may come.

    A timestamp more than `max_jump` beyond the one accepted before it is refused once, so that a single
    wrong clock cannot push stream time ahead and let everything expire. If the next message confirms it (the
    stream was silent that long), time goes on from there.
    """

    def __init__(self, position: Position, max_jump: int) -> None:
        self.max_jump = max_jump
        self.at_end = False
        """Whether the input is known to hold nothing beyond what was fed."""
        self.bytes = 0
        """Size of the messages that were fed and not yet processed."""
        self.time: int | None = None
        """Merge time of the next message; None if there is none."""
        self._next, self._clock, self._ahead = position.offset, position.clock, position.ahead
        self._fed_clock, self._fed_ahead = position.clock, position.ahead
        self._last: KafkaMessage | None = None
        self._clear()

    def _clear(self) -> None:
        """Empty the columns of what was fed; processed messages lie before `_head_index`."""
        self._times = array("q")
        self._records: list[Record | None] = []
        """None where a record is made when it is needed."""
        self._chunks = deque[_Chunk]()
        self._processed = 0
        """How many messages of the first chunk were processed."""
        self._sizes = array("q")
        self._messages: list[KafkaMessage] = []
        self._refused: dict[int, int] = {}
        """Timestamps that were refused, by offset."""
        self._head_index = 0

    def __len__(self) -> int:
        return len(self._times) - self._head_index

    @property
    def position(self) -> Position:
        """Position up to which messages were processed."""
        return Position(self._next, self._clock, self._ahead)

    def feed(self, decoded: Decoded) -> None:
        """Append messages."""
        messages, sizes, times, records, columns, decode = decoded
        if not self._within_max_jump(times):
            records, times = self._check_jumps(decoded)
        self._times.frombytes(times.tobytes())
        self._records += records
        if columns is None and self._chunks and self._chunks[-1].columns is None:
            self._chunks.append(_Chunk(self._chunks.pop().size + len(records)))
        elif records:
            self._chunks.append(_Chunk(len(records), columns, decode))
        self._sizes.frombytes(sizes.tobytes())
        self._messages += messages
        self.bytes += int(sizes.sum())
        self.at_end = False
        self._update_head()

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
        """Remove and return the next record; its offset then counts as processed."""
        at = self._head_index
        time, record = self._times[at], self._records[at]
        if record is None:
            record = self._chunks[0].decode(self._messages[at].value() or b"")
        self._advance(1)
        if time != NO_TIMESTAMP:
            self._clock, self._ahead = time, None
        elif (refused := self._refused.pop(self._next - 1, None)) is not None:
            self._ahead = refused
        return record

    def peek(self, max_messages: int) -> array[int]:
        """Return merge times of the next messages, without removing them."""
        return self._times[self._head_index : self._head_index + max_messages]

    def columns(self, count: int) -> InputColumns:
        """Return the columns of those of the next messages that can be used."""
        pieces, done, begin = list[InputColumns](), 0, self._processed
        for size, columns, _ in self._chunks:
            if done == count:
                break
            rows = min(count - done, size - begin)
            at = self._head_index + done
            if columns is None:
                found = [
                    each for each in self._records[at : at + rows] if not isinstance(each, RejectedRecord)
                ]
                pieces.append(InputColumns.of(cast("list[AnyInput]", found)))
            else:
                usable = np.array(self._times[at : at + rows]) != NO_TIMESTAMP
                piece = columns.rows(begin, begin + rows)
                pieces.append(piece if usable.all() else piece.select(flagged(usable)))
            done, begin = done + rows, 0
        return InputColumns.concat(pieces) if pieces else InputColumns.of([])

    def item_counts(self, count: int) -> list[int]:
        """Return the numbers of items of those of the next messages that are slates."""
        records = self._records[self._head_index : self._head_index + count]
        return [len(each.items) for each in records if isinstance(each, Slate)]

    def times(self, count: int) -> NDArray[np.int64]:
        """Return the merge times of the next messages."""
        return np.frombuffer(self.peek(count), dtype=np.int64)

    def sizes(self, count: int) -> NDArray[np.int64]:
        """Return the sizes of the next messages, in bytes."""
        return np.frombuffer(self._sizes[self._head_index : self._head_index + count], dtype=np.int64)

    def source_at(self, place: int) -> RawMessage:
        """Return one of the next messages, which stays in the queue."""
        return RawMessage.of(self._messages[self._head_index + place])

    def record_at(self, place: int) -> Record:
        """Return the record of one of the next messages, which stays in the queue."""
        at = self._head_index + place
        record = self._records[at]
        if record is not None:
            return record
        behind = self._processed + place
        for chunk in self._chunks:
            if behind < chunk.size:
                return chunk.decode(self._messages[at].value() or b"")
            behind -= chunk.size
        raise IndexError(place)

    def skip(self, count: int) -> None:
        """Remove messages."""
        if not count:
            return
        begin, times = self._head_index, self.peek(count)
        if times[-1] != NO_TIMESTAMP and not self._refused:
            self._clock, self._ahead = times[-1], None
        else:
            for at, time in enumerate(times, begin):
                if time != NO_TIMESTAMP:
                    self._clock, self._ahead = time, None
                elif (refused := self._refused.pop(_offset(self._messages[at]), None)) is not None:
                    self._ahead = refused
        self._advance(count)

    def _advance(self, count: int) -> None:
        begin, end = self._head_index, self._head_index + count
        self.bytes -= int(np.frombuffer(self._sizes, dtype=np.int64)[begin:end].sum())
        self._last = self._messages[end - 1]
        self._next = _offset(self._last) + 1
        self._head_index = end
        self._processed += count
        while self._chunks and self._processed >= self._chunks[0].size:
            self._processed -= self._chunks.popleft().size
        if end >= COMPACT_AFTER or end == len(self._times):
            for column in (self._times, self._records, self._sizes, self._messages):
                del column[:end]
            self._head_index = 0
        self._update_head()

    def _update_head(self) -> None:
        self.time = self._times[self._head_index] if len(self) else None

    def source(self) -> RawMessage:
        """Return the message that was removed last."""
        assert self._last is not None, "no message was processed yet"
        return RawMessage.of(self._last)

    def _within_max_jump(self, times: NDArray[np.int64]) -> bool:
        """Whether all can be used, and none is a jump from any other; the last one is then noted."""
        if self._fed_clock is None or not len(times):
            return False
        first = int(times.min())
        if first == NO_TIMESTAMP or times.max() > min(self._fed_clock, first) + self.max_jump:
            return False
        self._fed_clock, self._fed_ahead = int(times[-1]), None
        return True

    def _check_jumps(self, decoded: Decoded) -> tuple[list[Record | None], NDArray[np.int64]]:
        """Return records and times; some messages are refused for their jump."""
        records, times = [*decoded.records], decoded.times.copy()
        for row, (time, message) in enumerate(zip(times.tolist(), decoded.messages, strict=True)):
            if time != NO_TIMESTAMP and (refused := self._check_jump(time, _offset(message))) is not None:
                records[row], times[row] = refused, NO_TIMESTAMP
        return records, times

    def _check_jump(self, time: int, offset: int) -> RejectedRecord | None:
        clock, ahead = self._fed_clock, self._fed_ahead
        if (
            clock is None
            or time <= clock + self.max_jump
            or (ahead is not None and abs(time - ahead) <= self.max_jump)
        ):
            self._fed_clock, self._fed_ahead = time, None
            return None
        self._fed_ahead = self._refused[offset] = time
        return RejectedRecord(
            Fault.FUTURE,
            f"the timestamp {time} lies {time - clock} ms after the one before it; a jump beyond "
            f"join.max_jump ({self.max_jump} ms) counts as a wrong clock unless the next message confirms it",
        )


def _offset(message: KafkaMessage) -> int:
    return message.offset() or 0
