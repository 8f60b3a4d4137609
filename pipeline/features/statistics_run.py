"""Steps of the running statistics over events that are given together, prepared for the compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.features import totals
from pipeline.features.adjusted_effects import AdjustedEffects
from pipeline.features.effect_arrays import FEATURES, EffectArrays
from pipeline.features.entities import EntityTotals, Key
from pipeline.features.feature_set import FeatureSet
from pipeline.features.statistics_loop import (
    TABLES_AT_ONCE,
    StatisticsArrays,
    StatisticsEvents,
    Tables,
    make_features,
    run_statistics,
)
from pipeline.features.tags import TagLists
from pipeline.features.target import Target
from pipeline.records.fields import Id

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

NO_CHANGES: Final = np.empty((0, 2))
"""No label is replaced."""
NO_SIGNALS: Final = np.empty(0)
NO_EFFECTS: Final = AdjustedEffects(0).arrays
NO_TABLE: Final = np.empty((0, totals.BASE_COLUMNS)), np.empty((0, 2), dtype=np.int64)
"""The totals and the ring of none."""


class Statistics(Protocol):
    """What a run needs of `pipeline.features.statistics.RunningStatistics`."""

    feature_set: FeatureSet
    names: tuple[str, ...]
    target: Target
    tables: list[EntityTotals]
    tags: Floats
    tag_lists: TagLists
    tagged: int | None
    columns: int
    everything: Floats

    def keys(self, number: int, ids: Sequence[Sequence[Id]], values: Floats) -> Sequence[Key]: ...
    def effect_arrays(self) -> EffectArrays | None: ...


class StatisticsRun:
    """Steps over n events.

    The rows of their entities are found here. Until `finish`, only the compiled loop may change the
    statistics.

    Parameters
    ----------
    statistics
        They change.
    ids, labels, label_values, timestamps, values, formers, expected
        As in `pipeline.features.statistics.RunningStatistics.run`.
    origins : ndarray, shape (n,), int64
        See `pipeline.features.totals.run_table`.

    Attributes
    ----------
    arrays
        What `pipeline.features.statistics_loop` reads and changes.
    """

    def __init__(  # noqa: PLR0917 - columns
        self,
        statistics: Statistics,
        ids: Sequence[Sequence[Id]],
        labels: NDArray[np.bool_],
        label_values: Floats,
        timestamps: Integers,
        values: Floats,
        formers: Floats | None,
        expected: Floats,
        origins: Integers,
    ) -> None:
        self._statistics, self._n, self._kinds = statistics, len(labels), 2 if formers is None else 3
        n, tables, target = self._n, statistics.tables, statistics.target
        rows = np.empty((len(tables), n), dtype=np.int64)
        for number, table in enumerate(tables):
            rows[number] = table.rows_for(statistics.keys(number, ids, values))
        tag_lists = item_lists = np.zeros(n, dtype=np.int64)
        if statistics.tagged is not None:
            tag_lists = tables[statistics.tagged].annotations[rows[statistics.tagged]]
        summands, changes = target.summands(label_values), NO_CHANGES
        if formers is not None:
            positive, former = labels.astype(np.float64), target.are_positive(formers)
            changes = np.column_stack([positive - former, summands - target.summands(formers)])
        found = np.full((totals.FIRST_TABLE + len(tables), n, statistics.columns), np.nan)
        effects, adjusted = statistics.effect_arrays(), tuple[int, ...]()
        signals = former_signals = NO_SIGNALS
        annotations, effects_found = tag_lists, np.empty((0, FEATURES))
        if effects is not None:
            adjusted = _, item = statistics.feature_set.layout.effects or (0, 0)
            signals, annotations = target.signals(label_values), tables[item].annotations
            former_signals = NO_SIGNALS if formers is None else target.signals(formers)
            item_lists, effects_found = annotations[rows[item]], np.full((n, FEATURES), np.nan)
        events = StatisticsEvents(
            rows,
            timestamps,
            labels,
            summands,
            changes,
            tag_lists,
            item_lists,
            signals,
            former_signals,
            expected,
            origins,
            found,
            effects_found,
        )
        self.arrays: StatisticsArrays = (
            tuple(events),
            tuple(self._tables(annotations, adjusted)),
            tuple(NO_EFFECTS if effects is None else effects),
        )

    def _tables(self, annotations: Integers, adjusted: tuple[int, ...]) -> Tables:
        """Return the tables, with what is beside them."""
        statistics = self._statistics
        tables, features = statistics.tables, statistics.feature_set
        of_tables = [(table.totals, table.ring) for table in tables]
        room = -len(tables) % TABLES_AT_ONCE if tables else TABLES_AT_ONCE
        every, rings = zip(*of_tables, *[NO_TABLE] * room, strict=True)
        self._capacities = np.array([table.capacity for table in tables], dtype=np.int64)
        return Tables(
            every,
            rings,
            np.array([float(each.half_life or 0) for each in features.layout.tables]),
            self._capacities,
            statistics.everything,
            statistics.tags,
            statistics.tag_lists.packed,
            np.array(adjusted, dtype=np.int64),
            annotations,
            features.codes,
            np.array(features.effect_columns, dtype=np.int64),
        )

    def evicted(self, steps: int) -> Integers:
        """Return an array for the rows that so many steps evict, shape (tables, steps)."""
        return np.zeros((len(self._capacities), steps), dtype=np.int64)

    def check_order(self, order: Integers) -> None:
        """Raise a ValueError if a step is out of range."""
        n, kinds = self._n, self._kinds
        if order.size and not 0 <= order.min() <= order.max() < kinds * n:
            raise ValueError(f"steps in order must be from 0 to {kinds * n - 1}, for {n} events")

    def run(self, order: Integers) -> Floats:
        """Run all steps: see `pipeline.features.statistics.RunningStatistics.run`."""
        out = np.full((self._n, len(self._statistics.names)), np.nan)
        evicted = self.evicted(len(order))
        run_statistics(self.arrays, order, 0, len(order), evicted)
        if (order < self._n).any():  # a restore looks nothing up
            make_features(self.arrays, 0, out)
        self.finish(evicted)
        return out

    def finish(self, evicted: Integers) -> None:
        """Forget the entities whose rows were evicted, or that were new and got no label."""
        any_evicted = bool(evicted.any())
        for table, capacity, rows in zip(
            self._statistics.tables, self._capacities.tolist(), evicted, strict=True
        ):
            table.capacity = capacity
            table.release_evicted(rows[rows != totals.NO_ROW].tolist() if any_evicted else ())
