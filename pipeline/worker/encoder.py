"""Encode the records of a partition, once, right before they are produced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count, repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.records import decimals
from pipeline.records.encoding import encode, encode_all
from pipeline.records.fields import Id, Status
from pipeline.records.names import (
    EXCEPTION_HEADER,
    MESSAGE_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    TOPIC_HEADER,
)
from pipeline.records.outcome_encoder import LabelFields, encode_label_fields, prefix_end
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.outputs import LabelRequest, Prediction
from pipeline.records.slates import Slates
from pipeline.records.texts import Texts, id_name_lengths
from pipeline.records.waiting_texts import WaitingTexts
from pipeline.task.batch import Batch
from pipeline.task.columns import CorrectedPrediction, LabelRequestColumns, OutcomeColumns, PredictionColumns
from pipeline.task.plan import DeadLetter
from pipeline.worker.batch_columns import FEWEST, UsualBatchEncoder, is_usual


class EncodedRecords(NamedTuple):
    """Records for one topic, in the order of their sequences."""

    values: Sequence[bytes]
    keys: Sequence[Id]
    """The ids of which the records' keys are made."""
    timestamps: list[int]
    """Event times, in milliseconds."""


class EncodedBatch(NamedTuple):
    """The records of a batch."""

    predictions: EncodedRecords
    outcomes: EncodedRecords
    requests: EncodedRecords


def dead_letter_headers(dead_letter: DeadLetter) -> list[tuple[str, str | bytes | None]]:
    """Return the headers of a dead letter: those of its message, then fault, reason and origin."""
    source = dead_letter.source
    errors = {
        EXCEPTION_HEADER: dead_letter.fault.value,
        MESSAGE_HEADER: dead_letter.reason,
        TOPIC_HEADER: source.topic,
        PARTITION_HEADER: str(source.partition),
        OFFSET_HEADER: str(source.offset),
    }
    return [*source.headers, *((name, value.encode()) for name, value in errors.items())]


@cache  # they never change, and take milliseconds to make
def _layout_of(types: OutputTypes) -> tuple[UsualBatchEncoder, NDArray[np.int64]]:
    return UsualBatchEncoder(types), id_name_lengths(types.prediction, types.entities)


