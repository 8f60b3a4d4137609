"""Adding columns to a learner that has already learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forks.algorithm.tracking import RENEWED_PRECISION, UNCHANGED
from forks.learner import Forks
from forks.state import State, StateReader
from forks.wide import WideForks


def widened_by_numbers(learner: WideForks, more: int) -> WideForks:
    """Return a learner of events with further numbers, the last ones, as if they had been zero before.

    Examples
    --------
    >>> from forks import SparseSettings
    >>> narrow = WideForks(SparseSettings(fields=1))
    >>> narrow.learn_many(narrow.rows([["a"], ["b"], ["a"]]), [1, -1, 1])
    >>> wide = widened_by_numbers(narrow, 1)
    >>> [one], [other] = narrow.rows([["a"]]), wide.rows([["a"]], numbers=[[0.0]])
    >>> wide.predict_one(other) == narrow.predict_one(one)
    True
    """
    dense = widened(learner.dense, learner.dense.settings.dimension + more)
    wider = WideForks(learner.sparse.settings, dense.settings)
    wider.sparse.restore(learner.sparse.state())
    wider.dense = dense
    return wider


def widened(learner: Forks, dimension: int) -> Forks:
    """Return a learner for ``dimension`` columns with the state of ``learner``.

    It is the learner that ``learner`` would be if the new columns, the last ones, had been zero in all
    events: their moments, weights, corrections and entries of stored points are zero, and their inverse
    Hessian is the prior's. Everything else stays as it is, including the kernel's width.

    Parameters
    ----------
    learner
        A learner whose parts, the kernel part and the linear part if it has one, see all columns.
    dimension
        Number of columns of the new learner, at least that of ``learner``.

    Examples
    --------
    >>> from forks import ForksSettings
    >>> narrow = Forks(ForksSettings.practical(2))
    >>> _ = narrow.learn_many([[1.0, 2.0], [2.0, 1.0], [2.0, 0.0]], [1, -1, 1])
    >>> wide = widened(narrow, 3)
    >>> wide.predict_one([1.5, 2.0, 0.0]) == narrow.predict_one([1.5, 2.0])
    True
    """
    settings = learner.settings
    wider = replace(
        settings, dimension=dimension, linear_columns=(0, dimension), kernel_columns=(0, dimension)
    )
    new = dimension - settings.dimension
    state = learner.state()
    reader = StateReader(state)
    weights = reader.floats("weights", settings.features)
    inverse = reader.floats("inverse_hessian", settings.features, settings.features)
    linear = settings.linear_features
    added = np.arange(linear, wider.linear_features)
    if settings.sum_kernel:  # the linear features come first, the map's after them
        at = np.full(new, linear)
        weights = np.insert(weights, at, 0.0)
        inverse = np.insert(np.insert(inverse, at, 0.0, axis=0), at, 0.0, axis=1)
        inverse[added, added] = 1.0 / settings.linear_precision
    changed: State = {
        "mean": np.pad(reader.floats("mean", settings.dimension), (0, new)),
        "squares": np.pad(reader.floats("squares", settings.dimension), (0, new)),
        "points": np.pad(reader.floats("points", None, settings.dimension), ((0, 0), (0, new))),
        "weights": weights,
        "inverse_hessian": inverse,
    }
    if settings.tracking:
        corrections = reader.floats("corrections", 3, linear)
        changed["corrections"] = np.pad(corrections, ((0, 0), (0, new)))
        covariance = np.pad(reader.floats("covariance", linear, linear), (0, new))
        if reader.floats("phase", 1)[0] != UNCHANGED:
            covariance[added, added] = 1.0 / RENEWED_PRECISION
        changed["covariance"] = covariance
    return Forks.from_state(wider, state | changed)
