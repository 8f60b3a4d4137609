"""Decode outcomes to columns, without a record for each.

Usual are those that hold nothing but a prediction and its label. What is accepted and what it means is what
the decoder of `OutputTypes.raw_outcomes` says. It is asked for every other outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Self

import msgspec
import numpy as np

from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.encoding import encode
from pipeline.records.entities import columns_of
from pipeline.records.fields import FEATURES_LENGTH, Id
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.outputs import Outcome
from pipeline.records.places import flagged
from pipeline.records.scan import Flags, Integers
from pipeline.records.scanner import Field, Scanned, Scanner, decode_lists
from pipeline.records.texts import Texts, joined_texts
from pipeline.records.tokens import NOTHING, Floats
from pipeline.records.words import SPARE

FEWEST: Final = 16
"""Outcomes below which it costs less to decode them one by one."""
_decode_ids = msgspec.json.Decoder(list[int | str]).decode


def _no_record(_value: bytes) -> Outcome:
    """Stand for the decoder of outcomes that all have records."""
    raise AssertionError("the outcome has a record")


@dataclass(frozen=True, slots=True, eq=False)
class DecodedOutcomes:
    """Outcomes in the order of the log, column by column: what models and joins need of them.

    Attributes
    ----------
    sequences, prediction_sequences, prediction_numbers
        As in `Outcome`.
    ids
        The ids, one column for each entity.
    timestamps, label_timestamps
        Times in milliseconds, shape (n,); `NO_TIMESTAMP` where no label came.
    learned
        Whether a label is learned, shape (n,).
    labels
        Values of the labels, 0 where there is none, shape (n,).
    weights
        Weights of the labels, shape (n,); None where the stream's labels have none.
    features
        Shape (n, features).
    records
        The outcomes by row that are not usual: all that hold shares, or replace a label.
    events
        The JSON of the ids of the events, shape (n,).
    texts
        The JSON of those without a record, shape (n,).
    decode
        Makes the record of such an outcome.

    Examples
    --------
    >>> outcome = Outcome(
    ...     "e", 7, 3, 5, 0.5, None, True, [0.25], 0, 9, 0.8, True, 6, True, 0.2, "labelled", sequence=4
    ... )
    >>> outcomes = DecodedOutcomes.of([outcome], np.array([[0.25]]), entities=2)
    >>> outcomes.sequences, outcomes.ids, outcomes.labels.tolist()
    ([4], ([7], [3]), [0.8])
    """

    sequences: list[int]
    prediction_sequences: list[int]
    prediction_numbers: list[int]
    ids: tuple[list[Id], ...]
    timestamps: Integers
    label_timestamps: Integers
    learned: Flags
    labels: Floats
    weights: Floats | None
    features: Floats
    records: Mapping[int, Outcome]
    events: Texts
    texts: Texts
    decode: Callable[[bytes], Outcome]

    def __len__(self) -> int:
        return len(self.sequences)

    @classmethod
    def of(cls, records: Sequence[Outcome], features: Floats, entities: int) -> Self:
        """Return the columns of records of a stream with so many entities, given their features."""
        moments = [each.label_timestamp for each in records]
        weighted = bool(records) and records[0].weighted
        return cls(
            [each.sequence for each in records],
            [each.prediction_sequence for each in records],
            [each.prediction_number for each in records],
            columns_of([each.ids for each in records], entities),
            np.array([each.timestamp for each in records], dtype=np.int64),
            np.array([NO_TIMESTAMP if each is None else each for each in moments], dtype=np.int64),
            np.array([each.label is not None for each in records], dtype=np.bool_),
            np.array([each.watch_ratio or 0.0 for each in records], dtype=np.float64),
            np.array([each.weight for each in records], dtype=np.float64) if weighted else None,
            features,
            dict(enumerate(records)),
            Texts.of_ids([each.event_id for each in records], []).column(0),
            Texts.of([b""] * len(records)),
            _no_record,
        )

    def __getitem__(self, rows: slice) -> Self:
        """Return those of some rows, one after the other."""
        begin, end, _ = rows.indices(len(self))
        if (begin, end) == (0, len(self)):
            return self
        return replace(
            self,
            sequences=self.sequences[rows],
            prediction_sequences=self.prediction_sequences[rows],
            prediction_numbers=self.prediction_numbers[rows],
            ids=tuple([column[rows] for column in self.ids]),
            timestamps=self.timestamps[rows],
            label_timestamps=self.label_timestamps[rows],
            learned=self.learned[rows],
            labels=self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            features=self.features[rows],
            records={row - begin: each for row, each in self.records.items() if begin <= row < end},
            events=self.events.rows(begin, end),
            texts=self.texts.rows(begin, end),
        )

    def record(self, row: int) -> Outcome:
        """Return the outcome of a row."""
        found = self.records.get(row)
        return self.decode(self.texts[row]) if found is None else found


@cache  # it never changes, and takes milliseconds to make
def _scanner_of(types: OutputTypes) -> Scanner | None:
    """Return the scanner of a stream's outcomes; None where they have fields that it does not know."""
    fields = [field for field in msgspec.structs.fields(types.outcome) if field.required]
    known = [found for field in fields if (found := Field.of(field)) is not None]
    if types.slates is not None or len(known) < len(fields):
        return None
    # An outcome that has more fields holds shares, or replaces a label.
    return Scanner(known, only=True, needed=["watch_ratio"], length=types.features)


