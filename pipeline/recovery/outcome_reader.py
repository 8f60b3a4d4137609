"""Read outcomes to learn from, decoded to columns, many records at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipeline.config.topics import Topics
from pipeline.kafka.log import DECODE_ERRORS, LogReader, decode_records, offsets_of
from pipeline.records.outcome_decoder import DecodedOutcomes, OutcomeDecoder
from pipeline.records.output_types import OutputTypes


class OutcomeChunk(NamedTuple):
    """A slice of the outcomes' log."""

    outcomes: DecodedOutcomes
    offsets: list[int]

    def __bool__(self) -> bool:
        return bool(self.offsets)


def read_outcomes(log: LogReader, topics: Topics, partition: int, offset: int) -> Iterator[OutcomeChunk]:
    """Read outcomes from an offset on, in the slices of `LogReader.read`.

    Raises
    ------
    StateError
        A record was not written by a worker.
    """
    types = OutputTypes.of(topics.stream)
    decoder = OutcomeDecoder(types)
    for messages in log.read(topics.outcomes, partition, offset):
        try:
            outcomes = decoder.decode([message.value() or b"" for message in messages])
        except DECODE_ERRORS:
            decode_records(types.outcomes, messages)  # names the faulty one
            raise
        yield OutcomeChunk(outcomes, offsets_of(messages))
