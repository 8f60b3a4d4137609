"""A cache of entities' factors: the kernel of an entity's block with the landmarks' blocks.

See `forks.learning.event_loop` before changing compiled functions.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forks.algorithm.feature_map import FeatureMap
from forks.algorithm.kernels import gaussian, gaussian_row, precision
from forks.arrays import FloatArray, IntArray
from forks.compiled.alignment import aligned_rows
from forks.jit import njit
from forks.learning.tile import event_of
from forks.settings import ForksSettings

EMPTY = -1
"""Entity number of an empty slot."""


class FactorCache:
    """Cache of the factors of a bounded number of entities of each table.

    Each entity has exactly one possible slot, so that a look-up costs the same for any number of entities.
    After a change of the map, only the factors of new landmarks are computed again, when the entity is next
    needed.

    Parameters
    ----------
    settings
        Settings of the learner.
    tables
        One (entities, columns) matrix for each entity block.
    max_entities
        Number of slots for each table.
    """

    def __init__(self, settings: ForksSettings, tables: Sequence[FloatArray], max_entities: int) -> None:
        self._gamma = precision(settings.width)
        self._tables = tables
        edge = settings.kernel_columns[0]
        self._blocks = [(start - edge, stop - edge) for start, stop in settings.entity_blocks]
        sizes = [min(max_entities, len(table)) for table in tables]
        self._edges = np.cumsum([0, *sizes]).tolist()
        total = self._edges[-1]
        self.factors = aligned_rows(np.zeros((total, settings.landmarks)))
        """Factors, (slots of all tables, s_m padded to whole cache lines)."""
        self._entities = np.full(total, EMPTY)
        self._versions = np.zeros(
            total, dtype=np.int64
        )  # version of the landmarks when the factors were computed
        self._requests = np.zeros(total, dtype=np.int64)  # last request that needed the slot
        self._request = 0
        self._landmarks = np.full((settings.kernel_columns[1] - edge, settings.landmarks), np.nan)
        self._version = 0
        self._changed = np.zeros(settings.landmarks, dtype=np.int64)  # version in which each landmark was new

    def slots(self, numbers: IntArray, order: IntArray, feature_map: FeatureMap) -> IntArray:
        """Return the rows of `factors` for the first steps of ``order``, valid until the next call.

        Parameters
        ----------
        numbers : ndarray, shape (n, blocks), int64
            Each event's entities, as row numbers of the tables.
        order : ndarray, shape (steps,), steps >= 1, int64
            Steps to find slots for; i and n + i are steps of event i.
        feature_map
            Feature map with the current landmarks.

        Returns
        -------
        ndarray, shape (m, blocks), int64
            Rows for the first m >= 1 steps, as many as do not need one slot for two entities.
        """
        self._mark_changed_landmarks(feature_map.landmarks)
        self._request += 1
        slots = np.empty((len(order), len(self._blocks)), dtype=np.int64)
        for b, (start, stop) in enumerate(self._blocks):
            low, high = self._edges[b : b + 2]
            count: int = _fill_slots(
                order[: len(slots)],
                numbers,
                self._tables[b],
                self._landmarks[start:stop],
                self._gamma,
                low,
                high - low,
                self.factors,
                self._entities,
                self._versions,
                self._requests,
                self._request,
                self._version,
                self._changed,
                slots,
                b,
            )
            slots = slots[:count]
        return slots

    def _mark_changed_landmarks(self, landmarks: FloatArray) -> None:
        """Record which landmarks are new; a map's arrays are never written to, so the same array has none."""
        if landmarks is not self._landmarks:
            self._version += 1
            new = (landmarks != self._landmarks).any(axis=0)
            self._changed[new] = self._version
            self._landmarks = landmarks


@njit(cache=True)
def _fill_slots(
    order: IntArray,
    numbers: IntArray,
    table: FloatArray,
    landmarks: FloatArray,
    gamma: float,
    first: int,
    size: int,
    factors: FloatArray,
    entities: IntArray,
    versions: IntArray,
    requests: IntArray,
    request: int,
    version: int,
    changed: IntArray,
    slots: IntArray,
    block: int,
) -> int:
    """Update the slots of the steps' entities until one is needed twice; return the number of steps done."""
    for i in range(order.shape[0]):
        event, _ = event_of(order[i], numbers.shape[0])
        entity = numbers[event, block]
        slot = first + entity % size
        if entities[slot] != entity:
            if requests[slot] == request:
                return i
            gaussian_row(table[entity], landmarks, gamma, factors[slot])
            entities[slot] = entity
            versions[slot] = version
        elif versions[slot] != version:
            for m in range(changed.shape[0]):
                if changed[m] > versions[slot]:
                    factors[slot, m] = gaussian(table[entity], landmarks[:, m], gamma)
            versions[slot] = version
        requests[slot] = request
        slots[i, block] = slot
    return len(order)
