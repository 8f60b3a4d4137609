"""Encode the records of a partition, once, right before they are produced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count, repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.join.prediction_columns import UNDECIDED, PredictionColumns
from pipeline.join.records import ChallengerScores
from pipeline.join.tables import Join
from pipeline.records import decimals
from pipeline.records.encoding import encode, encode_all
from pipeline.records.fields import Id
from pipeline.records.outcome_encoder import encode_label_fields, prefix_end
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.records.places import flagged
from pipeline.records.slates import Slates
from pipeline.records.texts import Texts, id_name_lengths, key_texts
from pipeline.records.waiting_texts import COMPACT_AFTER, WaitingTexts
from pipeline.task.batch import Batch
from pipeline.task.columns import OutcomeColumns
from pipeline.worker.batch_columns import FEWEST, BatchColumns, or_none, statuses


class EncodedRecords(NamedTuple):
    """Records for one topic, in the order of their sequences."""

    values: Sequence[bytes]
    keys: Sequence[bytes]
    timestamps: NDArray[np.int64]
    """Event times, in milliseconds."""


class EncodedBatch(NamedTuple):
    """The records of a batch."""

    predictions: EncodedRecords
    outcomes: EncodedRecords
    requests: EncodedRecords


@cache  # they never change, and take milliseconds to make
def _layout_of(types: OutputTypes) -> tuple[BatchColumns, NDArray[np.int64]]:
    return BatchColumns(types), id_name_lengths(types.prediction, types.entities)


class RecordEncoder:
    """Encodes the batches of one partition, in their order.

    An outcome begins with the text of its prediction, most of which are digits of features. So the encoder
    keeps that text for each prediction that waits for its label, as long as it is held in memory, and after
    that the prefix of its outcome, as long as its label may be corrected.

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
        self._columns, self._skipped = _layout_of(types)
        self._waiting = WaitingTexts()
        self._answered = WaitingTexts()
        """The prefixes of outcomes whose labels may be corrected, by their sequences."""

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
        return self._encode_columns(batch) if many else self._encode_records(batch)

    def _encode_columns(self, batch: Batch) -> EncodedBatch:
        """Encode a batch column by column, with the bytes of `_encode_records`."""
        predictions, outcomes = batch.predictions, batch.outcomes
        texts, prefix_ends = self._columns.predictions(predictions)
        prefixes = self._prefixes(batch, texts, prefix_ends)
        values = self._columns.outcomes(outcomes, prefixes)
        self._keep_prefixes(batch, prefixes)
        requests = self._columns.requests(predictions, batch.requested, batch.first_request)
        return self._encoded(batch, texts, values, requests)

    def _encode_records(self, batch: Batch) -> EncodedBatch:
        """Encode a batch record by record."""
        predictions, outcomes = batch.predictions, batch.outcomes
        texts = _encode_predictions(predictions, self._types.prediction)
        prefixes = self._prefixes(batch, *_with_prefix_ends(texts))
        values = _encode_outcomes(outcomes, prefixes, self._types)
        self._keep_prefixes(batch, prefixes)
        return self._encoded(batch, texts, values, _encode_requests(batch, self._types.label_request))

    def _encoded(
        self, batch: Batch, texts: Sequence[bytes], outcomes: Sequence[bytes], requests: Sequence[bytes]
    ) -> EncodedBatch:
        """Return the records of a batch, given their values; those of slates are made of their items."""
        predictions, firsts, requested = batch.predictions, None, batch.requested
        if self._types.slates is not None:
            texts = _encode_slates(predictions, self._types.slates)
            firsts = flagged(predictions.positions == 0)
        moments, labelled = predictions.timestamps, batch.outcomes
        return EncodedBatch(
            EncodedRecords(
                texts, self._keys(predictions, firsts), moments if firsts is None else moments[firsts]
            ),
            EncodedRecords(outcomes, key_texts(labelled.keys), labelled.timestamps),
            EncodedRecords(requests, self._keys(predictions, requested), moments[requested]),
        )

    def _keys(self, predictions: PredictionColumns, rows: NDArray[np.int64] | None) -> Sequence[bytes]:
        """Return the keys of records of predictions, or of some rows."""
        if not len(predictions):
            return ()
        key = self._types.key_entity
        ids = predictions.ids.column(0 if key is None else 1 + key)
        return key_texts(ids if rows is None else ids.select(rows))

    def _prefixes(self, batch: Batch, texts: Texts, prefix_ends: NDArray[np.int64]) -> Texts:
        """Return the prefixes of outcomes, and keep the texts of predictions that wait for their label.

        Parameters
        ----------
        batch
            The batch.
        texts, prefix_ends
            The texts of its predictions, and where the prefix of each one's outcome ends.
        """
        predictions, outcomes = batch.predictions, batch.outcomes
        own, numbers, corrections = predictions.numbers, outcomes.numbers, outcomes.corrections
        before = numbers < own[0] if len(own) else np.ones(len(numbers), dtype=np.bool_)
        after = ~before
        before[corrections.rows] = after[corrections.rows] = False
        closed = np.searchsorted(own, numbers[after])
        pieces = [
            self._prior_prefixes(numbers[before], batch.spilled),
            Texts(texts.text, texts.begins[closed], prefix_ends[closed]),
        ]
        rows = np.empty(len(numbers), dtype=np.int64)
        rows[before] = np.arange(len(pieces[0]))
        rows[after] = len(pieces[0]) + np.arange(len(pieces[1]))
        if len(corrections):
            earlier = corrections.corrected < outcomes.first
            answered = corrections.corrected[earlier]
            order = np.argsort(answered)
            rows[corrections.rows[earlier][order]] = sum(map(len, pieces)) + np.arange(len(order))
            pieces.append(self._answered.take_prefixes(answered[order]))
            for row, corrected in zip(
                corrections.rows[~earlier].tolist(),
                (corrections.corrected[~earlier] - outcomes.first).tolist(),
                strict=True,
            ):
                rows[row] = rows[corrected]  # which may itself correct one of these
        waits = np.ones(len(own), dtype=np.bool_)
        waits[closed] = False
        kept = flagged(waits)
        prefixes = Texts.packed(pieces).select(rows)
        del pieces  # a buffer to which something refers cannot grow
        self._waiting.add(own[kept], texts.select(kept), prefix_ends[kept])
        return prefixes

    def _keep_prefixes(self, batch: Batch, prefixes: Texts) -> None:
        """Keep the prefixes of outcomes whose labels may be corrected."""
        if batch.corrections:
            first, corrected = batch.outcomes.first, batch.outcomes.corrections.corrected
            newest = np.ones(len(prefixes), dtype=np.bool_)
            newest[corrected[corrected >= first] - first] = False
            rows = flagged(newest)
            kept = prefixes.select(rows)
            self._answered.add(first + rows, kept, kept.ends)

    def restore_answered(self, outcomes: Sequence[Outcome]) -> None:
        """Keep the prefixes of outcomes that were written before, in the order of their sequences."""
        make = self._types.prediction
        names = [field.name for field in msgspec.structs.fields(make)]
        texts, ends = _with_prefix_ends(
            encode_all(
                make(**{name: getattr(each, name) for name in names} | {"sequence": each.prediction_sequence})
                for each in outcomes
            )
        )
        prefixes = Texts(texts.text, texts.begins, ends)
        self._answered.add(np.array([each.sequence for each in outcomes], dtype=np.int64), prefixes, ends)

    def follow(self, join: Join) -> None:
        """Let the join read ids of predictions here, and spill the oldest; forget what it has forgotten."""
        join.pending.read_ids_from(self)
        join.spill(self.take)
        if join.answered is not None and len(self._answered) > 2 * len(join.answered) + COMPACT_AFTER:
            self._answered.keep(join.answered.sequences())

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