class OutcomeDecoder:
    """Decodes outcomes of one stream.

    Parameters
    ----------
    types
        The types of the stream's outputs.
    """

    def __init__(self, types: OutputTypes) -> None:
        self.types = types
        self._scanner = _scanner_of(types)

    def decode(self, values: Sequence[bytes]) -> DecodedOutcomes:
        """Decode outcomes.

        Parameters
        ----------
        values
            The records' JSON.

        Raises
        ------
        msgspec.DecodeError, UnicodeDecodeError
            One of the values is no outcome.
        """
        if self._scanner is None or len(values) < FEWEST:
            return self._records(values)
        scanned = self._scanner.scan(joined_texts(values, SPARE))
        found = self._columns(scanned, self._scanner.places)
        if scanned.usual.all():
            return found
        others = flagged(~scanned.usual)
        records = self._records([values[row] for row in others.tolist()])
        return records if len(others) == len(values) else _with_others(found, others, records)

    def _columns(self, scanned: Scanned, at: Mapping[str, int]) -> DecodedOutcomes:
        """Return usual outcomes; the rows of the others have no meaning."""
        integers, numbers = scanned.integers, scanned.numbers
        ids = [at["event_id"] + 1 + number for number in range(self.types.entities)]
        sequences = integers[at["prediction_sequence"]].tolist()
        return DecodedOutcomes(
            integers[at["sequence"]].tolist(),
            sequences,
            [*sequences],
            tuple([_ids(scanned, place) for place in ids]),
            integers[at["timestamp"]],
            integers[at["label_timestamp"]],
            integers[at["label"]] != NOTHING,
            numbers[at["watch_ratio"]] + 0.0,  # as `or 0.0` does, it makes 0 of what is negative and 0
            numbers[at["weight"]] if self.types.outcome.weighted else None,
            scanned.lists,
            {},
            scanned.values.column(at["event_id"]),
            scanned.records,
            self.types.raw_outcomes.decode,
        )

    def _records(self, values: Sequence[bytes]) -> DecodedOutcomes:
        """Decode outcomes one by one."""
        records = list(map(self.types.raw_outcomes.decode, values))
        features = decode_lists([bytes(record.features) for record in records], self.types.features)
        return DecodedOutcomes.of(records, features, self.types.entities)


def _with_others(found: DecodedOutcomes, rows: Integers, others: DecodedOutcomes) -> DecodedOutcomes:
    """Write other outcomes to their rows."""
    places = rows.tolist()
    for column, values in zip(_lists(found), _lists(others), strict=True):
        for row, value in zip(places, values, strict=True):
            column[row] = value
    for name in ("timestamps", "label_timestamps", "learned", "labels", "weights", "features"):
        if getattr(found, name) is not None:
            getattr(found, name)[rows] = getattr(others, name)
    records = dict(zip(places, others.records.values(), strict=True))
    order = np.arange(len(found))
    order[rows] = len(found) + np.arange(len(others))
    return replace(found, records=records, events=Texts.concat([found.events, others.events]).select(order))


def _lists(outcomes: DecodedOutcomes) -> list[list[Any]]:
    return [outcomes.sequences, outcomes.prediction_sequences, outcomes.prediction_numbers, *outcomes.ids]


def _ids(scanned: Scanned, place: int) -> list[Id]:
    """Return the ids of a field; of outcomes that are not usual, it may be any."""
    integers = scanned.integers[place]
    found: list[Id] = integers.tolist()
    rows = flagged((integers == NOTHING) & scanned.usual)
    ids = scanned.values.column(place).select(rows).decode(_decode_ids)
    for row, each in zip(rows.tolist(), ids, strict=True):
        found[row] = each
    return found


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    outcome = Outcome(
        "e", 7, 3, 5, 0.5, 0.6, True, [0.25] * FEATURES_LENGTH, 0, 9, 0.8, True, 6, True, 0.2, "labelled", 4
    )
    decoder = OutcomeDecoder(KUAIREC_TYPES)
    assert not decoder.decode([encode(outcome)] * FEWEST).records, "an outcome of a worker is not usual"
    decoder.decode([encode(outcome)])
