"""The context vector: static blocks, categories, running features, and further features of the message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.features.feature_set import FeatureSet

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ContextLayout:
    """Where each feature goes in a context vector.

    Categories come before the running features, and all else behind them. So the linear part of a learner can
    have all of them, and the kernel's points those that are no categories: distances between indicators say
    little.

    Attributes
    ----------
    static_columns
        Columns of the tables, which come first.
    first_running
        The first column of the running features.
    dimension
        Length of the vector.
    categories
        Of each category, its place among the features and the first of its columns.
    others
        Places of the features that are no categories, in the order of their columns. What only the sparse
        part of the learner sees is not among them.
    whole
        Whether the vector ends with all features, in their order.
    hidden_running
        How many running features, the last of them, have no column.
    """

    static_columns: int
    first_running: int
    dimension: int
    categories: tuple[tuple[int, int], ...]
    others: tuple[int, ...]
    whole: bool
    hidden_running: int

    @classmethod
    def of(cls, static_columns: int, features: FeatureSet) -> ContextLayout:
        """Return the layout of these features behind so many static columns."""
        end, categories = static_columns, list[tuple[int, int]]()
        for place, columns in features.categories:
            categories.append((place, end))
            end += columns
        taken = {place for place, _ in categories}
        sparse = features.layout.sparse
        hidden = range(0) if sparse is None else sparse.hidden
        if sparse is not None:
            taken |= {*sparse.fields, *hidden}
        others = tuple(place for place in range(len(features)) if place not in taken)
        whole = len(others) == len(features)
        return cls(static_columns, end, end + len(others), tuple(categories), others, whole, len(hidden))

    @property
    def own_columns(self) -> int:
        """The number of columns behind the static ones."""
        return self.dimension - self.static_columns

    def fill(self, X: Floats, features: Floats) -> None:
        """Write features behind the static columns of context vectors. A value that has no column has none.

        Parameters
        ----------
        X
            Context vectors, shape (n, dimension), which are zeros there.
        features
            Features as predictions carry them, shape (n, features).
        """
        if self.whole:
            X[:, self.first_running :] = features
            return
        X[:, self.first_running :] = features[:, self.others]
        ends = [first for _, first in self.categories[1:]] + [self.first_running] * bool(self.categories)
        for (place, first), end in zip(self.categories, ends, strict=True):
            buckets = features[:, place]
            [rows] = np.nonzero((buckets >= 0.0) & (buckets < end - first))
            X[rows, first + buckets[rows].astype(np.int64)] = 1.0
