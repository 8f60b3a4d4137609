"""What goes into a model and what comes out of it, one by one and column by column."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.records.entities import columns_of
from pipeline.records.fields import Id
from pipeline.records.outputs import Example, Outcome


class InteractionLike(Protocol):
    """Ids of entities and a time in milliseconds: an interaction, or a record that was made of one."""

    @property
    def ids(self) -> tuple[Id, ...]: ...
    @property
    def timestamp(self) -> int: ...


NO_ROWS: Final = np.empty(0, dtype=np.int64)


class InteractionColumns(NamedTuple):
    """Several interactions, column by column."""

    ids: tuple[list[Id], ...]
    """The ids, one column for each entity."""
    timestamps: NDArray[np.int64]
    """Times, in milliseconds, shape (n,)."""

    @classmethod
    def of(cls, interactions: Sequence[InteractionLike], entities: int) -> InteractionColumns:
        """Return the columns of interactions that name so many entities."""
        return cls(
            columns_of([each.ids for each in interactions], entities),
            np.array([each.timestamp for each in interactions], dtype=np.int64),
        )

    def select(self, rows: NDArray[np.int64]) -> InteractionColumns:
        """Return some rows."""
        places = rows.tolist()
        ids = tuple([[*map(column.__getitem__, places)] for column in self.ids])
        return InteractionColumns(ids, self.timestamps[rows])

    def append(self, rows: NDArray[np.int64]) -> InteractionColumns:
        """Return these, and behind them some once more."""
        ids = tuple([[*column, *map(column.__getitem__, rows.tolist())] for column in self.ids])
        return InteractionColumns(ids, np.append(self.timestamps, self.timestamps[rows]))


class ModelOutput(NamedTuple):
    """What the model predicts for an interaction, and the features that it used."""

    features: list[float]
    score: float
    probability: float | None
    """None where the learner's loss has no probabilities."""
    predicted: bool | float
    challengers: dict[str, float] | None
    """The challengers' scores by name; None where there are none."""


class FormerLabels(NamedTuple):
    """Labels that are replaced, by interaction; any numbers where none is."""

    values: NDArray[np.float64]
    """Shape (n,)."""
    weights: NDArray[np.float64] | None
    """Shape (n,); None where all are 1."""


class ModelOutputs(NamedTuple):
    """The same of several interactions, column by column."""

    features: NDArray[np.float64]
    """Shape (n, features)."""
    scores: list[float]
    probabilities: list[float] | list[None]
    challengers: list[dict[str, float]] | list[None]


def label_weights(records: Sequence[Outcome | Example]) -> NDArray[np.float64] | None:
    """Return the weights of records' labels, shape (n,); None where the stream's labels have none."""
    if not (records and records[0].weighted):
        return None
    return np.array([each.weight for each in records], dtype=np.float64)


def feature_rows(records: Sequence[Outcome | Example], features: int) -> NDArray[np.float64]:
    """Return the features of records, shape (n, features)."""
    pack = Struct(f"{features}d").pack  # the quickest way from lists to an array
    numbers = np.frombuffer(b"".join([pack(*record.features) for record in records]))
    return numbers.reshape(len(records), features)
