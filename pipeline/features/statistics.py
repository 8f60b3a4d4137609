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
from pipeline.features import effects, totals
from pipeline.features.adjusted_effects import AdjustedEffects
from pipeline.features.binary import TARGET
from pipeline.features.category_keys import category_keys
from pipeline.features.effect_arrays import EffectArrays
from pipeline.features.entities import EntityTotals, Key
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet, columns_of
from pipeline.features.statistics_run import StatisticsRun
from pipeline.features.tags import TagLists
from pipeline.features.target import Target
from pipeline.records.fields import Id
from pipeline.records.outputs import EffectSums, EntityCounts, Share

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

NO_EFFECTS: Final = EffectSums(0.0, 0.0, 0.0, 0.0)
"""What is shared of an entity if nothing is said of its effect."""
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
    target
        The rules that make labels and signals of the labels' values.
    tag_lists
        The tags of the second entity.
    tagged
        The number of the table whose entities may have tags; None without.
    columns
        Columns of the widest table.

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
        self.target = target
        self.tag_lists = TagLists({}) if tags is None else tags
        self.tables = [
            EntityTotals(
                max_entities,
                columns_of(table),
                self.tag_lists.find if table.parts == TAGGED else lambda _: 0,
            )
            for table in features.layout.tables
        ]
        self.tagged = next(
            (number for number, table in enumerate(features.layout.tables) if table.parts == TAGGED), None
        )
        self.columns = max((table.columns for table in self.tables), default=totals.BASE_COLUMNS)
        self.tags: Floats = np.zeros((self.tag_lists.count, totals.BASE_COLUMNS))
        self.everything: Floats = np.zeros((1, totals.BASE_COLUMNS))
        self.effects = AdjustedEffects(self.tag_lists.count) if features.layout.effects else None

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
        *,
        expected: float = 0.0,
    ) -> None:
        """Count a label of an event: whether it is positive, and its value.

        Parameters
        ----------
        ids
            The ids of its entities.
        label, value
            The label.
        timestamp, values
            As in `features`.
        expected
            The signal that effects expected: see `pipeline.features.feature_set.FeatureSet.expected_signals`.
        """
        self._run_one(1, ids, timestamp, values, value, None, label, expected)

    def _run_one(  # noqa: PLR0917 - columns of one event
        self,
        step: int,
        ids: Sequence[Id],
        timestamp: int,
        values: Sequence[float],
        value: float,
        former: float | None,
        label: bool = False,
        expected: float = 0.0,
    ) -> list[list[float]]:
        found: list[list[float]] = self.run(
            np.array([step]),
            tuple([each] for each in ids),
            np.array([label]),
            np.array([float(value)]),
            np.array([timestamp]),
            np.array([values], dtype=np.float64),
            None if former is None else np.array([float(former)]),
            np.array([float(expected)]),
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
        expected: Floats | None = None,
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
        expected
            The signals that effects expected of the events that an earlier call looked up, shape (n,); None
            where no feature needs them. Written for those that this one looks up, before their labels.

        Returns
        -------
        ndarray
            The features, shape (n, running features); NaN for events without such a step.

        Raises
        ------
        ValueError
            The columns differ in length, or a step is out of range. Nothing has changed.
        """
        run = self.begin(ids, labels, label_values, timestamps, values, formers, expected)
        try:
            run.check_order(order)
        except ValueError:
            run.finish(run.evicted(0))
            raise
        return run.run(order)

    def begin(  # noqa: PLR0917 - columns
        self,
        ids: Sequence[Sequence[Id]],
        labels: NDArray[np.bool_],
        label_values: Floats,
        timestamps: Integers | None = None,
        values: Floats | None = None,
        formers: Floats | None = None,
        expected: Floats | None = None,
        origins: Integers | None = None,
    ) -> StatisticsRun:
        """Begin what `run` does, for a caller that runs the steps in compiled code.

        The parameters, and what is raised, are those of `run`. Nothing else may change the statistics before
        it is finished. `origins` are the events that were predicted, shape (n,), if some are there for one
        more label of these.
        """
        n = len(labels)
        expected = np.zeros(n) if expected is None else expected
        origins = np.arange(n) if origins is None else origins
        timestamps = np.zeros(n, dtype=np.int64) if timestamps is None else timestamps
        values = np.empty((n, 0)) if values is None else values
        lengths = [*map(len, ids), n, len(label_values), len(timestamps), len(values)]
        if len(set(lengths)) > 1:
            raise ValueError(f"ids, labels, values and timestamps must have one length, not {lengths}")
        return StatisticsRun(self, ids, labels, label_values, timestamps, values, formers, expected, origins)

    def keys(self, number: int, ids: Sequence[Sequence[Id]], values: Floats) -> Sequence[Key]:
        """Return the keys of events in a table."""
        columns = [
            ids[part.place] if part.entity else category_keys(part, values[:, part.place])
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

    def effect_arrays(self) -> EffectArrays | None:
        """Return the arrays of the effects, with a row for each of the two tables'; None without effects."""
        if self.effects is None:
            return None
        user, item = self.adjusted_tables()
        return self.effects.reserve(len(user.totals), len(item.totals)).arrays

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
        self._run_one(2, ids, timestamp, values, value, former, self.target.is_positive(value))

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
        if number == self.tagged:
            totals.merge_tags(table.annotations[rows], added, self.tags, self.tag_lists.packed)
        gone = evicted[evicted != totals.NO_ROW]
        own = self.effect_arrays()
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
                own,
                self.tag_lists.packed,
            )
        table.release_evicted(gone.tolist())