def _with_prefix_ends(predictions: list[bytes]) -> tuple[Texts, NDArray[np.int64]]:
    """Return the texts of predictions, and where the prefix of each one's outcome ends."""
    texts = Texts.of(predictions)
    return texts, texts.begins + np.array([*map(prefix_end, predictions)], dtype=np.int64)


def _encode_predictions(columns: PredictionColumns, record: type[Prediction]) -> list[bytes]:
    if not len(columns):
        return []
    make: Any = record  # whose ids are the stream's
    features = decimals.encode_rows(columns.features)
    return encode_all(
        map(
            make,
            *_ids(columns),
            columns.timestamps.tolist(),
            columns.scores.tolist(),
            columns.probabilities,
            columns.predicted,
            map(msgspec.Raw, features),
            *((columns.tables,) if columns.tables else ()),
            *zip(*columns.carried, strict=True),
            columns.versions.tolist(),
            *((columns.positions.tolist(),) if columns.of_slates else ()),
            columns.sequences.tolist(),
            _by_name(columns.challengers),
            _asked(columns.asked),
        )
    )


def _encode_slates(columns: PredictionColumns, slates: Slates) -> list[bytes]:
    """Encode the predictions of slates."""
    if not len(columns):
        return []
    features = decimals.encode_rows(columns.features)
    event_ids, *ids = _ids(columns)
    items = [
        slates.make_item(entities, *rest)
        for entities, *rest in zip(
            zip(*ids, strict=True),
            columns.scores.tolist(),
            columns.probabilities,
            columns.predicted,
            map(msgspec.Raw, features),
            *zip(*columns.carried, strict=True),
            _by_name(columns.challengers) if columns.challengers else [None] * len(columns),
            _asked(columns.asked),
            strict=True,
        )
    ]
    moments, versions = columns.timestamps.tolist(), columns.versions.tolist()
    return encode_all(
        slates.make(
            event_ids[rows.start],
            [column[rows.start] for column in ids],
            moments[rows.start],
            items[rows],
            columns.tables[rows.start] if columns.tables else None,
            versions[rows.start],
            sequence,
        )
        for sequence, rows in enumerate(columns.slates, columns.first)
    )


