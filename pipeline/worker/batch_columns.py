"""Encode the usual batches column by column: no slates, challengers or label policy.

`pipeline.worker.encoder` encodes all batches record by record, and is the specification of what is done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pipeline.records import decimals
from pipeline.records.column_encoder import Column, ColumnEncoder
from pipeline.records.encoding import encode
from pipeline.records.output_types import OutputTypes
from pipeline.records.texts import NO_TEXTS, Integers, Texts
from pipeline.task.batch import Batch
from pipeline.task.columns import OutcomeColumns, PredictionColumns

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
        predictions.asked is None
        and not len(predictions.positions)
        and not len(outcomes.positions)
        and all(_only_none(each) for each in (predictions.challengers, outcomes.challengers, outcomes.asked))
    )


def _only_none(column: Sequence[object]) -> bool:
    return column.count(None) == len(column)


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
        fields: list[Column] = [
            columns.event_ids,
            *columns.ids,
            columns.timestamps,
            columns.scores,
            columns.probabilities,
            columns.predicted,
            decimals.encode_lines(columns.features),
            *([columns.tables] if columns.tables else []),
            *zip(*columns.carried, strict=True),
            columns.versions,
            range(columns.first, columns.first + len(columns)),
        ]
        return self._predictions.encode(len(columns), fields)

    def outcomes(self, columns: OutcomeColumns, prefixes: Texts) -> Texts:
        """Encode outcomes, given the prefix of each, which is that of its prediction."""
        if not len(columns):
            return NO_TEXTS
        fields: list[Column] = [
            columns.prediction_sequences,
            columns.watch_ratios,
            *([columns.weights] if columns.weights else []),
            columns.labels,
            columns.label_timestamps,
            columns.correct,
            columns.losses,
            _statuses(columns),
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
            if each.former_weight != 1.0:
                rests[row] += b"," + self._former_weight + b":" + encode(each.former_weight)
        return b"}\n".join([*rests, b""])


def _statuses(columns: OutcomeColumns) -> Column:
    """Return the status of each outcome."""
    moments = columns.label_timestamps
    if None not in moments and not columns.corrected:
        return _LABELLED * len(moments)
    statuses = ["expired" if moment is None else "labelled" for moment in moments]
    for row, corrected in columns.corrected.items():
        statuses[row] = corrected.status
    return statuses
