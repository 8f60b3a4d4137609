"""Export the committed records of a topic, from where the last export has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl

from pipeline.broker.folder_lock import locked
from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import StateError
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.output_values import OutputValues
from pipeline.log.decoding import offsets_of
from pipeline.log.partition_log import PartitionLog
from pipeline.log.ranges import Watermarks
from pipeline.log.reader import LogReader
from pipeline.records.outputs import Outcome, Prediction
from pipeline.tools.export.columns import Columns, What
from pipeline.tools.export.folder import INCOMPLETE, ExportFolder
from pipeline.tools.times import date

RECORDS: Final = 50_000
"""Records that are held in memory, at most, before they are written."""
BYTES: Final = 64 * 2**20
"""Bytes of records after which those that are held are written."""


class Summary(msgspec.Struct):
    """What an export has done."""

    topic: str
    folder: str
    records: int
    """Records that were exported now."""
    total: int
    """Records of all exports to this folder."""
    files: int
    """Files of this folder."""
    deleted_offsets: int
    """Offsets that retention deleted before they were exported now."""
    next_offsets: dict[str, int]
    """Where the next export goes on, by partition."""
    complete: bool
    """False if it was stopped."""


class Export:
    """An export of the predictions or outcomes of a pipeline.

    Parameters
    ----------
    config
        The whole configuration.
    what
        Which records.
    folder
        Where to write; it is made if it does not exist.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        The topic does not exist.
    """

    def __init__(self, config: Config, what: What, folder: Path) -> None:
        topics = self._topics = topics_of(config)
        self._kafka = config.kafka
        self._topic = topics.predictions if what == "predictions" else topics.outcomes
        self._folder = folder
        self._columns = Columns(config.stream, config.features.kind, what)
        self._ranges = Watermarks(config.kafka, [self._topic]).ranges()

    @property
    def total(self) -> int:
        """The number of offsets of all partitions."""
        return sum(offsets.stop for offsets in self._ranges.values())

    def run(
        self, stopping: Callable[[], bool] = lambda: False, progress: Callable[[int], None] = lambda _: None
    ) -> Summary:
        """Export what is committed by now and was not exported yet.

        Parameters
        ----------
        stopping
            Tells whether to stop.
        progress
            Called with the number of offsets that were exported.

        Returns
        -------
        Summary
            What was done.

        Raises
        ------
        ConfigError, StateError, StorageError
            The folder has something else, or cannot be written: see `ExportFolder`.
        StateError
            The topic has a record that no worker has written, or was deleted and created anew.
        """
        with (
            locked(self._folder / INCOMPLETE, "an export", "Name another folder."),
            LogReader(self._kafka, values=OutputValues(self._topics)) as reader,
        ):
            folder = ExportFolder(self._folder, self._topic, self._columns.schema)
            before = [folder.partition(each.partition) for each in self._ranges]
            complete, done = True, 0
            for each, offsets in self._ranges.items():
                begin = folder.partition(each.partition).next_offset
                log = PartitionLog(reader, self._topics, each.partition)
                if begin > offsets.stop:
                    log.refuse_end_before(self._topic, begin)
                if begin < offsets.stop:
                    moved = _shifted(progress, done)
                    complete &= self._export(log, folder, offsets, stopping=stopping, progress=moved)
                done += offsets.stop
            after = {each.partition: folder.partition(each.partition) for each in self._ranges}
        records, deleted = (
            sum(getattr(each, name) for each in after.values()) - sum(getattr(each, name) for each in before)
            for name in ("records", "deleted_offsets")
        )
        return Summary(
            self._topic,
            str(self._folder),
            records,
            sum(each.records for each in after.values()),
            sum(len(each.files) for each in after.values()),
            deleted,
            {str(number): each.next_offset for number, each in after.items()},
            complete,
        )

    def _export(
        self,
        log: PartitionLog,
        folder: ExportFolder,
        offsets: range,
        *,
        stopping: Callable[[], bool],
        progress: Callable[[int], None],
    ) -> bool:
        """Export a partition; return whether it was not stopped."""
        partition = PartitionId(self._topic, log.partition)
        begin = folder.partition(log.partition).next_offset
        deleted = max(0, offsets.start - begin)
        held = _Held(self._columns, partition)
        for messages in log.whole(self._topic, range(max(begin, offsets.start), offsets.stop)):
            held.add(offsets_of(messages), self._columns.decode(messages))
            held.bytes += sum(len(message.value() or b"") for message in messages)
            if stopping():
                return False
            if len(held) >= RECORDS or held.bytes >= BYTES:
                folder.append(log.partition, held.days(), held.next_offset, deleted)
                progress(held.next_offset)
                held, deleted = _Held(self._columns, partition), 0
        folder.append(log.partition, held.days(), offsets.stop, deleted)
        progress(offsets.stop)
        return True


class _Held:
    """Records that are not written yet, by day."""

    def __init__(self, columns: Columns, partition: PartitionId) -> None:
        self.bytes = 0
        self.next_offset = 0
        self._columns = columns
        self._partition = partition
        self._days: dict[str, tuple[list[int], list[Prediction | Outcome]]] = defaultdict(lambda: ([], []))

    def __len__(self) -> int:
        return sum(len(offsets) for offsets, _ in self._days.values())

    def add(self, offsets: list[int], rows: Sequence[Sequence[Any]]) -> None:
        for offset, records in zip(offsets, rows, strict=True):
            for record in records:
                of_day, others = self._days[date(record.timestamp)]
                of_day.append(offset)
                others.append(record)
        self.next_offset = offsets[-1] + 1

    def days(self) -> dict[str, pl.DataFrame]:
        """Return a table for each day.

        Raises
        ------
        StateError
            A record has a number that no worker writes.
        """
        try:
            return {day: self._columns.frame(*rows) for day, rows in sorted(self._days.items())}
        except (OverflowError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise StateError(
                f"{self._partition.topic}, partition {self._partition.partition}, before offset "
                f"{self.next_offset}: no worker wrote one of these records: {error}"
            ) from error


def _shifted(progress: Callable[[int], None], done: int) -> Callable[[int], None]:
    return lambda more: progress(done + more)
