"""The state of adjusted effects (`pipeline.features.effects`): arrays, and what their columns hold.

Functions of `njit` read these by position: this file counts as one of those whose code is compiled.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Signals: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.int64]

RING: Final = 20
"""Labels of a user that are kept one by one, at most."""
EFFECT, NOISE, VARIANCE, LABELS = range(4)
"""The first columns of users: effect b, noise s and variance of the effect as of the newest label; labels."""
SOLVED_EFFECT, SOLVED_NOISE = range(4, 6)
"""Effect and noise as of the newest solution over the ring: those in the sums of items and groups."""
OLDER_LABELS, OLDER_RESIDUALS, OLDER_SQUARES = range(6, 9)
"""Sums of those labels that have left the ring: number, residuals x - q, and squares of these."""
ALL_RESIDUALS, ALL_SQUARES = range(9, 11)
"""The same of all labels, residuals as of the newest solution or of a label after it."""
USER_COLUMNS: Final = 11
RESIDUALS, PRECISION, SQUARES, COUNT = range(4)
"""The columns of items: sums of (x - b) / s, of 1 / s, of squared residuals, and the number of labels. Groups
have the first two."""
TOTAL, SIGNALS, TOTAL_SQUARES = range(3)
"""The columns of everything: number of labels, sum of signals, sum of squared residuals."""

USER_EFFECT, USER_NOISE, ITEM_EFFECT, ITEM_NOISE, LOGIT = range(5)
"""The features: the user's effect and the standard deviation of the noise, the same of the item, and the
expected signal over its standard deviation, times `LOGIT_SCALE`."""
FEATURES: Final = 5
"""How many features there are."""

NO_ITEM: Final = 0
"""The row of an unknown item, all zeros."""
GENERATION_BIT: Final = 32
"""The bit from which on an entry of a ring holds its item's generation; the row is below."""
ROW_MASK: Final = (1 << GENERATION_BIT) - 1


class EffectArrays(NamedTuple):
    """The state of the model.

    Attributes
    ----------
    users : ndarray, shape (users, 11), float64
        See `EFFECT`.
    ring : ndarray, shape (users, `RING`), int64
        Entries of the user's newest labels: the item's row, and its generation from `GENERATION_BIT` on.
    ring_signals : ndarray, shape (users, `RING`), float32
        Signals of these labels.
    items : ndarray, shape (items, 4), float64
        See `RESIDUALS`.
    generations : ndarray, shape (items,), int64
        How often the row has been emptied: entries of an older generation are of another item.
    groups : ndarray, shape (groups, 2), float64
        See `RESIDUALS`.
    everything : ndarray, shape (3,), float64
        See `TOTAL`.
    """

    users: Floats
    ring: Integers
    ring_signals: Signals
    items: Floats
    generations: Integers
    groups: Floats
    everything: Floats
