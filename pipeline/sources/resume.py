"""What of a replay is in the topics already, told from nothing but the topics.

The order of a replay is fixed, and so is every record's partition. An idempotent producer appends to a
partition in the order in which it was told to, without gaps and without repeats, however it ends. So the
number of records that a partition holds says which they are: the first so many of those it is sent. The
two topics and their partitions need not have come equally far. That the last record is the one that this
predicts shows that the topics hold this replay and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from pipeline.errors import DataError
from pipeline.records.fields import Id
from pipeline.sources.schedule import Integers, Schedule


class Tail(NamedTuple):
    """The end of a partition."""

    end: int
    """Records in the partition, which is the offset of the next one."""
    last: bytes | None
    """Value of the last record; None where there is none."""


Tails = tuple[list[Tail], list[Tail]]
"""Of the partitions of the topic of interactions, and of that of labels."""


NEW_TOPIC = (
    "If something besides one replay wrote to the topic, only a new one (another --prefix) can be filled "
    "without gaps and repeats"
)


class EventIdOnly(msgspec.Struct):
    """What is needed of a record to tell which one it is."""

    event_id: Id


def remaining_records(schedule: Schedule, topics: tuple[str, str], tails: Tails) -> Integers:
    """Give the records of a schedule that are still to be sent, in order.

    Parameters
    ----------
    schedule
        The whole replay.
    topics
        Names of the topics of interactions and labels.
    tails
        How far the partitions of each have come.

    Raises
    ------
    DataError
        The topics hold something else than the beginning of this replay.
    """
    sent = np.zeros(len(schedule.order), dtype=bool)
    for topic, contents, ends in zip(topics, schedule.contents(), tails, strict=True):
        for number, (records, tail) in enumerate(zip(contents, ends, strict=True)):
            _verify(f"{topic}, partition {number}", schedule, records, tail)
            sent[records[: tail.end]] = True
    return schedule.order[~sent[schedule.order]]


def _verify(place: str, schedule: Schedule, records: Integers, tail: Tail) -> None:
    if tail.end == 0:
        return
    try:
        event_id = msgspec.json.decode(tail.last or b"", type=EventIdOnly).event_id
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{place}: its last record is no event ({error}). {NEW_TOPIC}") from error
    ids = schedule.events.frame["event_id"]
    last = f"{place}: its last record is event {event_id!r}"
    if str(event_id) not in ids:
        raise DataError(f"{last}, which is not in the file. Resume with the file that was begun with")
    if tail.end > len(records) or ids[int(records[tail.end - 1] % len(ids))] != event_id:
        raise DataError(
            f"{last} and number {tail.end} there, which is not its number in this replay. Resume with the "
            f"--limit that was begun with. {NEW_TOPIC}"
        )


def count_by_partition(schedule: Schedule, records: Integers) -> tuple[Integers, Integers]:
    """Count records of a schedule by partition: interactions, labels; each of shape (partitions,)."""
    count = len(schedule.events)
    interactions, labels = records[records < count], records[records >= count] - count
    return (
        np.bincount(schedule.partition[interactions], minlength=schedule.partitions),
        np.bincount(schedule.partition[labels], minlength=schedule.partitions),
    )