class RecordEncoder:
    """Encodes the batches of one partition, in their order.

    An outcome begins with the text of its prediction, most of which are digits of features. So the encoder
    keeps that text for each prediction that waits for its label, as long as it is held in memory.

    Parameters
    ----------
    types
        The types of the stream's outputs.

    Examples
    --------
    >>> prediction = Prediction("e", 7, 3, 5, 0.5, None, True, [0.25], model_version=0, sequence=9)
    >>> encoder = RecordEncoder()
    >>> encoder.restore([prediction])
    >>> len(encoder)
    1
    """

    def __init__(self, types: OutputTypes = KUAIREC_TYPES) -> None:
        self._types = types
        self._usual, self._skipped = _layout_of(types)
        self._waiting = WaitingTexts()

    def __len__(self) -> int:
        """Return the number of predictions without an outcome, but for those spilled."""
        return len(self._waiting)

    def restore(self, predictions: Sequence[Prediction]) -> None:
        """Keep the texts of predictions that were written before and still wait for their label.

        Parameters
        ----------
        predictions
            In the order of their sequences.
        """
        numbers = np.array([prediction.number for prediction in predictions], dtype=np.int64)
        self._waiting.add(numbers, *_with_prefix_ends(encode_all(predictions)))

    def encode(self, batch: Batch) -> EncodedBatch:
        """Encode the next batch."""
        many = len(batch.predictions) + len(batch.outcomes) >= FEWEST
        usual = many and self._types.slates is None and is_usual(batch)
        return self._encode_columns(batch) if usual else self._encode_records(batch)

    def _encode_columns(self, batch: Batch) -> EncodedBatch:
        """Encode a usual batch, with the bytes of `_encode_records`."""
        predictions, outcomes = batch.predictions, batch.outcomes
        (texts, prefix_ends), numbers = self._usual.predictions(predictions), outcomes.prediction_numbers
        before = numbers < predictions.first if len(predictions) else np.ones(len(numbers), dtype=np.bool_)
        closed = numbers[~before] - predictions.first
        own = Texts(texts.text, texts.begins[closed], prefix_ends[closed])
        rows = np.empty(len(numbers), dtype=np.int64)
        rows[np.append(np.flatnonzero(before), np.flatnonzero(~before))] = np.arange(len(numbers))
        prefixes = Texts.packed([self._prior_prefixes(numbers[before], batch.spilled), own]).select(rows)
        values = self._usual.outcomes(outcomes, prefixes)
        self._add_pending(predictions.numbers, texts, prefix_ends, closed)
        return EncodedBatch(
            EncodedRecords(texts, predictions.keys, predictions.timestamps),
            EncodedRecords(values, outcomes.keys, outcomes.timestamps),
            EncodedRecords([], [], []),
        )

    def _encode_records(self, batch: Batch) -> EncodedBatch:
        """Encode any batch, record by record."""
        predictions, outcomes = batch.predictions, batch.outcomes
        features = decimals.encode_rows(predictions.features) if len(predictions) else []
        texts = _encode_predictions(predictions, features, self._types.prediction)
        own, numbers = predictions.numbers, outcomes.prediction_numbers
        slates, corrected = len(predictions.positions) > 0, [*outcomes.corrected]
        rows = np.searchsorted(own, numbers) if slates else numbers - predictions.first
        before = numbers < own[0] if len(own) else np.ones(len(rows), dtype=np.bool_)
        before[corrected] = False
        prior = self._prior_texts(numbers[before], batch.spilled)
        closed = ~before
        closed[corrected] = False
        self._add_pending(own, *_with_prefix_ends(texts), rows[closed])
        again = [self._encode_again(each) for each in outcomes.corrected.values()]
        rows += len(prior)
        rows[before] = np.arange(len(prior))
        rows[corrected] = len(prior) + len(texts) + np.arange(len(again))
        values = _encode_outcomes(outcomes, [*prior, *texts, *again], rows.tolist(), self._types.label_fields)
        return EncodedBatch(
            EncodedRecords(texts, predictions.keys, predictions.timestamps)
            if self._types.slates is None
            else _encode_slates(predictions, features, self._types.slates),
            EncodedRecords(values, outcomes.keys, outcomes.timestamps),
            _encode_requests(batch.requests, predictions, self._types.label_request),
        )

    def _encode_again(self, corrected: CorrectedPrediction) -> bytes:
        """Return the text of a prediction that was written before."""
        make: Any = self._types.prediction  # whose ids are the stream's
        [features] = decimals.encode_rows(np.array([corrected.features]))
        return encode(
            make(
                corrected.event_id,
                *corrected.ids,
                corrected.timestamp,
                corrected.score,
                corrected.probability,
                corrected.predicted,
                msgspec.Raw(features),
                corrected.model_version,
                corrected.sequence,
                corrected.challengers,
                corrected.asked,
            )
        )

    def ids(self, numbers: NDArray[np.int64]) -> list[list[Id]]:
        """Return the ids of waiting predictions, as `WrittenIds` of the join says."""
        records = map(self._types.predictions.decode, self._waiting.read(numbers))
        return [[record.event_id, *record.ids] for record in records]

    def same_ids(self, numbers: NDArray[np.int64], ids: Texts, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which waiting predictions have these ids, as `WrittenIds` of the join says."""
        return ids.begin(self._waiting.at(numbers), rows, self._skipped)

    def take(self, sequences: NDArray[np.int64]) -> list[bytes]:
        """Give the texts of waiting predictions, which are kept no longer."""
        return [*self._waiting.take(sequences)]

    def _prior_prefixes(self, numbers: NDArray[np.int64], spilled: Sequence[Prediction]) -> Texts:
        """Return the prefixes of the outcomes of predictions of earlier batches."""
        if not spilled:
            return self._waiting.take_prefixes(numbers)
        texts, ends = _with_prefix_ends(self._prior_texts(numbers, spilled))
        return Texts(texts.text, texts.begins, ends)

    def _prior_texts(self, numbers: NDArray[np.int64], spilled: Sequence[Prediction]) -> list[bytes]:
        """Return the texts of predictions of earlier batches, some of which were spilled."""
        texts = {each.number: text for each, text in zip(spilled, encode_all(spilled), strict=True)}
        kept = iter(self.take(np.array([each for each in numbers.tolist() if each not in texts], np.int64)))
        return [texts.get(number) or next(kept) for number in numbers.tolist()]

    def _add_pending(
        self,
        numbers: NDArray[np.int64],
        texts: Texts,
        prefix_ends: NDArray[np.int64],
        closed: NDArray[np.int64],
    ) -> None:
        """Keep the texts of new predictions but for those rows that are closed already."""
        waits = np.ones(len(numbers), dtype=np.bool_)
        waits[closed] = False
        rows = np.flatnonzero(waits)
        self._waiting.add(numbers[rows], texts.select(rows), prefix_ends[rows])


def _with_prefix_ends(predictions: list[bytes]) -> tuple[Texts, NDArray[np.int64]]:
    """Return the texts of predictions, and where the prefix of each one's outcome ends."""
    texts = Texts.of(predictions)
    return texts, texts.begins + np.array([*map(prefix_end, predictions)], dtype=np.int64)


def _encode_predictions(
    columns: PredictionColumns, features: Sequence[bytes], record: type[Prediction]
) -> list[bytes]:
    if not len(columns):
        return []
    make: Any = record  # whose ids are the stream's
    slates = () if not len(columns.positions) else (columns.positions.tolist(),)
    return encode_all(
        map(
            make,
            columns.event_ids,
            *columns.ids,
            columns.timestamps,
            columns.scores,
            columns.probabilities,
            columns.predicted,
            map(msgspec.Raw, features),
            *((columns.tables,) if columns.tables else ()),
            *zip(*columns.carried, strict=True),
            columns.versions,
            *slates,
            columns.sequences.tolist() if slates else count(columns.first),
            columns.challengers,
            repeat(None) if columns.asked is None else columns.asked,
        )
    )


def _encode_slates(columns: PredictionColumns, features: Sequence[bytes], slates: Slates) -> EncodedRecords:
    """Encode the predictions of slates, given the features of their items as text."""
    if not len(columns):
        return EncodedRecords([], [], [])
    items = [
        slates.make_item(ids, *rest)
        for ids, *rest in zip(
            zip(*columns.ids, strict=True),
            columns.scores,
            columns.probabilities,
            columns.predicted,
            map(msgspec.Raw, features),
            *zip(*columns.carried, strict=True),
            columns.challengers,
            strict=True,
        )
    ]
    firsts = [rows.start for rows in columns.slates]
    records = [
        slates.make(
            columns.event_ids[rows.start],
            [column[rows.start] for column in columns.ids],
            columns.timestamps[rows.start],
            items[rows],
            columns.tables[rows.start] if columns.tables else None,
            columns.versions[rows.start],
            sequence,
        )
        for sequence, rows in enumerate(columns.slates, columns.first)
    ]
    return EncodedRecords(
        encode_all(records),
        [columns.keys[row] for row in firsts],
        [columns.timestamps[row] for row in firsts],
    )


def _encode_outcomes(
    columns: OutcomeColumns,
    texts: list[bytes],
    rows: list[int],
    label_fields: type[LabelFields],
) -> list[bytes]:
    """Encode outcomes.

    Parameters
    ----------
    columns
        The outcomes.
    texts
        Texts of predictions, which begin with the prefixes of the outcomes.
    rows
        The text of each outcome.
    label_fields
        The type of what labels add to predictions.
    """
    if not len(columns):
        return []
    rests = encode_label_fields(
        map(
            label_fields,
            columns.prediction_sequences,
            columns.watch_ratios,
            *((columns.weights,) if columns.weights else ()),
            columns.labels,
            columns.label_timestamps,
            columns.correct,
            columns.losses,
            _statuses(columns),
            count(columns.first),
            map(columns.shared.get, range(len(columns))) if columns.shared else repeat(None),
            columns.challengers,
            columns.asked,
            _formers(columns),
        )
    )
    return [texts[row][: prefix_end(texts[row])] + rest for row, rest in zip(rows, rests, strict=True)]


def _statuses(columns: OutcomeColumns) -> list[Status]:
    """Return the status of each outcome."""
    statuses: list[Status] = [
        "expired" if moment is None else "labelled" for moment in columns.label_timestamps
    ]
    for row, corrected in columns.corrected.items():
        statuses[row] = corrected.status
    return statuses


def _formers(columns: OutcomeColumns) -> Iterable[float | None]:
    """Return the value that each correction found learned; None for other outcomes."""
    corrected = columns.corrected
    if not corrected:
        return repeat(None)
    return (corrected[row].former if row in corrected else None for row in range(len(columns)))


def _encode_requests(
    columns: LabelRequestColumns, predictions: PredictionColumns, record: type[LabelRequest]
) -> EncodedRecords:
    make: Any = record  # whose ids are the stream's
    values = [
        encode(
            make(
                predictions.event_ids[row],
                *(column[row] for column in predictions.ids),
                predictions.timestamps[row],
                predictions.scores[row],
                predictions.first + row,
                sequence,
            )
        )
        for sequence, row in enumerate(columns.rows, columns.first)
    ]
    return EncodedRecords(
        values,
        [predictions.keys[row] for row in columns.rows],
        [predictions.timestamps[row] for row in columns.rows],
    )
