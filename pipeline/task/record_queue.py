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
from pipeline.records.places import flagged
from pipeline.task.input_clock import InputClock

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
    """The largest timestamp accepted, in milliseconds; null before the first."""
    ahead: WrittenCount | None = None
    """Timestamp of the last message, if it was refused for jumping too far ahead; else null."""
    behind: WrittenCount | msgspec.UnsetType = msgspec.UNSET
    """By how many the messages refused for lying too far behind outnumber those accepted. Absent for 0."""

    @classmethod
    def of(cls, offset: int, clock: InputClock) -> Position:
        """Return the position before an offset, up to which an input has moved its clock."""
        return cls(offset, clock.time, clock.ahead, clock.behind or msgspec.UNSET)


class RecordQueue:
    """A queue of decoded messages that knows whether more may come.

    Messages of a wrong clock are refused, so that it cannot push stream time ahead and let everything expire:
    see `InputClock`. A jump, and what comes behind it, is no part of the queue until the next messages decide
    about it, or the input ends.

    Parameters
    ----------
    position
        The first message to be fed.
    max_jump
        How far a message may be ahead of the clock, unless the next ones confirm it, in milliseconds.
    max_behind
        How far it may be behind.
    """

    def __init__(self, position: Position, max_jump: int, max_behind: int) -> None:
        self._at_end = False
        self.bytes = 0
        """Size of the messages that were fed and not yet processed."""
        self.time: int | None = None
        """Merge time of the next message; None if there is none."""
        self._next = position.offset
        self._clock = InputClock(max_jump, max_behind, position.clock, position.ahead, position.behind or 0)
        """Stands where the messages processed have brought it."""
        self._fed_clock = self._clock.copy()
        """Stands behind those that are decided."""
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
        self._decided = 0
        """Where the messages begin that are not decided, the first of which is a jump."""

    def __len__(self) -> int:
        return self._decided - self._head_index

    @property
    def position(self) -> Position:
        """Position up to which messages were processed."""
        return Position.of(self._next, self._clock)

    @property
    def at_end(self) -> bool:
        """Whether the input is known to hold nothing beyond what was fed.

        With it set, a jump that waits is accepted unless messages behind it refute it.
        """
        return self._at_end

    @at_end.setter
    def at_end(self, ended: bool) -> None:
        self._at_end = ended
        if ended:
            self._decide(present=0)

    def pause(self, present: int) -> None:
        """Note that the input is at its end for now.

        Parameters
        ----------
        present
            A jump that no message confirms or refutes counts from this time on, in milliseconds.
        """
        self._at_end = True
        self._decide(present)

    @property
    def waiting(self) -> int | None:
        """Timestamp of a jump that the next messages have yet to confirm; None without one."""
        return self._times[self._decided] if self._decided < len(self._times) else None

    def feed(self, decoded: Decoded) -> None:
        """Append messages."""
        messages, sizes, times, records, columns, decode = decoded
        all_decided = self.waiting is None and self._fed_clock.accept_all(times)
        self._times.frombytes(times.tobytes())
        self._records += records
        if columns is None and self._chunks and self._chunks[-1].columns is None:
            self._chunks.append(_Chunk(self._chunks.pop().size + len(records)))
        elif records:
            self._chunks.append(_Chunk(len(records), columns, decode))
        self._sizes.frombytes(sizes.tobytes())
        self._messages += messages
        self.bytes += int(sizes.sum())
        self._at_end = False
        if all_decided:
            self._decided = len(self._times)
            self._update_head()
        else:
            self._decide()

    def _decide(self, present: int | None = None) -> None:
        """Accept or refuse messages, up to a jump that the next messages have yet to confirm."""
        for verdict in self._fed_clock.judge(self._times[self._decided :], present):
            at = self._decided
            if verdict is not None:
                self._refused[_offset(self._messages[at])] = self._times[at]
                self._records[at], self._times[at] = verdict, NO_TIMESTAMP
            self._decided += 1
        self._update_head()

    def rewind(self) -> None:
        """Drop the messages that were not yet processed: they will be fed again."""
        self._clear()
        self._fed_clock = self._clock.copy()
        self.bytes = 0
        self._at_end = False
        self.time = None

    @property
    def ready(self) -> bool:
        """Whether the next message is known, or that there is none for now."""
        return self.time is not None or self._at_end

    def pop(self) -> Record:
        """Remove and return the next record; its offset then counts as processed."""
        at = self._head_index
        record = self._records[at]
        if record is None:
            record = self._chunks[0].decode(self._messages[at].value() or b"")
        self._follow(at, 1)
        self._advance(1)
        return record

    def peek(self, max_messages: int) -> array[int]:
        """Return merge times of the next messages, without removing them."""
        return self._times[self._head_index : min(self._head_index + max_messages, self._decided)]

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
        if self._refused or not self._clock.accept_all(self.times(count)):
            self._follow(self._head_index, count)
        self._advance(count)

    def _follow(self, begin: int, count: int) -> None:
        """Move the clock as messages do that are decided."""
        clock = self._clock
        for at in range(begin, begin + count):
            if (time := self._times[at]) != NO_TIMESTAMP:
                clock.accept(time)
            elif (refused := self._refused.pop(_offset(self._messages[at]), None)) is not None:
                clock.refuse(refused)

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
            self._decided -= end
        self._update_head()

    def _update_head(self) -> None:
        self.time = self._times[self._head_index] if len(self) else None

    def source(self) -> RawMessage:
        """Return the message that was removed last."""
        assert self._last is not None, "no message was processed yet"
        return RawMessage.of(self._last)


def _offset(message: KafkaMessage) -> int:
    return message.offset() or 0
