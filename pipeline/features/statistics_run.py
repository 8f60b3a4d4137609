"""Steps of the running statistics over events that are given together, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.features import effects, totals
from pipeline.features.effect_arrays import FEATURES, EffectArrays
from pipeline.features.entities import EntityTotals, Key
from pipeline.features.feature_set import FeatureSet
from pipeline.features.tags import TagLists
from pipeline.features.target import Target
from pipeline.records.fields import Id

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

NO_CHANGES: Final = np.empty((0, 2))
"""No label is replaced."""
NO_FORMERS: Final = np.empty(0)


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

    What is the same for all parts is made once: the rows of the entities above all.

    Parameters
    ----------
    statistics
        They change.
    ids, labels, label_values, timestamps, values, formers
        As in `pipeline.features.statistics.RunningStatistics.run`.

    Attributes
    ----------
    out
        The features, shape (n, running features); NaN where there was no such step.
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
    ) -> None:
        self._statistics, n, target = statistics, len(labels), statistics.target
        self._labels, self._timestamps = labels, timestamps
        self._summands, self._changes = target.summands(label_values), NO_CHANGES
        if formers is not None:
            positive, former = labels.astype(np.float64), target.are_positive(formers)
            differences = self._summands - target.summands(formers)
            self._changes = np.column_stack([positive - former, differences])
        tables, layout = statistics.tables, statistics.feature_set.layout
        self._rows = [
            table.rows_for(statistics.keys(number, ids, values)) for number, table in enumerate(tables)
        ]
        self._lists = np.zeros(n, dtype=np.int64)
        if statistics.tagged is not None:
            self._lists = tables[statistics.tagged].annotations[self._rows[statistics.tagged]]
        self._found = np.full((totals.FIRST_TABLE + len(tables), n, statistics.columns), np.nan)
        self._half_lives = [float(table.half_life or 0) for table in layout.tables]
        self._gone: list[list[int]] = [[] for _ in tables]
        self.out = np.full((n, len(statistics.names)), np.nan)
        self._effects = statistics.effect_arrays()
        if self._effects is not None:
            self._signals = target.signals(label_values)
            self._former_signals = NO_FORMERS if formers is None else target.signals(formers)
            _, item = layout.effects or (0, 0)
            self._item_lists = tables[item].annotations[self._rows[item]]
            self._of_effects = np.full((n, FEATURES), np.nan)

    def run(self, order: Integers) -> None:
        """Run the next steps, shape (steps,): see `pipeline.features.statistics.RunningStatistics.run`.

        Raises
        ------
        ValueError
            A step is out of range. None has been run.
        """
        n, kinds = len(self._labels), 3 if len(self._changes) else 2
        if order.size and not 0 <= order.min() <= order.max() < kinds * n:
            raise ValueError(f"steps in order must be from 0 to {kinds * n - 1}, for {n} events")
        statistics, found = self._statistics, self._found
        labels, summands, changes = self._labels, self._summands, self._changes
        everything, packed = statistics.everything, statistics.tag_lists.packed
        totals.run_everything(order, labels, summands, changes, everything, found[totals.EVERYTHING])
        of_tags = found[totals.TAGS]
        totals.run_tags(order, self._lists, labels, summands, changes, statistics.tags, packed, of_tags)
        evicted = np.zeros((len(statistics.tables), len(order)), dtype=np.int64)
        for number, table in enumerate(statistics.tables):
            table.capacity = totals.run_table(
                order,
                self._rows[number],
                self._timestamps,
                labels,
                summands,
                changes,
                self._half_lives[number],
                table.totals,
                table.ring,
                table.capacity,
                found[totals.FIRST_TABLE + number],
                evicted[number],
            )
        if self._effects is not None:
            self._run_effects(order, evicted)
        if evicted.any():
            for of_table, rows in zip(self._gone, evicted, strict=True):
                of_table.extend(rows[rows != totals.NO_ROW].tolist())

    def features(self, begin: int, end: int) -> Floats:
        """Return the features of some events that were looked up, shape (end - begin, running features)."""
        features, out = self._statistics.feature_set, self.out[begin:end]
        totals.make_features(features.codes, self._timestamps, self._found, begin, out)
        if self._effects is not None:
            out[:, features.effect_columns] = self._of_effects[begin:end]
        return out

    def finish(self) -> None:
        """Forget the entities that were evicted, or that were new and got no label."""
        for table, gone in zip(self._statistics.tables, self._gone, strict=True):
            table.release_evicted(gone)

    def _run_effects(self, order: Integers, evicted: Integers) -> None:
        """Run the effects as the tables have been run."""
        statistics, own = self._statistics, self._effects
        assert own is not None
        user, item = statistics.feature_set.layout.effects or (0, 0)
        effects.run(
            order,
            self._rows[user],
            self._rows[item],
            self._item_lists,
            self._signals,
            self._former_signals,
            evicted[[user, item]],
            own,
            statistics.tables[item].annotations,
            statistics.tag_lists.packed,
            self._of_effects,
        )
