"""Encode the predictions, outcomes and label requests of a batch, column by column.

Of a batch with few records, `pipeline.worker.encoder` encodes one after the other, with the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.join.prediction_columns import UNDECIDED, PredictionColumns
from pipeline.join.records import ChallengerScores
from pipeline.records import decimals
from pipeline.records.column_encoder import Column, ColumnEncoder
from pipeline.records.encoding import encode
from pipeline.records.fields import Status
from pipeline.records.output_types import OutputTypes
from pipeline.records.places import flagged
from pipeline.records.texts import LINE_FEED, NO_TEXTS, Integers, Texts
from pipeline.task.columns import OutcomeColumns

_LABELLED: Final = b'"labelled"\n'

FEWEST: Final = 50
"""Records of a batch below which it costs less to encode them one by one."""


class BatchColumns:
    """Encodes the columns of one stream.

    Parameters
    ----------
    types
        The types of the stream's outputs.
    """

    def __init__(self, types: OutputTypes) -> None:
        self._predictions = ColumnEncoder(types.prediction)
        self._outcomes = ColumnEncoder(types.label_fields, behind_prefix=True)
        self._requests = ColumnEncoder(types.label_request)
        names = {field.name: field.encode_name for field in msgspec.structs.fields(types.label_fields)}
        self._names = {name: b"," + encode(encoded) + b":" for name, encoded in names.items()}

    def predictions(self, columns: PredictionColumns) -> tuple[Texts, Integers]:
        """Encode predictions; return them, and where the prefix of each one's outcome ends."""
        if not len(columns):
            return NO_TEXTS, NO_TEXTS.ends
        fields: list[Column] = [
            *_ids(columns.ids),
            columns.timestamps.tolist(),
            columns.scores.tolist(),
            columns.probabilities,
            columns.predicted,
            decimals.encode_lines(columns.features),
            *([columns.tables] if columns.tables else []),
            *zip(*columns.carried, strict=True),
            columns.versions.tolist(),
            *([columns.positions.tolist()] if columns.of_slates else []),
            columns.sequences.tolist(),
        ]
        rests = self._made_rests(len(columns), columns.challengers, columns.asked)
        return self._predictions.encode(len(columns), fields, rests=_joined(rests))

    def requests(self, columns: PredictionColumns, rows: Integers, first: int) -> Texts:
        """Encode the requests for the labels of some rows, given the sequence of the first."""
        if not len(rows):
            return NO_TEXTS
        chosen = columns.select(rows)
        fields: list[Column] = [
            *_ids(chosen.ids),
            chosen.timestamps.tolist(),
            chosen.scores.tolist(),
            chosen.sequences.tolist(),
            *([chosen.positions.tolist()] if chosen.of_slates else []),
            range(first, first + len(rows)),
        ]
        return self._requests.encode(len(rows), fields)[0]

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
            if not (columns.expired.any() or len(columns.corrections))
            else statuses(columns),
            range(columns.first, columns.first + len(columns)),
        ]
        rests = _joined(self._rests(columns))
        return self._outcomes.encode(len(columns), fields, prefixes, rests)[0]

    def _rests(self, columns: OutcomeColumns) -> list[bytes] | None:
        """Return what is behind the sequence of each outcome, but for its brace; None where it is nothing."""
        made = self._made_rests(len(columns), columns.challengers, columns.asked)
        if not (columns.shared or len(columns.corrections)):
            return made
        rests, names = made or [b""] * len(columns), self._names
        for row, shares in columns.shared.items():
            rests[row] = names["shared"] + encode(shares) + rests[row]
        corrections = columns.corrections
        for row, former in zip(corrections.rows.tolist(), corrections.formers.tolist(), strict=True):
            if not isnan(former):
                rests[row] += names["former"] + encode(former)
        for place in flagged(corrections.weights != 1.0).tolist():
            weight = float(corrections.weights[place])
            rests[corrections.rows[place]] += names["former_weight"] + encode(weight)
        return rests

    def _made_rests(
        self, count: int, challengers: Sequence[ChallengerScores | None], asked: NDArray[np.int8] | None
    ) -> list[bytes] | None:
        """Return the scores of challengers and whether labels are asked for; None where nothing is said."""
        names, rests = self._names, list[bytes]()
        if asked is not None and (asked != UNDECIDED).any():
            said = {UNDECIDED: b"", 0: names["asked"] + b"false", 1: names["asked"] + b"true"}
            rests = [*map(said.__getitem__, asked.tolist())]
        if challengers:
            rests = rests or [b""] * count
            for row, each in enumerate(challengers):
                if each is not None:
                    rests[row] = names["challengers"] + encode(each.by_name()) + rests[row]
        return rests or None


def _ids(ids: Texts) -> list[bytes]:
    """Return the lines of each column of ids."""
    return [ids.column(number).joined(LINE_FEED).tobytes() for number in range(len(ids.begins))]


def _joined(rests: list[bytes] | None) -> bytes | None:
    """Return the ends of records in lines, each with its brace."""
    return None if rests is None else b"}\n".join([*rests, b""])


def or_none(column: NDArray[Any], missing: NDArray[np.bool_]) -> list[Any]:
    """Return a column as objects, None where it is missing."""
    found: list[Any] = column.tolist()
    for row in flagged(missing).tolist():
        found[row] = None
    return found


def statuses(columns: OutcomeColumns) -> list[Status]:
    """Return the status of each outcome."""
    found: list[Status] = ["expired" if each else "labelled" for each in columns.expired.tolist()]
    for row in columns.corrections.rows.tolist():
        found[row] = "replaced" if columns.replaces else "corrected"
    return found
