"""The inbox of a partition that learns the shares of a window of event time exactly one window later.

What is learned before which outcome then depends on the inputs alone, not on who was how far when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Final

from pipeline.records.fields import Count, Timestamp
from pipeline.records.largest import MAX_SHARES_BYTES
from pipeline.records.outputs import Share
from pipeline.task.inbox import ALL_OUTCOMES, INBOX_BYTES, BufferedShare, Inbox
from pipeline.task.sharing import SharingSettings

OUTCOMES_OF_ITEM: Final = 2
"""Outcomes that one item of a message can make: its own, and one for which there is no room any more."""


class AlignedInbox(Inbox):
    """Buffers shares until their window is due, and gives them out by window, partition and offset.

    A window is due once stream time has come to the end of the next one. Then all partitions have to have
    closed it, or at least so many shares have to be there that they fill the outcomes of the next message.
    Memory is bounded: each partition has its part of `INBOX_BYTES`, and what is in order takes about
    `MAX_SHARES_BYTES` more for each of these outcomes.

    Parameters
    ----------
    partition
        Its number.
    sharing
        How many partitions there are, and the milliseconds of event time in a window.
    taken
        By other partition, the offset after the last share that was learned.
    windows
        What `windows` was when the others were `taken`.
    stream_time
        The partition's stream time, in milliseconds.
    """

    def __init__(
        self,
        partition: int,
        sharing: SharingSettings,
        taken: Mapping[int, Count],
        windows: Mapping[int, Timestamp],
        stream_time: int,
    ) -> None:
        super().__init__(partition, taken)
        assert sharing.align is not None
        self._others = [number for number in range(sharing.partitions) if number != partition]
        self._align = sharing.align
        self._windows = {number: windows.get(number, 0) for number in self._others}
        self._windows_in_order = dict(self._windows)
        self._queues: dict[int, deque[BufferedShare]] = {number: deque() for number in self._others}
        self._queue_bytes = dict.fromkeys(self._others, 0)
        self._full_queues: set[int] = set()
        self._in_order: deque[BufferedShare] = deque()
        self._outcomes_of_message = OUTCOMES_OF_ITEM * sharing.max_items
        self._filled = self._bytes_of_last = 0
        """How many outcomes those in order fill, and the bytes for the one after these."""
        self._timed_out: set[int] = set()
        self._due = self._due_at(stream_time)
        self._empty = False

    @property
    def windows(self) -> dict[int, Timestamp]:
        """By other partition, the earliest end of a window that a share after those taken may have."""
        return dict(self._windows)

    @property
    def ready(self) -> bool:
        """Whether it is known what the outcomes of the next message learn."""
        return self.max_outcomes >= self._outcomes_of_message

    @property
    def max_outcomes(self) -> int:
        """The number of outcomes until the next window of which it is known what they learn."""
        return ALL_OUTCOMES if self._empty or self._order() else self._filled

    @property
    def next_window(self) -> Timestamp | None:
        """The first time of the next window."""
        return self._due + 2 * self._align

    @property
    def missing(self) -> list[int]:
        """The partitions that are waited for, of those the ones farthest behind.

        Who is two windows ahead of them may be waiting for the same ones.
        """
        if self.ready:
            return []
        bounds = {
            number: self._bound(number)
            for number in self._others
            if number not in self._timed_out and not self._queues[number]
        }
        latest = min(self._due, min(bounds.values()) + 2 * self._align - 1)
        return [number for number, bound in bounds.items() if bound <= latest]

    def move(self, stream_time: int) -> None:
        """Note that stream time moves, and with it perhaps what is due."""
        due = self._due_at(stream_time)
        if due != self._due:
            self._due, self._empty = due, False

    def time_out(self, partitions: Collection[int]) -> None:
        """Wait no longer for partitions, until they have caught up."""
        self._timed_out |= set(partitions)

    def next_offset(self, partition: int) -> int | None:
        """Return the offset from which to read a partition's shares; None while nothing is wanted of it."""
        if partition == self.partition or partition in self._full_queues:
            return None
        return self._next.get(partition, 0)

    def offer(self, share: Share, offset: int, size: int) -> None:
        """Buffer a share of `size` bytes, published at an offset, if it is wanted."""
        number = share.partition
        wanted = self.next_offset(number)
        if wanted is None or offset < wanted or number not in self._queues:
            return
        self._queues[number].append(BufferedShare(share, offset, size))
        self._queue_bytes[number] += size
        self.bytes += size
        self._next[number] = offset + 1
        if self._queue_bytes[number] >= INBOX_BYTES // len(self._others):
            self._full_queues.add(number)

    def drain(self) -> list[Share]:
        """Return the shares to learn with the next outcome; those without room stay for the one after."""
        if not self._empty:
            self._order()
        drained, size = [], 0
        while self._in_order and size < MAX_SHARES_BYTES:
            share, offset, share_size = self._in_order.popleft()
            self.bytes -= share_size
            self.taken[share.partition] = offset + 1
            self._windows[share.partition] = next_window_end(share, self._windows[share.partition])
            if share.until > share.since:
                drained.append(share)
                size += share_size
                self.outcomes += share.until - share.since
        if self._filled:
            self._filled -= 1
        else:
            self._bytes_of_last = 0
        return drained

    def _due_at(self, stream_time: int) -> Timestamp:
        """Return the end of the latest window that is due at a stream time."""
        return (stream_time // self._align - 1) * self._align

    def _order(self) -> bool:
        """Put shares that are due in order, as far as they are needed; return whether all of them are."""
        while self._filled < self._outcomes_of_message:
            self._timed_out = {number for number in self._timed_out if self._bound(number) <= self._due}
            waited_for = [
                number for number in self._others if self._queues[number] or number not in self._timed_out
            ]
            first = min(waited_for, key=lambda number: (self._bound(number), number), default=None)
            if first is None or self._bound(first) > self._due:
                self._empty = True
                return True
            if not self._queues[first]:
                return False
            self._append(first)
        return False

    def _append(self, partition: int) -> None:
        """Move a partition's first share behind those in order."""
        buffered = self._queues[partition].popleft()
        self._in_order.append(buffered)
        if buffered.share.until > buffered.share.since:
            self._bytes_of_last += buffered.size
        if self._bytes_of_last >= MAX_SHARES_BYTES:
            self._filled, self._bytes_of_last = self._filled + 1, 0
        self._queue_bytes[partition] -= buffered.size
        window = self._windows_in_order[partition]
        self._windows_in_order[partition] = next_window_end(buffered.share, window)
        if self._queue_bytes[partition] <= INBOX_BYTES // len(self._others) // 2:
            self._full_queues.discard(partition)

    def _bound(self, partition: int) -> Timestamp:
        """Return the earliest end of a window that the partition's next share may have."""
        queue = self._queues[partition]
        if queue:
            return queue[0].share.window_end or 0
        return self._windows_in_order[partition]


def next_window_end(share: Share, before: Timestamp) -> Timestamp:
    """Return the earliest end of a window that the share after this one may have.

    Examples
    --------
    >>> share = Share(0, since=0, until=5, videos=[], examples=[], window_end=60_000)
    >>> next_window_end(share, 0)
    60000
    >>> last = Share(0, since=5, until=9, videos=[], examples=[], window_end=60_000, closed_until=90_000)
    >>> next_window_end(last, 60_000)
    90001
    """
    if share.closed_until is not None:
        return share.closed_until + 1
    return before if share.window_end is None else share.window_end
