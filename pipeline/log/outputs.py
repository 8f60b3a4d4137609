"""Slices of the predictions and outcomes of a partition, decoded to what a restore and a follower need."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from typing import NamedTuple, Self

from pipeline.kafka.types import ConsumerRecord
from pipeline.log.decoding import DECODE_ERRORS, decode_records, offsets_of
from pipeline.records.encoding import encode_all
from pipeline.records.outcome_decoder import DecodedOutcomes, OutcomeDecoder
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome, Prediction
from pipeline.records.slates import SlatePrediction, Slates


class OutcomeChunk(NamedTuple):
    """A slice of the outcomes' log."""

    outcomes: DecodedOutcomes
    offsets: list[int]

    def __bool__(self) -> bool:
        return bool(self.offsets)

    @property
    def sequences(self) -> list[int]:
        """The sequence of each outcome."""
        return self.outcomes.sequences

    def below(self, stop: int) -> Self:
        """Return the outcomes below a sequence."""
        rows = bisect_left(self.sequences, stop)
        return self if rows == len(self.offsets) else type(self)(self.outcomes[:rows], self.offsets[:rows])


class OutcomeRecords(NamedTuple):
    """A slice of the outcomes' log, an object for each."""

    sequences: list[int]
    offsets: list[int]
    records: list[Outcome]

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def below(self, stop: int) -> Self:
        """Return the outcomes below a sequence."""
        rows = bisect_left(self.sequences, stop)
        return type(self)(self.sequences[:rows], self.offsets[:rows], self.records[:rows])


class PredictionChunk(NamedTuple):
    """A slice of the predictions' log."""

    sequences: list[int]
    """Of each record of the log."""
    offsets: list[int]
    """The same."""
    predictions: list[Prediction]
    """Of a slate, one for each item. Those below the sequence to spill are `RawPrediction`."""
    texts: list[bytes]
    """The JSON of each prediction."""

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def below(self, stop: int) -> Self:
        """Return the records below a sequence."""
        records = bisect_left(self.sequences, stop)
        rows = bisect_left(self.predictions, stop, key=attrgetter("sequence"))
        return type(self)(
            self.sequences[:records], self.offsets[:records], self.predictions[:rows], self.texts[:rows]
        )


def decode_outcomes(decoder: OutcomeDecoder, messages: Sequence[ConsumerRecord]) -> OutcomeChunk:
    """Decode messages of the topic of outcomes.

    Raises
    ------
    StateError
        A record was not written by a worker.
    """
    try:
        outcomes = decoder.decode([message.value() or b"" for message in messages])
    except DECODE_ERRORS:
        decode_records(decoder.types.outcomes, messages)  # names the faulty one
        raise
    return OutcomeChunk(outcomes, offsets_of(messages))


def decode_outcome_records(types: OutputTypes, messages: Sequence[ConsumerRecord]) -> OutcomeRecords:
    """Decode messages of the topic of outcomes, an object for each; raise as `decode_outcomes`."""
    records = decode_records(types.outcomes, messages)
    return OutcomeRecords([record.sequence for record in records], offsets_of(messages), records)


def decode_prediction_chunk(
    types: OutputTypes, messages: Sequence[ConsumerRecord], spill_below: int
) -> PredictionChunk:
    """Decode messages of the topic of predictions.

    Parameters
    ----------
    types
        The types of the stream's outputs.
    messages
        The messages.
    spill_below
        No feature is decoded of predictions below this sequence.

    Raises
    ------
    StateError
        A record was not written by a worker.
    """
    if types.slates is not None:
        return expand_slates(
            decode_records(types.slates.decoder, messages), offsets_of(messages), types.slates
        )
    texts = [message.value() or b"" for message in messages]
    try:
        predictions = _decode_predictions(texts, types, spill_below)
    except DECODE_ERRORS:
        decode_records(types.predictions, messages)  # names the faulty one
        raise
    return PredictionChunk([each.sequence for each in predictions], offsets_of(messages), predictions, texts)


def _decode_predictions(texts: list[bytes], types: OutputTypes, spill_below: int) -> list[Prediction]:
    decode = types.predictions.decode
    if not spill_below:
        return list(map(decode, texts))
    records: list[Prediction] = list(map(types.raw_predictions.decode, texts))
    if records and records[-1].sequence < spill_below:
        return records
    whole = [record.sequence >= spill_below for record in records]
    decoded = map(decode, compress(texts, whole))
    return [next(decoded) if needed else record for needed, record in zip(whole, records, strict=True)]


def expand_slates(
    records: Sequence[SlatePrediction], offsets: Sequence[int], slates: Slates
) -> PredictionChunk:
    """Return the predictions of the items of slates."""
    predictions = [each for record in records for each in slates.expand(record)]
    sequences = [record.sequence for record in records]
    return PredictionChunk(sequences, list(offsets), predictions, encode_all(predictions))
