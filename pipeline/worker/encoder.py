"""Encode the records of a partition, once, right before they are produced."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress, count, repeat
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.records import decimals
from pipeline.records.encoding import encode, encode_all
from pipeline.records.fields import Id
from pipeline.records.names import (
    EXCEPTION_HEADER,
    MESSAGE_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    TOPIC_HEADER,
)
from pipeline.records.outcome_encoder import (
    LabelFields,
    encode_label_fields,
    outcome_prefix,
    plain_prefix_ends,
    prefix_end,
)
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.outputs import LabelRequest, Prediction
from pipeline.task.batch import Batch
from pipeline.task.columns import LabelRequestColumns, OutcomeColumns, PredictionColumns
from pipeline.task.plan import DeadLetter

COMPACT_AFTER: Final = 4_096
"""Prefixes that are no longer needed, at least, before their room is freed."""
COMPACT_RATIO: Final = 5
"""At most one of so many rows, beyond `COMPACT_AFTER`, holds a prefix that is no longer needed."""


class EncodedRecords(NamedTuple):
    """Records for one topic, in the order of their sequences."""

    values: list[bytes]
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


class RecordEncoder:
    """Encodes the batches of one partition, in their order.

    An outcome begins with the text of its prediction, most of which are digits of features. So the encoder
    keeps that text for each prediction that waits for its label.

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
        # Sequences ascend, so that sorted columns do: a dictionary would take three times the room.
        self._sequences = array("q")
        self._prefixes: list[bytes | None] = []
        """By row of `_sequences`; None once the outcome is encoded."""
        self._removed = 0
        """Rows without a prefix."""

    def __len__(self) -> int:
        """Return the number of predictions without an outcome."""
        return len(self._prefixes) - self._removed

    def restore(self, predictions: Sequence[Prediction]) -> None:
        """Keep the prefixes of predictions that were written before and still wait for their label.

        Parameters
        ----------
        predictions
            In the order of their sequences.
        """
        self._sequences.extend(prediction.sequence for prediction in predictions)
        self._prefixes += map(outcome_prefix, encode_all(predictions))

    def encode(self, batch: Batch) -> EncodedBatch:
        """Encode the next batch."""
        predictions, outcomes = batch.predictions, batch.outcomes
        texts = _encode_predictions(predictions, self._types.prediction)
        ends = _prefix_ends(predictions, texts)
        sequences = np.frombuffer(outcomes.prediction_sequences, dtype=np.int64)
        rows = sequences - predictions.first
        before = rows < 0 if len(predictions) else np.ones(len(rows), dtype=np.bool_)
        prior = self._pop(sequences[before])
        self._keep_waiting(predictions.first, texts, ends, rows[~before])
        rows += len(prior)
        rows[before] = np.arange(len(prior))
        values = _encode_outcomes(
            outcomes,
            prior + texts,
            [*repeat(None, len(prior)), *ends],
            rows.tolist(),
            self._types.label_fields,
        )
        return EncodedBatch(
            EncodedRecords(texts, predictions.keys, predictions.timestamps),
            EncodedRecords(values, outcomes.keys, outcomes.timestamps),
            _encode_requests(batch.requests, predictions, self._types.label_request),
        )

    def _keep_waiting(
        self, first: int, texts: list[bytes], ends: Sequence[int], closed: NDArray[np.int64]
    ) -> None:
        """Keep the prefixes of new predictions but for those rows that are closed already."""
        waits = np.ones(len(texts), dtype=np.bool_)
        waits[closed] = False
        rows = np.flatnonzero(waits)
        self._sequences.frombytes((rows + first).tobytes())
        self._prefixes += [texts[row][: ends[row]] for row in rows.tolist()]

    def _pop(self, sequences: NDArray[np.int64]) -> list[bytes]:
        """Give the prefixes of waiting predictions, which then wait no longer."""
        if not len(sequences):
            return []
        found: list[int] = np.searchsorted(np.frombuffer(self._sequences, dtype=np.int64), sequences).tolist()
        kept, popped = self._prefixes, list[bytes]()
        for row in found:
            prefix = kept[row]
            assert prefix is not None, "a prediction has two outcomes"
            popped.append(prefix)
            kept[row] = None
        self._removed += len(found)
        if self._removed >= COMPACT_AFTER and COMPACT_RATIO * self._removed >= len(kept):
            self._compact()
        return popped

    def _compact(self) -> None:
        held = [prefix is not None for prefix in self._prefixes]
        self._sequences = array("q", compress(self._sequences, held))
        self._prefixes = list(compress(self._prefixes, held))
        self._removed = 0


def _encode_predictions(columns: PredictionColumns, record: type[Prediction]) -> list[bytes]:
    if not len(columns):
        return []
    make: Any = record  # whose ids are the stream's
    return encode_all(
        map(
            make,
            columns.event_ids,
            *columns.ids,
            columns.timestamps,
            columns.scores,
            columns.probabilities,
            [score > 0.0 for score in columns.scores],
            map(msgspec.Raw, decimals.encode_rows(columns.features)),
            *((columns.tables,) if columns.tables else ()),
            columns.versions,
            count(columns.first),
            columns.challengers,
            repeat(None) if columns.asked is None else columns.asked,
        )
    )


def _prefix_ends(columns: PredictionColumns, texts: list[bytes]) -> list[int]:
    if columns.asked is None and not any(columns.challengers[:1]):
        return plain_prefix_ends(columns.first, len(texts))
    return list(map(prefix_end, texts))


def _encode_outcomes(
    columns: OutcomeColumns,
    texts: list[bytes],
    ends: Sequence[int | None],
    rows: list[int],
    label_fields: type[LabelFields],
) -> list[bytes]:
    """Encode outcomes.

    Parameters
    ----------
    columns
        The outcomes.
    texts, ends
        Texts that begin with the prefixes of the outcomes, and where these end in them.
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
            columns.labels,
            columns.label_timestamps,
            columns.correct,
            columns.losses,
            ["expired" if moment is None else "labelled" for moment in columns.label_timestamps],
            count(columns.first),
            map(columns.shared.get, range(len(columns))) if columns.shared else repeat(None),
            columns.challengers,
            columns.asked,
        )
    )
    return [texts[row][: ends[row]] + rest for row, rest in zip(rows, rests, strict=True)]


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
