"""Send dead letters back to their inputs, each once, however often the command is killed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import msgspec

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import ConfigError
from pipeline.kafka.access.authorization import denied
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.missing_rights import missing_rights
from pipeline.kafka.access.rights import Role, rights
from pipeline.kafka.committed import CommittedOffset
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.partitioner import partition as partition_of
from pipeline.kafka.redrive import InputMessage, RedriveGroup
from pipeline.kafka.types import ConsumerRecord
from pipeline.log.partition_log import PartitionLog
from pipeline.log.ranges import Watermarks
from pipeline.log.reader import LogReader, Meter
from pipeline.records.dead_letter import (
    DeadLetterHeaders,
    Original,
    is_redriven,
    message_headers,
    read_dead_letter,
    redriven_headers,
)
from pipeline.tools.redrive.ledger import Ledger, RecordedDeadLetter, Selection

MAX_DEAD_LETTERS: Final = 500
"""Dead letters in a transaction, at most."""
BYTES: Final = 16_000_000
"""Bytes in a transaction after which no further dead letter is added."""
FAR: Final = 5_000
"""Messages of an input that are read on the way to the next original, at most."""


class Summary(msgspec.Struct):
    """What a redrive has done, or would do."""

    dry_run: bool
    complete: bool
    """False if it was stopped."""
    redriven: int
    """Dead letters that were sent back now."""
    counts: dict[str, dict[str, int]]
    """Their number by input and fault."""
    failed_again: int
    """Dead letters that are left out because their message was sent back before."""
    of_tables: int
    """Dead letters that are left out because they are rows of a table."""
    foreign: int
    """Dead letters that are left out because they do not name a message of these inputs."""
    without_original: int
    """Those that were sent back with the time of the dead letter, since the original message is gone."""
    lost: int
    """Dead letters that are left out because they are cut, and the original message is gone."""


Source: TypeAlias = tuple[str, int, int]
"""Topic, partition and offset of a message."""
Originals: TypeAlias = dict[Source, ConsumerRecord]
"""The messages of dead letters, as far as they are still in their inputs."""


class _Found(NamedTuple):
    """A dead letter that is to be sent back."""

    message: ConsumerRecord
    headers: DeadLetterHeaders


class Redrive:
    """A redrive of the dead letters of a pipeline.

    Parameters
    ----------
    config
        The whole configuration.
    wanted
        Which dead letters are wanted, in each partition.
    partition
        The only partition of the dead letters; None for all.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        A topic does not exist.
    ConfigError
        The partition does not exist.
    """

    def __init__(self, config: Config, wanted: Selection, partition: int | None = None) -> None:
        self._config = config
        self._topics = topics_of(config)
        self._wanted = wanted
        watermarks = Watermarks(config.kafka, [self._topics.dead_letters, *self._topics.inputs])
        self._ranges = {
            each: offsets
            for each, offsets in watermarks.ranges().items()
            if each.topic == self._topics.dead_letters and partition in (None, each.partition)
        }
        if not self._ranges:
            raise ConfigError(f"--partition {partition}: {self._topics.dead_letters} has no such partition")
        self._partitions = Counter(each.topic for each in watermarks.partitions)
        """Partitions of each topic."""
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._left_out = Counter[str]()
        self._without_original = 0

    @property
    def total(self) -> int:
        """The number of offsets of dead letters that are to be read, at most."""
        return sum(map(len, self._ranges.values()))

    def run(
        self,
        *,
        dry_run: bool = False,
        stopping: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Summary:
        """Send the dead letters back.

        Each transaction has the messages and, as metadata of the committed offset of the redrive group, what
        was dealt with: see `Ledger`. So nothing is sent twice, whenever this ends.

        Parameters
        ----------
        dry_run
            Whether to count only.
        stopping
            Tells whether to stop after the transaction.
        progress
            Called with the number of dead letters that were read.

        Returns
        -------
        Summary
            What was done.

        Raises
        ------
        AuthorizationError
            The brokers deny a right.
        StateError
            Something else has committed offsets of the redrive group.
        FencedError
            Another redrive of the group has begun.
        """
        self._refuse_missing_rights(dry_run=dry_run)
        complete = True
        config = self._config
        with (
            RedriveGroup(config) as group,
            LogReader(config.kafka, meter=Meter(progress)) as reader,
            LogReader(config.kafka) as inputs,
        ):
            if not dry_run:
                group.begin()
            committed = group.committed(self._ranges)
            for each, offsets in self._ranges.items():
                ledger = Ledger.parse(committed[each.partition].metadata)
                log = PartitionLog(reader, self._topics, each.partition)
                for wanted, end in self._batches(log, offsets, ledger):
                    if stopping():
                        complete = False
                        break
                    found, originals = self._with_originals(inputs, wanted, dry_run=dry_run)
                    if not dry_run:
                        messages = self._messages(found, originals)
                        ledger = ledger.with_(msgspec.structs.replace(self._wanted, end=end))
                        group.send(messages, {each: CommittedOffset(end, ledger.text())})
                    for _, headers in found:
                        self._counts[headers.topic or ""][headers.fault or ""] += 1
        return Summary(
            dry_run,
            complete,
            sum(counts.total() for counts in self._counts.values()),
            {topic: dict(counts) for topic, counts in sorted(self._counts.items())},
            self._left_out["again"],
            self._left_out["table"],
            self._left_out["foreign"],
            self._without_original,
            self._left_out["lost"],
        )

    def _refuse_missing_rights(self, *, dry_run: bool) -> None:
        """Raise `AuthorizationError` if the brokers deny a right: a producer would wait long for some."""
        kafka = self._config.kafka
        wanted = rights(Role.REDRIVER, self._config, self._topics)
        needed = [right for right in wanted if not (dry_run and right.operation == "Write")]
        if missing := missing_rights(Admin(kafka), needed):
            raise denied(kafka, missing, Role.REDRIVER)

    def _batches(
        self, log: PartitionLog, offsets: range, ledger: Ledger
    ) -> Iterator[tuple[list[_Found], int]]:
        """Yield the dead letters of each transaction, with the offset behind the last one that was read."""
        wanted = self._wanted
        begin, end = max(offsets.start, ledger.start(wanted)), min(offsets.stop, wanted.end)
        found: list[_Found] = []
        size = 0
        if begin >= end:
            return
        for message in chain.from_iterable(log.whole(log.topics.dead_letters, range(begin, end))):
            offset = message.offset() or 0
            headers = read_dead_letter(message)
            if self._takes(message, headers, ledger):
                found.append(_Found(message, headers))
                value = headers.original.length if headers.original else len(message.value() or b"")
                size += value + len(message.key() or b"")
            if len(found) == MAX_DEAD_LETTERS or size > BYTES:
                yield found, offset + 1
                found, size = [], 0
        yield found, end

    def _takes(self, message: ConsumerRecord, headers: DeadLetterHeaders, ledger: Ledger) -> bool:
        """Return whether a dead letter is to be sent back, and count why not."""
        dead_letter = RecordedDeadLetter(
            message.offset() or 0, headers.fault, message.timestamp()[1], is_redriven(headers)
        )
        if dead_letter in ledger:
            return False
        if dead_letter not in self._wanted:
            if dead_letter.redriven and dead_letter in msgspec.structs.replace(self._wanted, again=True):
                self._left_out["again"] += 1
            return False
        if headers.topic in self._topics.tables:
            self._left_out["table"] += 1
        elif headers.topic not in self._topics.inputs or None in (headers.partition, headers.offset):
            self._left_out["foreign"] += 1
        else:
            return True
        return False

    def _with_originals(
        self, inputs: LogReader, found: list[_Found], *, dry_run: bool
    ) -> tuple[list[_Found], Originals]:
        """Return the original messages that are still there, and the dead letters that can be sent back.

        One that is cut needs its original. Nobody needs those of others before they are sent.
        """
        needed = [each for each in found if not dry_run or each.headers.original is not None]
        originals = self._originals(inputs, needed)
        left = [each for each in found if each.headers.original is None or _source(each.headers) in originals]
        self._left_out["lost"] += len(found) - len(left)
        return left, originals

    def _messages(self, found: Sequence[_Found], originals: Originals) -> list[InputMessage]:
        """Make the messages of dead letters again."""
        messages = []
        for message, headers in found:
            original = originals.get(_source(headers))
            self._without_original += original is None
            whole, own = message, message_headers(message)
            if headers.original is not None and original is not None:
                whole, own = original, original.headers() or ()
            topic, key = headers.topic or "", whole.key()
            messages.append(
                InputMessage(
                    topic,
                    headers.partition or 0 if key is None else partition_of(key, self._partitions[topic]),
                    key,
                    whole.value(),
                    redriven_headers(own, message),
                    (original or message).timestamp()[1],
                )
            )
        return messages

    def _originals(self, inputs: LogReader, found: Sequence[_Found]) -> Originals:
        """Return the original messages that are still there, by topic, partition and offset."""
        wanted: dict[PartitionId, dict[int, _Found]] = defaultdict(dict)
        for each in found:
            topic, partition, offset = _source(each.headers)
            if partition < self._partitions[topic]:
                wanted[PartitionId(topic, partition)][offset] = each
        originals: Originals = {}
        for source, by_offset in wanted.items():
            log = PartitionLog(inputs, self._topics, source.partition)
            for offset, message in _at(log, source.topic, sorted(by_offset)).items():
                if _is_original(message, *by_offset[offset]):
                    originals[source.topic, source.partition, offset] = message
        return originals


def _source(headers: DeadLetterHeaders) -> Source:
    return headers.topic or "", headers.partition or 0, headers.offset or 0


def _is_original(message: ConsumerRecord, dead_letter: ConsumerRecord, headers: DeadLetterHeaders) -> bool:
    """Return whether a message is that of a dead letter: another one may have its offset in a new topic."""
    if headers.original is not None:
        return headers.original == Original.of(message.value())
    return message.key() == dead_letter.key()


def _at(log: PartitionLog, topic: str, offsets: Sequence[int]) -> dict[int, ConsumerRecord]:
    """Return the messages at some offsets, in their order, as far as there are any."""
    found: dict[int, ConsumerRecord] = {}
    place = 0
    while place < len(offsets):
        for message in log.messages(topic, offsets[place]):
            offset = message.offset() or 0
            while place < len(offsets) and offsets[place] < offset:
                place += 1  # it is gone
            if place < len(offsets) and offsets[place] == offset:
                found[offset] = message
                place += 1
            if place == len(offsets) or offsets[place] - offset > FAR:
                break
        else:
            break
    return found
