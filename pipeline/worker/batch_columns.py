"""Encode the usual batches column by column: no slates, challengers or label policy.

`pipeline.worker.encoder` encodes all batches record by record, and is the specification of what is done here.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.join.prediction_columns import UNDECIDED, PredictionColumns
from pipeline.records import decimals
from pipeline.records.column_encoder import Column, ColumnEncoder
from pipeline.records.encoding import encode
from pipeline.records.fields import Status
from pipeline.records.output_types import OutputTypes
from pipeline.records.places import flagged
from pipeline.records.texts import LINE_FEED, NO_TEXTS, Integers, Texts
from pipeline.task.batch import Batch
from pipeline.task.columns import OutcomeColumns

_LABELLED: Final = b'"labelled"\n'

FEWEST: Final = 50
"""Records of a batch below which it costs less to encode them one by one."""


def is_usual(batch: Batch) -> bool:
    """Tell whether a batch can be encoded here.

    Examples
    --------
    >>> is_usual(Batch())
    True
    """
    predictions, outcomes = batch.predictions, batch.outcomes
    return (
        not predictions.of_slates
        and not outcomes.of_slates
        and not predictions.challengers
        and not outcomes.challengers
        and outcomes.asked is None
        and not (predictions.asked != UNDECIDED).any()
    )


class UsualBatchEncoder:
    """Encodes predictions and outcomes of one stream.

    Parameters
    ----------
    types
        The types of the stream's outputs.
    """

    def __init__(self, types: OutputTypes) -> None:
        self._predictions = ColumnEncoder(types.prediction)
        self._outcomes = ColumnEncoder(types.label_fields, behind_prefix=True)
        names = {field.name: field.encode_name for field in msgspec.structs.fields(types.label_fields)}
        self._shared, self._former = encode(names["shared"]), encode(names["former"])
        self._former_weight = encode(names["former_weight"]) if "former_weight" in names else b""

    def predictions(self, columns: PredictionColumns) -> tuple[Texts, Integers]:
        """Encode predictions; return them, and where the prefix of each one's outcome ends."""
        if not len(columns):
            return NO_TEXTS, NO_TEXTS.ends
        ids = columns.ids
        fields: list[Column] = [
            *(ids.column(number).joined(LINE_FEED).tobytes() for number in range(len(ids.begins))),
            columns.timestamps.tolist(),
            columns.scores.tolist(),
            columns.probabilities,
            columns.predicted,
            decimals.encode_lines(columns.features),
            *([columns.tables] if columns.tables else []),
            *zip(*columns.carried, strict=True),
            columns.versions.tolist(),
            columns.numbers.tolist(),
        ]
        return self._predictions.encode(len(columns), fields)

    def outcomes(self, columns: OutcomeColumns, prefixes: Texts) -> Texts:
        """Encode outcomes, given the prefix of each, which is that of its prediction."""
        if not len(columns):
            return NO_TEXTS
        fields: list[Column] = [
            columns.prediction_sequences.tolist(),
            or_none(columns.values, columns.expired),
            *([] if columns.weights is None else [columns.weights.tolist()]),
            columns.labels,
            or_none(columns.label_timestamps, columns.expired),
            columns.correct,
            columns.losses,
            _LABELLED * len(columns)
            if not (columns.expired.any() or columns.corrected)
            else statuses(columns),
            range(columns.first, columns.first + len(columns)),
        ]
        rests = self._rests(columns)
        return self._outcomes.encode(len(columns), fields, prefixes, rests)[0]

    def _rests(self, columns: OutcomeColumns) -> bytes | None:
        """Return what is behind the sequence of each outcome; None where it is the brace only."""
        shared, corrected = columns.shared, columns.corrected
        if not (shared or corrected):
            return None
        rests = [b""] * len(columns)
        for row, shares in shared.items():
            rests[row] = b"," + self._shared + b":" + encode(shares)
        for row, each in corrected.items():
            if each.former is not None:
                rests[row] += b"," + self._former + b":" + encode(each.former)
            if each.weight != 1.0:
                rests[row] += b"," + self._former_weight + b":" + encode(each.weight)
        return b"}\n".join([*rests, b""])


def or_none(column: NDArray[Any], missing: NDArray[np.bool_]) -> list[Any]:
    """Return a column as objects, None where it is missing."""
    found: list[Any] = column.tolist()
    for row in flagged(missing).tolist():
        found[row] = None
    return found


def statuses(columns: OutcomeColumns) -> list[Status]:
    """Return the status of each outcome."""
    found: list[Status] = ["expired" if each else "labelled" for each in columns.expired.tolist()]
    for row in columns.corrected:
        found[row] = "replaced" if columns.replaces else "corrected"
    return found
