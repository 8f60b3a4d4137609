"""What a worker hands to its producer, kept in memory, and its digests."""

# ruff: noqa: ARG002, PLR0917 -- the signatures are those of confluent_kafka.Producer
from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Message, TopicPartition

from pipeline.config.topics import Topics

CHECKPOINTS = Topics().checkpoints


class Recorder:
    """Takes the calls of a transactional producer and gives the offsets that a broker would.

    It models neither failures nor other producers. Use it where a `confluent_kafka.Producer` is expected.
    """

    def __init__(self) -> None:
        self.digests: dict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
        """By topic: partition, offset, key, value, timestamp and headers of each record, as written.
        State records and snapshots are apart."""
        self.records: Counter[str] = Counter()
        """By the same."""
        self.last: dict[tuple[str, int], int] = {}
        """By topic and partition, the last offset taken; a commit's marker takes one, too."""
        self._touched: set[tuple[str, int]] = set()
        self._reports: list[tuple[Callable[..., None], Message]] = []

    def begin_transaction(self) -> None:
        """Begin."""

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | str | None = None,
        partition: int = 0,
        callback: Callable[..., None] | None = None,
        on_delivery: Callable[..., None] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Keep a record."""
        offset = self.last.get((topic, partition), -1) + 1
        self.last[topic, partition] = offset
        self._touched.add((topic, partition))
        value = None if value is None else bytes(value)
        key = key.encode() if isinstance(key, str) else key
        stream = f"{topic}: {key.decode().split('/')[1]}" if topic == CHECKPOINTS and key else topic
        self.records[stream] += 1
        self._digest(stream, (partition, offset, key, value, timestamp, list(headers or [])))
        report = callback or on_delivery
        if report is not None:
            self._reports.append((report, Message(topic=topic, partition=partition, offset=offset)))

    def flush(self, timeout: float = 0.0) -> int:
        """Report what was kept."""
        reports, self._reports = self._reports, []
        for report, message in reports:
            report(None, message)
        return 0

    def send_offsets_to_transaction(
        self, offsets: Sequence[TopicPartition], membership: object, timeout: float = 0.0
    ) -> None:
        """Keep the committed offsets and their metadata."""
        for each in offsets:
            self._digest("committed offsets", (each.topic, each.partition, each.offset, each.metadata))

    def commit_transaction(self, timeout: float = 0.0) -> None:
        """Let a marker take an offset of each partition that was written to."""
        self.flush()
        for written in self._touched:
            self.last[written] += 1
        self._touched.clear()

    def abort_transaction(self, timeout: float = 0.0) -> None:
        """Fail: no golden replay aborts."""
        raise AssertionError("a golden replay aborted a transaction")

    def _digest(self, stream: str, record: tuple[object, ...]) -> None:
        self.digests[stream].update(repr(record).encode())

    def hexdigests(self) -> dict[str, str]:
        """Return records and digest of each stream that has any, as text."""
        return {
            stream: f"{self.records[stream] or '-'} {digest.hexdigest()}"
            for stream, digest in sorted(self.digests.items())
        }
