"""Events given by the numbers of their entities, and tables of the entities' columns.

A Gaussian kernel on a concatenation is the product of the kernels on its blocks. A user's factors, the kernel
of the user's block with the landmarks' blocks, are the same for all events until a landmark changes. An event
whose factors are cached costs no more than its varying columns, however wide the blocks are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from forks.algorithm.feature_map import FeatureMap
from forks.algorithm.kernels import precision
from forks.arrays import FloatArray, IntArray
from forks.checks import check_indices, check_matrix
from forks.learning.events import Rows
from forks.learning.factors import FactorCache
from forks.learning.tile import Steps
from forks.settings import ForksSettings


class EntityTables:
    """The static blocks of entities, and a bounded cache of their factors.

    The cache does not affect scores: a cached factor has the bits of a new one, and scores are those of whole
    rows under the same settings. An instance must be used by one thread at a time.

    Parameters
    ----------
    settings
        Settings of the learner that the events are for, with ``entity_blocks``.
    tables
        One (entities, columns) float64 matrix for each entity block; row i is the block of entity i.
    max_entities
        Number of entities of each table whose factors are kept, >= 1; entities whose numbers are equal modulo
        this number displace each other.

    Raises
    ------
    ValueError
        The tables do not match the blocks, or ``max_entities`` is below 1.

    Examples
    --------
    >>> from forks import EntityTables, Forks, ForksSettings
    >>> settings = ForksSettings.paper(5, entity_blocks=((0, 2), (2, 4)))
    >>> users, items = np.eye(2), [[0, 1], [1, 1], [2, 0]]
    >>> tables = EntityTables(settings, [users, items], max_entities=1000)
    >>> losses = Forks(settings).learn_many(tables.events([[0, 2], [1, 0]], [[0.5], [0.1]]), [1, -1])
    >>> rows = [[1, 0, 2, 0, 0.5], [0, 1, 0, 1, 0.1]]
    >>> bool((Forks(settings).learn_many(rows, [1, -1]) == losses).all())
    True
    """

    def __init__(self, settings: ForksSettings, tables: Sequence[ArrayLike], *, max_entities: int) -> None:
        blocks = settings.entity_blocks
        if not blocks or len(tables) != len(blocks):
            raise ValueError(
                f"tables: {len(tables)} given for {len(blocks)} entity_blocks; give one for each block"
            )
        if max_entities < 1:
            raise ValueError(f"max_entities must be >= 1, not {max_entities}")
        self.settings = settings
        self.tables = [
            check_matrix(f"tables[{b}]", tables[b], stop - start) for b, (start, stop) in enumerate(blocks)
        ]
        self.cache = FactorCache(settings, self.tables, max_entities)

    def events(self, numbers: ArrayLike, varying: ArrayLike) -> EntityEvents:
        """Return events for the ``_many`` methods of `forks.Forks`.

        Parameters
        ----------
        numbers : ndarray, shape (n, blocks), integers
            Each event's entities, as row numbers of the tables.
        varying : ndarray, shape (n, dimension - end of the last block), float64
            Columns behind the entity blocks.

        Raises
        ------
        ValueError
            A shape is wrong, a number is not a row of its table, or a value is not finite.
        """
        columns = check_matrix(
            "varying", varying, self.settings.dimension - self.settings.entity_stop, self.settings.largest
        )
        entities = check_indices("numbers", numbers, len(columns), [len(table) for table in self.tables])
        return EntityEvents(self, entities, columns)


class EntityEvents:
    """Events given by entities and varying columns, made by `EntityTables.events`."""

    def __init__(self, tables: EntityTables, numbers: IntArray, varying: FloatArray) -> None:
        self._tables = tables
        self._numbers = numbers
        self._varying = varying

    def __len__(self) -> int:
        return len(self._varying)

    def checked_against(self, settings: ForksSettings) -> Self:
        """Return the events, or raise a ValueError if they were made for other settings."""
        if self._tables.settings != settings:
            raise ValueError("X was made by EntityTables with other settings than the learner's")
        return self

    def row(self, event: int) -> FloatArray:
        """Return the whole row of an event, (dimension,); columns before the kernel's are zeros."""
        unused = np.zeros(self._tables.settings.kernel_columns[0])
        blocks = [table[self._numbers[event, b]] for b, table in enumerate(self._tables.tables)]
        return np.hstack([unused, *blocks, self._varying[event]])

    def steps_for(self, order: IntArray, feature_map: FeatureMap) -> Steps:
        """Return the first one or more steps of ``order``, with the factors of their entities."""
        settings = self._tables.settings
        learns, event = divmod(int(order[0]), len(self))
        if not feature_map.landmarks.size:  # stage 1 compares with stored points, which are whole rows
            whole = Rows(self.row(event)[None], settings, precision(settings.width))
            return whole.steps_for(np.array([learns]), feature_map)
        cache = self._tables.cache
        slots = cache.slots(self._numbers, order, feature_map)
        return Steps(self._varying, settings.entity_stop, cache.factors, slots, order[: len(slots)])
