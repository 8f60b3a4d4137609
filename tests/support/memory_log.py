"""The log of a partition, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias, cast

from pipeline.config.topics import Topics
from pipeline.errors import StateError
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader
from pipeline.records.names import snapshot_key

Slot: TypeAlias = tuple[int, bytes]
"""Offset and value."""


class MemoryMessage:
    """A message as a client delivers it."""

    def __init__(
        self, offset: int, value: bytes, key: bytes | None = None, topic: str = "", partition: int = 0
    ) -> None:
        self._offset, self._value, self._key = offset, value, key
        self._topic, self._partition = topic, partition

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes:
        return self._value

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0


class MemoryReader:
    """Messages by topic and offset, in place of a `LogReader`; it waits for nothing.

    Parameters
    ----------
    messages
        Keys and values of messages by their offset, by topic.
    """

    patience = 0.0

    def __init__(self, messages: Mapping[str, Mapping[int, tuple[bytes | None, bytes]]]) -> None:
        self._messages = messages
        self.reads = 0

    def at(self, topic: str, partition: int, offset: int) -> MemoryMessage:
        """Return the message at an offset."""
        self.reads += 1
        found = self._messages.get(topic, {}).get(offset)
        if found is None:
            raise StateError(f"{topic} has no record at offset {offset} of partition {partition}")
        return MemoryMessage(offset, found[1], found[0], topic, partition)

    def read(self, topic: str, partition: int, offset: int) -> Iterator[list[MemoryMessage]]:
        """Yield messages from an offset on, a few at a time: none, then one, then two, and so on."""
        found = [
            MemoryMessage(at, value, key, topic, partition)
            for at, (key, value) in self._messages.get(topic, {}).items()
            if at >= offset
        ]
        for length in count(1):
            if not found:
                break
            yield found[:length]
            del found[:length]
        while True:
            yield []


def memory_log(
    messages: Mapping[str, Mapping[int, tuple[bytes | None, bytes]]], topics: Topics | None = None
) -> PartitionLog:
    """Return the log of partition 0 with messages in memory."""
    return PartitionLog(cast(LogReader, MemoryReader(messages)), topics or Topics(), 0)


def snapshot_messages(snapshots: Mapping[int, bytes]) -> dict[int, tuple[bytes | None, bytes]]:
    """Return the messages of whole snapshots, by their offsets, each in the next slot."""
    return {
        offset: (snapshot_key(0, slot % 2, 0).encode(), data)
        for slot, (offset, data) in enumerate(snapshots.items())
    }


def snapshot_log(snapshots: Mapping[int, bytes]) -> PartitionLog:
    """Return a log that has whole snapshots at some offsets, each in the next slot, and nothing else."""
    return memory_log({Topics().checkpoints: snapshot_messages(snapshots)})


def output_messages(slots: Sequence[Slot]) -> dict[int, tuple[Any, bytes]]:
    """Return messages of outputs, whose keys nobody reads."""
    return {offset: (None, value) for offset, value in slots}
