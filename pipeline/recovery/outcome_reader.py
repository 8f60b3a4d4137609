"""Read outcomes to learn from; features are decoded into columns, many records at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.kafka.log import DECODE_ERRORS, LogReader, decode_records, offsets_of
from pipeline.kafka.topics import Topics
from pipeline.records.decimals import decode_rows
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.outputs import RawOutcome


class OutcomeChunk(NamedTuple):
    """A slice of the outcomes' log."""

    records: list[RawOutcome]
    offsets: list[int]
    features: NDArray[np.float64]
    """The features of the records, shape (n, features), float64."""

    def __bool__(self) -> bool:
        return bool(self.records)


def decode_outcomes(
    values: Sequence[bytes], types: OutputTypes = KUAIREC_TYPES
) -> tuple[list[RawOutcome], NDArray[np.float64]]:
    """Decode outcomes.

    Parameters
    ----------
    values
        The records' JSON.
    types
        The types of the stream's outputs.

    Returns
    -------
    list of RawOutcome
        The records.
    ndarray
        Their features, shape (n, features), float64.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError
        One of the values is no outcome.
    """
    records = list(map(types.raw_outcomes.decode, values))
    return records, decode_rows([record.features for record in records], types.features)


def read_outcomes(log: LogReader, topics: Topics, partition: int, offset: int) -> Iterator[OutcomeChunk]:
    """Read outcomes from an offset on, in the slices of `LogReader.read`.

    Raises
    ------
    StateError
        A record was not written by a worker.
    """
    types = OutputTypes.of(topics.stream)
    for messages in log.read(topics.outcomes, partition, offset):
        try:
            records, features = decode_outcomes([message.value() or b"" for message in messages], types)
        except DECODE_ERRORS:
            decode_records(types.outcomes, messages)  # names the faulty one
            raise
        yield OutcomeChunk(records, offsets_of(messages), features)
