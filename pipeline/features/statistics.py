"""The running block of the context vector: statistics of the labels of entities, and of what they lean on.

Statistics change only when an outcome is learned, so that a feature holds no more than what was known when
the prediction was made. Memory is bounded: the entity updated longest ago is evicted first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.config.feature_layout import Part
from pipeline.config.stream_features import MAX_COLUMNS
from pipeline.features import effects, totals
from pipeline.features.adjusted_effects import AdjustedEffects
from pipeline.features.binary import TARGET
from pipeline.features.entities import EntityTotals, Key
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet, columns_of
from pipeline.features.tags import TagLists
from pipeline.features.target import Target
from pipeline.records.fields import Id
from pipeline.records.outputs import EffectSums, EntityCounts, Share

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

NO_EFFECTS: Final = EffectSums(0.0, 0.0, 0.0, 0.0)
"""What is shared of an entity if nothing is said of its effect."""
NO_CHANGES: Final = np.empty((0, 2))
"""No label is replaced."""
TAGGED: Final = (Part(entity=True, place=1),)
"""The key of the table whose entities may have tags: the second entity."""


class RunningStatistics:
    """Running means and counts by entity, and effects of two entities, adjusted for one another.

    Which features there are is said by `pipeline.features.feature_set.FeatureSet`. Means are smoothed towards
    the global mean with a prior weight of `pipeline.features.totals.PRIOR_WEIGHT`. A mean that leans on tags,
    or on another table, is smoothed towards the mean of these, which is itself smoothed towards the global
    one, so that a new video starts from the mean of videos like it. For a video without known tags it equals
    its plain mean. Effects are those of `pipeline.features.effects`.

    Parameters
    ----------
    max_entities
        The largest number of entities in each table.
    tags
        Tags of the second entity, as far as they are known.
    features
        Which features there are.
    target
        The rules that make labels and signals of the labels' values.

    Attributes
    ----------
    feature_set
        Which features there are.
    tables
        The totals of each table of the feature set.
    tags
        Events, labels and values by tag, shape (tags, 3); a label counts for each tag of its entity.
    everything
        Events, labels and values of all labels, shape (1, 3).
    effects
        The adjusted effects; None without.

    Examples
    --------
    >>> statistics = RunningStatistics(max_entities=1000, tags=TagLists({3: [8], 4: [8]}))
    >>> statistics.update((7, 3), True, 1.2)
    >>> named = dict(zip(statistics.names, statistics.features((7, 4)), strict=True))
    >>> named["user_log_count"], named["video_log_count"]
    (0.693147, 0.0)
    >>> named["user_effect"] > 0.0, named["video_label_mean"] < named["video_tag_value_mean"]
    (True, True)
    """

    def __init__(
        self,
        max_entities: int,
        tags: TagLists | None = None,
        features: FeatureSet = KUAIREC_FEATURES,
        target: Target = TARGET,
    ) -> None:
        self.feature_set = features
        self.names = features.layout.running_names
        self._target = target
        self._lists = TagLists({}) if tags is None else tags
        self.tables = [
            EntityTotals(
                max_entities,
                columns_of(table),
                self._lists.find if table.parts == TAGGED else lambda _: 0,
            )
            for table in features.layout.tables
        ]
        self._tagged = next(
            (number for number, table in enumerate(features.layout.tables) if table.parts == TAGGED), None
        )
        self._columns = max((table.columns for table in self.tables), default=totals.BASE_COLUMNS)
        self.tags: Floats = np.zeros((self._lists.count, totals.BASE_COLUMNS))
        self.everything: Floats = np.zeros((1, totals.BASE_COLUMNS))
        self.effects = AdjustedEffects(self._lists.count) if features.layout.effects else None

    def features(self, ids: Sequence[Id], timestamp: int = 0, values: Sequence[float] = ()) -> list[float]:
        """Return the running block of an event, in the order of `names`.

        Parameters
        ----------
        ids
            The ids of its entities.
        timestamp
            Its time, in milliseconds.
        values
            The features that its message has by itself.
        """
        [found] = self._run_one(0, ids, timestamp, values, 0.0, None)
        return found

    def update(
        self,
        ids: Sequence[Id],
        label: bool,
        value: float,
        timestamp: int = 0,
        values: Sequence[float] = (),
    ) -> None:
        """Count a label of an event: whether it is positive, and its value."""
        self._run_one(1, ids, timestamp, values, value, None, label)

    def _run_one(  # noqa: PLR0917 - columns of one event
        self,
        step: int,
        ids: Sequence[Id],
        timestamp: int,
        values: Sequence[float],
        value: float,
        former: float | None,
        label: bool = False,
    ) -> list[list[float]]:
        found: list[list[float]] = self.run(
            np.array([step]),
            tuple([each] for each in ids),
            np.array([label]),
            np.array([float(value)]),
            np.array([timestamp]),
            np.array([values], dtype=np.float64),
            None if former is None else np.array([float(former)]),
        ).tolist()
        return found

    def run(  # noqa: PLR0917 - columns
        self,
        order: Integers,
        ids: Sequence[Sequence[Id]],
        labels: NDArray[np.bool_],
        label_values: Floats,
        timestamps: Integers | None = None,
        values: Floats | None = None,
        formers: Floats | None = None,
    ) -> Floats:
        """Look up features and count labels in a given order, with the same bits as one by one.

        Parameters
        ----------
        order
            Steps, shape (steps,): i looks up event i's features, n + i counts its label, 2 n + i replaces
            it: see `replace`. An event may lack any of these; they may belong to another call.
        ids
            The ids of the n events, one column for each entity.
        labels, label_values
            Whether the events' labels are positive, and their values, shapes (n,).
        timestamps
            Times of the events in milliseconds, shape (n,); None where no feature needs them.
        values
            The features that messages have by themselves, shape (n, features); None for none.
        formers
            The values of labels that are replaced, shape (n,); None where none is.

        Returns
        -------
        ndarray
            The features, shape (n, running features); NaN for events without such a step.

        Raises
        ------
        ValueError
            The columns differ in length, or a step is out of range. Nothing has changed.
        """
        n = len(labels)
        timestamps = np.zeros(n, dtype=np.int64) if timestamps is None else timestamps
        values = np.empty((n, 0)) if values is None else values
        lengths = [*map(len, ids), n, len(label_values), len(timestamps), len(values)]
        kinds = 2 if formers is None else 3
        if len(set(lengths)) > 1:
            raise ValueError(f"ids, labels, values and timestamps must have one length, not {lengths}")
        if order.size and not 0 <= order.min() <= order.max() < kinds * n:
            raise ValueError(f"steps in order must be from 0 to {kinds * n - 1}, for {n} events")
        summands, changes = self._target.summands(label_values), NO_CHANGES
        if formers is not None:
            positive, former = labels.astype(np.float64), self._target.are_positive(formers)
            changes = np.column_stack([positive - former, summands - self._target.summands(formers)])
        found = np.full((totals.FIRST_TABLE + len(self.tables), n, self._columns), np.nan)
        everything = found[totals.EVERYTHING]
        totals.run_everything(order, labels, summands, changes, self.everything, everything)
        evicted = np.zeros((len(self.tables), len(order)), dtype=np.int64)
        rows = [table.rows_for(self._keys(number, ids, values)) for number, table in enumerate(self.tables)]
        tag_lists = np.zeros(n, dtype=np.int64)
        if self._tagged is not None:
            tag_lists = self.tables[self._tagged].annotations[rows[self._tagged]]
        packed, of_tags = self._lists.packed, found[totals.TAGS]
        totals.run_tags(order, tag_lists, labels, summands, changes, self.tags, packed, of_tags)
        for number, (table, spec) in enumerate(zip(self.tables, self.feature_set.layout.tables, strict=True)):
            totals.run_table(
                order,
                rows[number],
                timestamps,
                labels,
                summands,
                changes,
                float(spec.half_life or 0),
                table.totals,
                table.ring,
                table.capacity,
                found[totals.FIRST_TABLE + number],
                evicted[number],
            )
        out = np.full((n, len(self.names)), np.nan)
        effects_found = self._run_effects(order, rows, label_values, formers, evicted)
        if (order < n).any():  # a restore counts labels and looks nothing up
            totals.make_features(self.feature_set.codes, timestamps, found, out)
            if effects_found is not None:
                out[:, self.feature_set.effect_columns] = effects_found
        for table, gone in zip(self.tables, evicted, strict=True):
            table.release_evicted(gone[gone != totals.NO_ROW].tolist())
        return out

    def _keys(self, number: int, ids: Sequence[Sequence[Id]], values: Floats) -> Sequence[Key]:
        """Return the keys of events in a table."""
        columns = [
            ids[part.place]
            if part.entity
            else np.clip(values[:, part.place], -1, MAX_COLUMNS).astype(np.int64).tolist()
            for part in self.feature_set.layout.tables[number].parts
        ]
        return columns[0] if len(columns) == 1 else [*zip(*columns, strict=True)]

    def named_tables(self) -> Iterator[tuple[str, EntityTotals]]:
        """Yield the tables with their names in snapshots."""
        for layout, table in zip(self.feature_set.layout.tables, self.tables, strict=True):
            yield layout.name, table

    def adjusted_tables(self) -> tuple[EntityTotals, ...]:
        """Return the two tables whose effects are adjusted for one another; none without effects."""
        return tuple(self.tables[number] for number in self.feature_set.layout.effects or ())

    def _effect_arrays(self) -> effects.EffectArrays | None:
        """Return the arrays of the effects, with a row for each of the two tables'; None without effects."""
        if self.effects is None:
            return None
        user, item = self.adjusted_tables()
        return self.effects.reserve(len(user.totals), len(item.totals)).arrays

    def _run_effects(
        self,
        order: Integers,
        rows: Sequence[Integers],
        label_values: Floats,
        formers: Floats | None,
        evicted: Integers,
    ) -> Floats | None:
        """Run the effects as the tables have been run, and return those looked up, (n, 5); None without."""
        own = self._effect_arrays()
        if own is None:
            return None
        user, item = self.feature_set.layout.effects or (0, 0)
        item_lists = self.tables[item].annotations
        found = np.full((len(label_values), effects.FEATURES), np.nan)
        effects.run(
            order,
            rows[user],
            rows[item],
            item_lists[rows[item]],
            self._target.signals(label_values),
            np.empty(0) if formers is None else self._target.signals(formers),
            np.stack([evicted[user], evicted[item]]),
            own.users,
            own.ring,
            own.ring_signals,
            own.items,
            item_lists,
            own.generations,
            own.groups,
            own.everything,
            self._lists.packed,
            found,
        )
        return found

    def replace(
        self,
        ids: Sequence[Id],
        former: float,
        value: float,
        timestamp: int = 0,
        values: Sequence[float] = (),
    ) -> None:
        """Replace the value of a label that was counted by another.

        Sums change by the difference, recent ones by what the event counts by now. An entity that was evicted
        since has forgotten the former value: its sums stay between 0 and the number of its labels.

        Parameters
        ----------
        ids
            The ids of the event's entities.
        former, value
            The former value, and that in its place.
        timestamp
            The event's time, in milliseconds.
        values
            The features that the message has by itself.
        """
        self._run_one(2, ids, timestamp, values, value, former, self._target.is_positive(value))

    def merge_shared(self, shares: Sequence[Share]) -> None:
        """Add counts of labels that other partitions share, and what they say of effects.

        An entity may occur more than once. Each time counts as an update of it. Recent means, and the time
        since the last event, are of this partition's labels alone.
        """
        layout = self.feature_set.layout
        for place, number in enumerate(layout.shared):
            counts, sums = list[EntityCounts](), list[EffectSums]()
            for share in shares:
                of_table = share.counts[place]
                counts += of_table
                if number == layout.shared_effects:
                    sums += share.effects or [NO_EFFECTS] * len(of_table)
            self._merge_table(number, counts, sums)

    def _merge_table(self, number: int, counts: Sequence[EntityCounts], sums: Sequence[EffectSums]) -> None:
        table, n = self.tables[number], len(counts)
        rows = table.rows_for([count.entity for count in counts])
        of_labels = [(count.events, count.labels, count.values) for count in counts]
        added = np.array(of_labels, dtype=np.float64).reshape(n, 3)
        evicted = np.zeros(n, dtype=np.int64)
        totals.merge_shared(rows, added, table.totals, table.ring, table.capacity, evicted)
        if number == self.feature_set.layout.shared[0]:
            totals.merge_everything(added, self.everything)
        if number == self._tagged:
            totals.merge_tags(table.annotations[rows], added, self.tags, self._lists.packed)
        gone = evicted[evicted != totals.NO_ROW]
        own = self._effect_arrays()
        user, item = self.feature_set.layout.effects or (None, None)
        if own is not None and number == user:
            own.users[gone] = 0.0
        if own is not None and number == item:
            effects.merge_shared(
                rows,
                table.annotations[rows],
                np.array([count.events for count in counts], dtype=np.int64),
                np.array([msgspec.structs.astuple(each) for each in sums]).reshape(n, 4),
                evicted,
                own.users,
                own.items,
                own.generations,
                own.groups,
                own.everything,
                self._lists.packed,
            )
        table.release_evicted(gone.tolist())