def _encode_outcomes(columns: OutcomeColumns, prefixes: Texts, types: OutputTypes) -> list[bytes]:
    """Encode outcomes, given the prefix of each."""
    if not len(columns):
        return []
    rests = encode_label_fields(
        map(
            types.label_fields,
            columns.prediction_sequences.tolist(),
            or_none(columns.values, columns.expired),
            *(() if columns.weights is None else (columns.weights.tolist(),)),
            columns.labels,
            or_none(columns.label_timestamps, columns.expired),
            columns.correct,
            columns.losses,
            statuses(columns),
            count(columns.first),
            map(columns.shared.get, range(len(columns))) if columns.shared else repeat(None),
            _by_name(columns.challengers),
            repeat(None) if columns.asked is None else _asked(columns.asked),
            *_formers(columns, weighted=types.outcome.weighted),
        )
    )
    return [prefix + rest for prefix, rest in zip(prefixes, rests, strict=True)]


def _ids(columns: PredictionColumns) -> list[list[Id]]:
    """Return the ids of events, then those of each entity."""
    return [columns.ids_of(number) for number in range(len(columns.ids.begins))]


def _by_name(scores: Sequence[ChallengerScores | None]) -> Iterable[dict[str, float] | None]:
    """Return the scores of challengers as they are written; None for each where there are none."""
    return [None if each is None else each.by_name() for each in scores] if scores else repeat(None)


def _asked(column: NDArray[np.int8]) -> list[bool | None]:
    """Return as they are written whether labels are asked for."""
    return [None if each == UNDECIDED else bool(each) for each in column.tolist()]


def _formers(columns: OutcomeColumns, *, weighted: bool) -> list[Iterable[float | None]]:
    """Return the value that each correction found learned, None for others, and perhaps its weight."""
    values: Iterable[float | None] = repeat(None)
    weights: Iterable[float | None] = repeat(None)
    if len(corrections := columns.corrections):
        formers, weighed = np.full(len(columns), np.nan), np.ones(len(columns))
        formers[corrections.rows], weighed[corrections.rows] = corrections.formers, corrections.weights
        values, weights = or_none(formers, np.isnan(formers)), or_none(weighed, weighed == 1.0)
    return [values, weights] if weighted else [values]


def _encode_requests(batch: Batch, record: type[LabelRequest]) -> list[bytes]:
    predictions, rows = batch.predictions, batch.requested.tolist()
    if not rows:
        return []
    make: Any = record  # whose ids are the stream's
    columns = [
        *_ids(predictions),
        predictions.timestamps.tolist(),
        predictions.scores.tolist(),
        predictions.sequences.tolist(),
        *([predictions.positions.tolist()] if predictions.of_slates else []),
    ]
    return [
        encode(make(*(column[row] for column in columns), sequence))
        for sequence, row in enumerate(rows, batch.first_request)
    ]
