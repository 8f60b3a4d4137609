"""The compiled loop of the running statistics: rings, effects and totals, one after the other."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from forks.jit import njit
from pipeline.features.effect_arrays import ITEM_EFFECT, USER_EFFECT, EffectArrays
from pipeline.features.effects import run as run_effects
from pipeline.features.totals import (
    EVERYTHING,
    FIRST_TABLE,
    TAGS,
    Booleans,
    Floats,
    Integers,
    make_running_features,
    run_everything,
    run_ring,
    run_table,
    run_tags,
)

TABLES_AT_ONCE: Final = 4
"""`Tables` has room for a multiple of this: the loop is compiled anew for each such number."""


class StatisticsEvents(NamedTuple):
    """What is known of n events, and found of them.

    Attributes
    ----------
    rows : ndarray, shape (tables, n), int64
        Each event's row in each table.
    times : ndarray, shape (n,), int64
        Times of the events, in milliseconds.
    labels, summands, changes
        See `pipeline.features.totals.run_everything`.
    tag_lists, item_lists : ndarray, shape (n,), int64
        Positions of the lists of each event's tags, and of the groups of its item.
    signals, formers
        See `pipeline.features.effects.run`.
    expected, origins : ndarray, shape (n,)
        See `pipeline.features.totals.run_table`. What is expected of an event that is looked up is written.
    found : ndarray, shape (tables + 2, n, columns), float64
        Totals that are looked up, from `pipeline.features.totals.EVERYTHING` on.
    effects_found : ndarray, shape (n, 5), float64
        Features of the effects.
    """

    rows: Integers
    times: Integers
    labels: Booleans
    summands: Floats
    changes: Floats
    tag_lists: Integers
    item_lists: Integers
    signals: Floats
    formers: Floats
    expected: Floats
    origins: Integers
    found: Floats
    effects_found: Floats


class Tables(NamedTuple):
    """The tables, and what is beside them.

    Attributes
    ----------
    totals, rings
        Those of each table, see `pipeline.features.totals`; empty ones behind them.
    half_lives : ndarray, shape (tables,), float64
        Milliseconds after which an event counts half in recent totals.
    capacities : ndarray, shape (tables,), int64
        New rows in each table before one is evicted.
    everything : ndarray, shape (1, 3), float64
        The totals of all labels.
    tags : ndarray, shape (tags, 3), float64
        The totals of tags.
    packed : ndarray, int64
        Lists of tags: see `pipeline.features.tags.TagLists`.
    adjusted : ndarray, shape (2,) or (0,), int64
        Numbers of the tables of users and items whose effects are adjusted; none without effects.
    annotations : ndarray, shape (items,), int64
        Positions of the lists of the groups of these items.
    codes : ndarray, shape (running features, 3), int64
        See `pipeline.features.totals.make_running_features`.
    effect_columns : ndarray, shape (5,) or (0,), int64
        Places of the features of the effects.
    """

    totals: tuple[Floats, ...]
    rings: tuple[Integers, ...]
    half_lives: Floats
    capacities: Integers
    everything: Floats
    tags: Floats
    packed: Integers
    adjusted: Integers
    annotations: Integers
    codes: Integers
    effect_columns: Integers


StatisticsArrays: TypeAlias = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]
"""`StatisticsEvents`, `Tables` and `pipeline.features.effect_arrays.EffectArrays`, as plain tuples: Numba
needs more time to determine the types of named ones."""


@njit(cache=True, nogil=True)
def run_statistics(
    arrays: StatisticsArrays, order: Integers, begin: int, end: int, evicted: Integers
) -> None:
    """Run steps of `order`: i looks up event i, n + i counts its label, 2 n + i replaces it.

    Parameters
    ----------
    arrays
        They change.
    order : ndarray, shape (steps,), int64
        Steps.
    begin, end
        The first one that is run, and the one behind the last.
    evicted : ndarray, shape (tables, steps), int64
        Written: the row of each table that each step evicts, or `pipeline.features.totals.NO_ROW`.
    """
    order = order[begin:end]
    events, tables, state = StatisticsEvents(*arrays[0]), Tables(*arrays[1]), EffectArrays(*arrays[2])
    labels, summands, changes, found = events.labels, events.summands, events.changes, events.found
    run_everything(order, labels, summands, changes, tables.everything, found[EVERYTHING])
    run_tags(order, events.tag_lists, labels, summands, changes, tables.tags, tables.packed, found[TAGS])
    for number in range(tables.half_lives.shape[0]):
        tables.capacities[number] = run_ring(
            order,
            labels.shape[0],
            events.rows[number],
            tables.rings[number],
            tables.capacities[number],
            evicted[number, begin:end],
        )
    if tables.adjusted.shape[0] > 0:
        user, item = tables.adjusted
        run_effects(
            order,
            events.rows[user],
            events.rows[item],
            events.item_lists,
            events.signals,
            events.formers,
            evicted[user, begin:end],
            evicted[item, begin:end],
            state,
            tables.annotations,
            tables.packed,
            events.effects_found,
        )
        _expect(order, events.effects_found, events.expected)
    for number in range(tables.half_lives.shape[0]):
        run_table(
            order,
            events.rows[number],
            events.times,
            labels,
            summands,
            changes,
            events.signals,
            events.formers,
            events.expected,
            events.origins,
            tables.half_lives[number],
            tables.totals[number],
            evicted[number, begin:end],
            found[FIRST_TABLE + number],
        )


@njit(cache=True)
def _expect(order: Integers, effects_found: Floats, expected: Floats) -> None:
    """Write the signals that effects expect of the events that are looked up."""
    for step in range(order.shape[0]):
        event = order[step]
        if event < expected.shape[0]:
            expected[event] = effects_found[event, USER_EFFECT] + effects_found[event, ITEM_EFFECT]


@njit(cache=True, nogil=True)
def make_features(arrays: StatisticsArrays, begin: int, out: Floats) -> None:
    """Write the features of events that were looked up to `out`, (events, features), the first being `begin`.

    Columns behind the running features stay as they are.
    """
    events, tables = StatisticsEvents(*arrays[0]), Tables(*arrays[1])
    make_running_features(tables.codes, events.times, events.found, begin, out)
    for number in range(tables.effect_columns.shape[0]):
        column = tables.effect_columns[number]
        for row in range(out.shape[0]):
            out[row, column] = events.effects_found[begin + row, number]
