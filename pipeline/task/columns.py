"""Columns of the outcomes of a batch: planned, and then with what the model made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.join.records import ChallengerScores
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.outputs import Share
from pipeline.records.slates import STRIDE
from pipeline.records.texts import NO_TEXTS, Texts

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def _no_integers() -> Integers:
    return np.empty(0, dtype=np.int64)


@dataclass(slots=True, eq=False)
class Corrections:
    """Outcomes that correct others: their labels are later ones of predictions that have outcomes already.

    Examples
    --------
    >>> len(Corrections())
    0
    """

    rows: Integers = field(default_factory=_no_integers)
    """The numbers of the outcomes, ascending, shape (n,)."""
    corrected: Integers = field(default_factory=_no_integers)
    """The sequences of the outcomes before, shape (n,)."""
    formers: Floats = field(default_factory=lambda: np.empty(0))
    """The values that these taught, NaN for nothing, shape (n,). Those of the same batch are known once the
    model has run."""
    weights: Floats = field(default_factory=lambda: np.empty(0))
    """The weights of their labels, shape (n,)."""

    def __len__(self) -> int:
        return len(self.rows)

    def followed_by(self, later: Self, before: int) -> Corrections:
        """Return these and later ones, whose rows are counted from one."""
        return Corrections(
            np.concatenate([self.rows, before + later.rows]),
            np.concatenate([self.corrected, later.corrected]),
            np.concatenate([self.formers, later.formers]),
            np.concatenate([self.weights, later.weights]),
        )

    def among(self, outcomes: slice) -> Corrections:
        """Return those of some outcomes, with rows counted from the first of them."""
        begin, end = np.searchsorted(self.rows, [outcomes.start, outcomes.stop])
        return Corrections(
            self.rows[begin:end] - outcomes.start,
            self.corrected[begin:end],
            self.formers[begin:end],
            self.weights[begin:end],
        )


@dataclass(slots=True, eq=False)
class OutcomeColumns:
    """Outcomes of consecutive sequences, column by column."""

    first: int = 0
    """Sequence of the first outcome."""
    numbers: Integers = field(default_factory=_no_integers)
    """The numbers of the predictions: see `pipeline.records.outputs.Prediction.number`; shape (n,)."""
    values: Floats = field(default_factory=lambda: np.empty(0))
    """The values of the labels, NaN where none came in time; shape (n,)."""
    label_timestamps: Integers = field(default_factory=_no_integers)
    """In milliseconds, `NO_TIMESTAMP` where the prediction expired; shape (n,)."""
    weights: Floats | None = None
    """Weights of the labels, 1 where none came in time; None where the stream's labels have none."""
    of_slates: bool = False
    """Whether the predictions are of items of slates."""
    shared: dict[int, list[Share]] = field(default_factory=dict)
    """By row, the shares of other partitions that are learned right before the outcome."""
    corrections: Corrections = field(default_factory=Corrections)
    """Which of them correct others."""
    replaces: bool = False
    """Whether corrected labels are learned in place of the former ones."""
    # Once the model has run.
    keys: Texts = NO_TEXTS
    """The JSON of the ids of which the records' keys are made."""
    timestamps: Integers = field(default_factory=_no_integers)
    """Event times of the predictions, in milliseconds, shape (n,)."""
    scores: Floats = field(default_factory=lambda: np.empty(0))
    """Scores of the predictions, shape (n,)."""
    labels: list[bool | float | None] = field(default_factory=list)
    """What is learned; None where nothing is."""
    correct: list[bool | None] = field(default_factory=list)
    losses: list[float | None] = field(default_factory=list)
    challengers: Sequence[ChallengerScores | None] = ()
    """Those of the predictions; empty where there are none."""
    asked: NDArray[np.int8] | None = None
    """That of the predictions, shape (n,); None where all labels are learned as they come."""
    means: Floats = field(default_factory=lambda: np.empty((0, 2)))
    """The features of the predictions that are running means of the first two entities, shape (n, 0 to 2).
    They are in no record: monitoring compares the model with them."""

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def concat(cls, pieces: Sequence[OutcomeColumns], first: int) -> OutcomeColumns:
        """Join planned pieces that follow one another."""
        pieces = [piece for piece in pieces if len(piece)]
        if not pieces:
            return cls(first)
        if len(pieces) == 1:
            return pieces[0]
        weights = [piece.weights for piece in pieces if piece.weights is not None]
        return cls(
            first,
            np.concatenate([piece.numbers for piece in pieces]),
            np.concatenate([piece.values for piece in pieces]),
            np.concatenate([piece.label_timestamps for piece in pieces]),
            np.concatenate(weights) if weights else None,
            pieces[0].of_slates,
        )

    @property
    def expired(self) -> NDArray[np.bool_]:
        """Which have no label, shape (n,)."""
        expired: NDArray[np.bool_] = self.label_timestamps == NO_TIMESTAMP
        return expired

    @property
    def prediction_sequences(self) -> Integers:
        """The sequences of the predictions' records, shape (n,)."""
        return self.numbers // STRIDE if self.of_slates else self.numbers
