"""The sparse part of a model's learner, as a stream asks for it."""

from __future__ import annotations

from typing import Final

from forks import LossName
from forks.sparse import SparsePart, SparseSettings
from pipeline.features.feature_set import FeatureSet

DEFAULT_MAX_CATEGORIES: Final = 2**20
"""Rows of its table, as in the configuration."""


def sparse_part(features: FeatureSet, loss: LossName, max_categories: int) -> SparsePart | None:
    """Return the sparse part for a stream's features; None where it has no features.

    Parameters
    ----------
    features
        The features of the stream.
    loss
        The learner's loss.
    max_categories
        Rows of its table.
    """
    layout = features.layout.sparse
    if layout is None:
        return None
    settings = SparseSettings(
        fields=len(layout.fields),
        words=len(layout.words),
        numbers=len(layout.numbers),
        loss="squared" if loss == "squared" else "logistic",
        pairs=layout.pairs,
        crosses=layout.crosses,
        capacity=max_categories,
    )
    inputs = layout.fields + layout.words + layout.numbers
    return SparsePart(settings, inputs, layout.first_score, layout.base)
