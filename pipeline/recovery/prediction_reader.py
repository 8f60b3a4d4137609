"""Read predictions that may wait for their label; of those that are spilled, no feature is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

from pipeline.config.topics import Topics
from pipeline.kafka.log import DECODE_ERRORS, LogReader, decode_records, offsets_of
from pipeline.records.encoding import encode_all
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Prediction
from pipeline.records.slates import SlatePrediction, Slates


class PredictionChunk(NamedTuple):
    """A slice of the predictions' log. Of a slate, each item is a prediction."""

    records: list[Prediction]
    """Those below the sequence to spill are `pipeline.records.outputs.RawPrediction`."""
    offsets: list[int]
    texts: list[bytes]

    def __bool__(self) -> bool:
        return bool(self.records)


def decode_predictions(texts: list[bytes], types: OutputTypes, spill_below: int) -> list[Prediction]:
    """Decode predictions.

    Parameters
    ----------
    texts
        The records' JSON.
    types
        The types of the stream's outputs.
    spill_below
        No feature is decoded of predictions below this sequence.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError
        One of the values is no prediction.
    """
    decode = types.predictions.decode
    if not spill_below:
        return list(map(decode, texts))
    records: list[Prediction] = list(map(types.raw_predictions.decode, texts))
    if records and records[-1].sequence < spill_below:
        return records
    whole = [record.sequence >= spill_below for record in records]
    decoded = map(decode, compress(texts, whole))
    return [next(decoded) if needed else record for needed, record in zip(whole, records, strict=True)]


def read_predictions(
    log: LogReader, topics: Topics, partition: int, offset: int, spill_below: int
) -> Iterator[PredictionChunk]:
    """Read predictions from an offset on, in the slices of `LogReader.read`.

    Raises
    ------
    StateError
        A record was not written by a worker.
    """
    types = OutputTypes.of(topics.stream)
    for messages in log.read(topics.predictions, partition, offset):
        if types.slates is not None:
            yield expand_slates(
                decode_records(types.slates.decoder, messages), offsets_of(messages), types.slates
            )
            continue
        texts = [message.value() or b"" for message in messages]
        try:
            records = decode_predictions(texts, types, spill_below)
        except DECODE_ERRORS:
            decode_records(types.predictions, messages)  # names the faulty one
            raise
        yield PredictionChunk(records, offsets_of(messages), texts)


def expand_slates(
    records: Sequence[SlatePrediction], offsets: Sequence[int], slates: Slates
) -> PredictionChunk:
    """Return the predictions of the items of slates."""
    found = [
        (each, offset)
        for record, offset in zip(records, offsets, strict=True)
        for each in slates.expand(record)
    ]
    predictions = [each for each, _ in found]
    return PredictionChunk(predictions, [offset for _, offset in found], encode_all(predictions))
