"""Find out from the topics alone which records of a replay they hold already.

The order of a replay is fixed, and so is the partition of each record. An idempotent producer appends to a
partition in the order in which it gets the records, without gaps and repeats, however it ends. So a partition
that holds n records holds the first n of those that the replay sends to it. The partitions need not have come
equally far. The last record of each partition is compared with the one that this predicts: if they are the
same, the topics hold this replay and nothing else. They differ where another program wrote to the topic, and
where a broker that restarted has appended a batch twice: records whose timestamps are older than
``producer.id.expiration.ms`` do not protect a producer from that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import DataError
from pipeline.records.decoding import InputDecoder
from pipeline.records.fields import Id
from pipeline.records.input_decoders import InputDecoders, event_id_decoder
from pipeline.records.inputs import Interaction, Label
from pipeline.records.schemas import SchemaSource
from pipeline.sources.schedule import Integers, Schedule


class Tail(NamedTuple):
    """The end of a partition."""

    end: int
    """Number of records in the partition, which is the offset of the next one."""
    last: bytes | None
    """Value of the last record; None in an empty partition."""


Tails = tuple[list[Tail], list[Tail]]
"""By partition: the tails of the topic of interactions, and of the topic of labels."""


NEW_TOPIC = (
    "If another program wrote to the topic, or a broker restarted meanwhile, only a new topic (another "
    "--prefix) can be filled without gaps and repeats"
)


def remaining_records(
    schedule: Schedule,
    topics: tuple[str, str],
    tails: Tails,
    stream: Stream = KUAIREC,
    *,
    schemas: SchemaSource | None = None,
) -> Integers:
    """Return the records of a schedule that are still to be sent, in order.

    Parameters
    ----------
    schedule
        The whole replay.
    topics
        Names of the topics of interactions and labels.
    tails
        Ends of the partitions of each topic.
    stream
        Definition of the stream, which says where in a message the event's id is.
    schemas
        Knows the schemas of inputs that are not plain JSON; None where there are none.

    Returns
    -------
    ndarray
        Numbers of records, int64, see `Schedule`.

    Raises
    ------
    DataError
        The topics hold something else than the beginning of this replay.
    """
    sent = np.zeros(2 * len(schedule.events), dtype=bool)
    interactions, labels = InputDecoders.of(stream, schemas)
    event_ids = [
        event_id_decoder(definition) if definition.format == "json" else _event_id_of(decoder)
        for definition, decoder in ((stream.interactions, interactions), (stream.labels, labels))
    ]
    parts = zip(topics, schedule.records_by_partition(), tails, event_ids, strict=True)
    for topic, by_partition, ends, event_id in parts:
        for number, (records, tail) in enumerate(zip(by_partition, ends, strict=True)):
            _verify(f"{topic}, partition {number}", schedule, records, tail, event_id)
            sent[records[: tail.end]] = True
    return schedule.order[~sent[schedule.order]]


def _event_id_of(decoder: InputDecoder[Interaction] | InputDecoder[Label]) -> Callable[[bytes], Id]:
    return lambda value: decoder.decode(value).event_id


def _verify(
    topic_partition: str,
    schedule: Schedule,
    records: Integers,
    tail: Tail,
    event_id_of: Callable[[bytes], Id],
) -> None:
    if tail.end == 0:
        return
    try:
        event_id = event_id_of(tail.last or b"")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{topic_partition}: its last record is no event ({error}). {NEW_TOPIC}") from error
    ids = schedule.events.frame["event_id"]
    last = f"{topic_partition}: its last record is event {event_id!r}"
    if str(event_id) not in ids:
        raise DataError(
            f"{last}, which is not in the file. Resume with the file that the replay was started with"
        )
    if tail.end > len(records) or ids[int(records[tail.end - 1] % len(ids))] != event_id:
        raise DataError(
            f"{last} and number {tail.end} there, which is not its number in this replay. Resume with the "
            f"--limit that the replay was started with. {NEW_TOPIC}"
        )


def count_by_partition(schedule: Schedule, records: Integers) -> tuple[Integers, Integers]:
    """Count records of a schedule by partition.

    Parameters
    ----------
    schedule
        The whole replay.
    records
        Numbers of records, int64.

    Returns
    -------
    tuple of ndarray
        Counts of interactions and of labels, each of shape (partitions,).
    """
    count = len(schedule.events)
    interactions, labels = records[records < count], records[records >= count] - count
    return (
        np.bincount(schedule.partition[interactions], minlength=schedule.partitions),
        np.bincount(schedule.partition[labels], minlength=schedule.partitions),
    )
