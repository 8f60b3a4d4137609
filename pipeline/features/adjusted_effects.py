"""The adjusted effects of the entities of running statistics: arrays by row, and their state."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pipeline.features.effect_arrays import (
    GENERATION_BIT,
    LABELS,
    NO_ITEM,
    RING,
    ROW_MASK,
    USER_COLUMNS,
    EffectArrays,
    Floats,
    Integers,
    Signals,
)
from pipeline.features.effects import SOLVE_INTERVAL


class EffectsState(NamedTuple):
    """The state in an order of users and items, which depends on no rows.

    Attributes
    ----------
    users : ndarray, shape (users, 11), float64
        See `pipeline.features.effect_arrays.EFFECT`.
    ring : ndarray, shape (labels,), int32
        Items of the labels in the users' rings, one user after the other: the item's place in the order, from
        1; 0 if it was evicted.
    ring_signals : ndarray, shape (labels,), float32
        Signals of these labels.
    items : ndarray, shape (items, 4), float64
        See `pipeline.features.effect_arrays.RESIDUALS`.
    groups : ndarray, shape (groups, 2), float64
        The same of groups.
    everything : ndarray, shape (3,), float64
        See `pipeline.features.effect_arrays.TOTAL`.
    """

    users: Floats
    ring: NDArray[np.int32]
    ring_signals: Signals
    items: Floats
    groups: Floats
    everything: Floats


class AdjustedEffects:
    """Adjusted effects of the users and items whose rows `pipeline.features.entities.EntityTotals` assigns.

    Parameters
    ----------
    groups
        The number of groups of items.

    Attributes
    ----------
    arrays
        What compiled code reads and changes.
    """

    def __init__(self, groups: int) -> None:
        self.arrays = _zeros(1, 1, groups)

    def reserve(self, users: int, items: int) -> Self:
        """Make room for so many rows of users and of items."""
        arrays = self.arrays
        if users > len(arrays.users):
            more = users - len(arrays.users)
            arrays = arrays._replace(
                users=_longer(arrays.users, more),
                ring=_longer(arrays.ring, more),
                ring_signals=_longer(arrays.ring_signals, more),
            )
        if items > len(arrays.items):
            more = items - len(arrays.items)
            arrays = arrays._replace(
                items=_longer(arrays.items, more), generations=_longer(arrays.generations, more)
            )
        self.arrays = arrays
        return self

    def state(self, users: Integers, items: Integers) -> EffectsState:
        """Return the state of these rows of users and items, in their order."""
        arrays = self.arrays
        places = np.zeros(len(arrays.items), dtype=np.int32)
        places[items] = np.arange(1, 1 + len(items))
        slots = _slots(arrays.users[users])
        ring = arrays.ring[users][slots]
        rows = ring & ROW_MASK
        live = arrays.generations[rows] == ring >> GENERATION_BIT
        return EffectsState(
            arrays.users[users],
            np.where(live, places[rows], NO_ITEM).astype(np.int32),
            arrays.ring_signals[users][slots],
            arrays.items[items],
            arrays.groups.copy(),
            arrays.everything.copy(),
        )

    def restore(self, state: EffectsState) -> None:
        """Replace everything by what `state` returned; users and items get the rows from 1 on, in order.

        Raises
        ------
        ValueError
            Rings hold other than what users and items have.
        """
        users, items = len(state.users), len(state.items)
        arrays = _zeros(1 + users, 1 + items, len(state.groups))
        slots = _slots(state.users)
        labels = int(slots.sum())
        if len(state.ring) != labels or len(state.ring_signals) != labels:
            raise ValueError(
                f"rings have {len(state.ring)} items and {len(state.ring_signals)} signals of {labels} labels"
            )
        if labels and not 0 <= state.ring.min() <= state.ring.max() <= items:
            raise ValueError(f"rings name items up to {state.ring.max()}, there are {items}")
        arrays.users[1:] = state.users
        arrays.ring[1:][slots] = state.ring
        arrays.ring_signals[1:][slots] = state.ring_signals
        arrays.items[1:] = state.items
        arrays.groups[:] = state.groups
        arrays.everything[:] = state.everything
        self.arrays = arrays


def _zeros(users: int, items: int, groups: int) -> EffectArrays:
    return EffectArrays(
        np.zeros((users, USER_COLUMNS)),
        np.zeros((users, RING), dtype=np.int64),
        np.zeros((users, RING), dtype=np.float32),
        np.zeros((items, 4)),
        np.zeros(items, dtype=np.int64),
        np.zeros((groups, 2)),
        np.zeros(3),
    )


def _slots(users: Floats) -> NDArray[np.bool_]:
    """Return which slots of the users' rings hold a label, shape (users, RING)."""
    labels = users[:, LABELS, None]
    solved = (labels - 1.0) // SOLVE_INTERVAL * SOLVE_INTERVAL
    oldest = np.maximum(0.0, solved + SOLVE_INTERVAL - RING)  # as `pipeline.features.effects.oldest_label`
    stored: NDArray[np.bool_] = (np.arange(RING) - oldest) % RING < labels - oldest
    return stored


def _longer(array: NDArray, more: int) -> NDArray:  # type: ignore[type-arg]  # of any dtype
    """Return the array with so many rows of zeros behind its own."""
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])
