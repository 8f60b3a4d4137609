"""The arithmetic of the running statistics, compiled: sums over labels, and the features made of them.

Totals are rows of sums over labels: their number, the number of positive ones, and their values; where it is
wanted, the time of the newest event, the same three sums with weights that halve with event time, and that of
residuals: what effects leave of the signals. The rows of a table form a ring in the order of their updates:
the next row to be evicted is the oldest.

Each table is run alone over the steps of a batch: a step looks up an event's totals, or counts its label. Its
ring is run before, since effects have to know which rows are evicted, and residuals what effects expected.
Then all features are made of the totals looked up. Every sum is made in the order of the steps, so that an
event's features have the same bits whether it is processed alone or among many. The functions release
Python's global lock.
"""

# ruff: noqa: PLR0912, PLR0917 -- compiled code is called by position, and has no tables of functions
from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.compiled.exponential import exponential
from forks.compiled.logarithm import log1p, logarithm
from forks.jit import ZERO, njit

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]

PRIOR_WEIGHT = 10.0
"""The weight of the prior mean in an entity's means, in events."""

DECIMALS = 6
"""Decimals that features are rounded to: further ones help no prediction, and are a fifth of the bytes of a
record."""
_UNIT = float(10**DECIMALS)

EVENTS, LABELS, VALUES, NEWEST, RECENT_EVENTS, RECENT_LABELS, RECENT_VALUES, RECENT_RESIDUALS = range(8)
"""The columns of totals."""
BASE_COLUMNS, TIMED_COLUMNS, RECENT_COLUMNS, RESIDUAL_COLUMNS = 3, 4, 7, 8
"""Columns of a table: the first three, those and the time of the newest event in milliseconds, those and the
recent sums over labels, or all."""

RESIDUAL_WEIGHT = 1.0
"""Labels without a residual that count in the mean of recent residuals, chosen on KuaiRand's first week."""
MAX_RESIDUAL = 2.0
"""Larger residuals count as this one: signals are in [-1, 1], and so is nearly all that effects expect."""

OLDER, NEWER = range(2)
"""The columns of a ring of rows."""

NO_ROW = 0
"""The row of an unknown entity. In a ring, it stands between the newest row and the oldest."""

UNLINKED = -1
"""The value in place of a row's older neighbour, while the row is not in its ring."""

EVERYTHING, TAGS, FIRST_TABLE = range(3)
"""Numbers of totals that were looked up: those of everything, of tags, and of each table from here on."""

(
    LABEL_MEAN,
    LABEL_LOGIT,
    VALUE_MEAN,
    LOG_COUNT,
    LEANING_LABEL_MEAN,
    LEANING_VALUE_MEAN,
    RECENT_LABEL_MEAN,
    RECENT_VALUE_MEAN,
    RECENT_RESIDUAL,
    LOG_RECENT_COUNT,
    LOG_SINCE_LAST,
) = range(11)
"""Features that are made of totals."""
ELSEWHERE = -1
"""The code of a feature that is made elsewhere."""

NEVER = 30.0 * 86_400.0
"""Seconds since the last event of an entity that has had none."""
_LOG_2 = float.fromhex("0x1.62e42fefa39efp-1")


@njit(cache=True, nogil=True)
def run_everything(
    order: Integers, labels: Booleans, values: Floats, changes: Floats, everything: Floats, found: Floats
) -> None:
    """Run the steps of `order` over the totals of all labels, shape (1, 3).

    Parameters
    ----------
    order : ndarray, shape (steps,), int64
        Steps over n events: i looks up event i's totals, n + i counts its label, 2 n + i replaces it.
    labels : ndarray, shape (n,), bool
        Whether each label is positive.
    values : ndarray, shape (n,), float64
        The labels' values.
    changes : ndarray, shape (n, 2), float64
        By what labels and values change where a label is replaced; (0, 2) where none is.
    everything
        The totals; changed.
    found : ndarray, shape (n, columns), float64
        The totals that are looked up.
    """
    n = found.shape[0]
    for step in range(order.shape[0]):
        event = order[step]
        if event < n:
            for column in range(BASE_COLUMNS):
                found[event, column] = everything[0, column]
        elif event < 2 * n:
            _add(everything, ZERO, labels[event - n], values[event - n])
        else:
            _change(everything, ZERO, changes[event - 2 * n])


@njit(cache=True, nogil=True)
def run_tags(
    order: Integers,
    tag_lists: Integers,
    labels: Booleans,
    values: Floats,
    changes: Floats,
    tags: Floats,
    packed: Integers,
    found: Floats,
) -> None:
    """Run the steps of `order` over the totals of tags, shape (tags, 3), as `run_everything`.

    What is looked up is the sum over the tags of an event's item. Its list is at `tag_lists` in `packed`: see
    `pipeline.features.tags.TagLists`.
    """
    n = found.shape[0]
    for step in range(order.shape[0]):
        event = order[step]
        if event < n:
            for column in range(BASE_COLUMNS):
                found[event, column] = 0.0
            begin = tag_lists[event] + 1
            for position in range(begin, begin + packed[begin - 1]):
                for column in range(BASE_COLUMNS):
                    found[event, column] += tags[packed[position], column]
        elif event < 2 * n:
            event -= n
            begin = tag_lists[event] + 1
            for position in range(begin, begin + packed[begin - 1]):
                _add(tags, packed[position], labels[event], values[event])
        else:
            event -= 2 * n
            begin = tag_lists[event] + 1
            for position in range(begin, begin + packed[begin - 1]):
                _change(tags, packed[position], changes[event])


@njit(cache=True, nogil=True)
def run_ring(
    order: Integers, n: int, rows: Integers, ring: Integers, capacity: int, evicted: Integers
) -> int:
    """Run the steps of `order` over the ring of a table: a label makes its row the newest.

    Parameters
    ----------
    order
        As for `run_everything`.
    n
        The number of events.
    rows : ndarray, shape (n,), int64
        Each event's row.
    ring
        The rows in the order of updates; changed.
    capacity
        New rows before one is evicted.
    evicted : ndarray, shape (steps,), int64
        Written: the row that each step evicts, or `NO_ROW`. A later step may use such a row again.

    Returns
    -------
    int
        What is left of the capacity.
    """
    for step in range(order.shape[0]):
        event = order[step] - n
        if 0 <= event < n:
            new = ring[rows[event], OLDER] == UNLINKED
            evicted[step] = _touch(ring, rows[event], capacity)
            capacity -= new and evicted[step] == NO_ROW
    return capacity


@njit(cache=True, nogil=True)
def run_table(
    order: Integers,
    rows: Integers,
    times: Integers,
    labels: Booleans,
    values: Floats,
    changes: Floats,
    signals: Floats,
    formers: Floats,
    expected: Floats,
    origins: Integers,
    half_life: float,
    totals: Floats,
    evicted: Integers,
    found: Floats,
) -> None:
    """Run the steps of `order` over the totals of a table, shape (rows, columns), as `run_everything`.

    Recent totals are looked up as of the event's time.

    Parameters
    ----------
    order
        As for `run_everything`.
    rows : ndarray, shape (n,), int64
        Each event's row.
    times : ndarray, shape (n,), int64
        Times of the events, in milliseconds.
    labels, values, changes
        As for `run_everything`. What an entity that was evicted counted is gone, and does not change.
    signals, formers
        See `pipeline.features.effects.run`; read for residuals alone, as the next two.
    expected : ndarray, shape (n,), float64
        The signal that effects expected of each event when it was predicted.
    origins : ndarray, shape (n,), int64
        The event that was predicted: another than i where i is there for one more label of it.
    half_life
        Milliseconds after which an event counts half in recent totals.
    totals
        The table; changed.
    evicted : ndarray, shape (steps,), int64
        The row that each step evicts: see `run_ring`.
    found
        As for `run_everything`.
    """
    n = found.shape[0]
    columns = totals.shape[1]
    for step in range(order.shape[0]):
        event = order[step]
        if event < n:
            row = rows[event]
            for column in range(columns):
                found[event, column] = totals[row, column]
            if columns >= RECENT_COLUMNS:
                share = kept(times[event] - totals[row, NEWEST], half_life)
                for column in range(RECENT_EVENTS, columns):
                    found[event, column] *= share
            continue
        if event >= 2 * n:
            event -= 2 * n
            row = rows[event]
            if totals[row, EVENTS] > 0.0:
                _change_timed(totals, row, float(times[event]), changes[event], half_life)
                if columns == RESIDUAL_COLUMNS:
                    change = signals[event] - formers[event]
                    _change_residual(totals, row, float(times[event]), change, half_life)
            continue
        event -= n
        row = rows[event]
        _forget(totals, evicted[step])
        _add(totals, row, labels[event], values[event])
        if columns > BASE_COLUMNS:
            residual = 0.0
            if columns == RESIDUAL_COLUMNS:
                residual = _residual(signals[event], expected[origins[event]])
            _add_timed(totals, row, float(times[event]), labels[event], values[event], residual, half_life)


@njit(cache=True, nogil=True)
def merge_shared(
    rows: Integers, sums: Floats, totals: Floats, ring: Integers, capacity: int, evicted: Integers
) -> None:
    """Add sums over labels, shape (n, 3), to the totals of their rows.

    The row that is evicted for one of them is written to `evicted`, shape (n,).
    """
    for number in range(rows.shape[0]):
        row = rows[number]
        new = ring[row, OLDER] == UNLINKED
        evicted[number] = _touch(ring, row, capacity)
        capacity -= new and evicted[number] == NO_ROW
        _forget(totals, evicted[number])
        for column in range(BASE_COLUMNS):
            totals[row, column] += sums[number, column]


@njit(cache=True, nogil=True)
def merge_everything(sums: Floats, everything: Floats) -> None:
    """Add sums over labels, shape (n, 3), to the totals of all labels."""
    for number in range(sums.shape[0]):
        for column in range(BASE_COLUMNS):
            everything[0, column] += sums[number, column]


@njit(cache=True, nogil=True)
def merge_tags(tag_lists: Integers, sums: Floats, tags: Floats, packed: Integers) -> None:
    """Add sums over labels, shape (n, 3), to the totals of the tags in lists."""
    for number in range(tag_lists.shape[0]):
        begin = tag_lists[number] + 1
        for column in range(BASE_COLUMNS):
            for tag in packed[begin : begin + packed[begin - 1]]:
                tags[tag, column] += sums[number, column]


@njit(cache=True, nogil=True)
def make_running_features(codes: Integers, times: Integers, found: Floats, begin: int, out: Floats) -> None:
    """Make features of totals that were looked up.

    Parameters
    ----------
    codes : ndarray, shape (features, 3), int64
        Of each feature, what it is, the number of its totals, and of those that it leans on. Those that are
        made elsewhere are left as they are.
    times : ndarray, shape (n,), int64
        Times of the events, in milliseconds.
    found : ndarray, shape (tables, n, columns), float64
        Totals from `EVERYTHING` on.
    begin : int
        The first event whose features are made.
    out : ndarray, shape (events, features), float64
        The features, with `DECIMALS`.
    """
    for row in range(out.shape[0]):
        event = begin + row
        events = found[EVERYTHING, event, EVENTS]
        label_prior = (found[EVERYTHING, event, LABELS] + 0.5) / (events + 1.0)
        value_prior = (found[EVERYTHING, event, VALUES] + 0.5) / (events + 1.0)
        for feature in range(codes.shape[0]):
            code = codes[feature, 0]
            if code == ELSEWHERE:
                continue
            own, group = codes[feature, 1], codes[feature, 2]
            if code == LABEL_MEAN:
                value = _smoothed(found[own, event, LABELS], found[own, event, EVENTS], label_prior)
            elif code == LABEL_LOGIT:
                mean = _smoothed(found[own, event, LABELS], found[own, event, EVENTS], label_prior)
                value = logarithm(mean / (1.0 - mean))
            elif code == VALUE_MEAN:
                value = _smoothed(found[own, event, VALUES], found[own, event, EVENTS], value_prior)
            elif code == LOG_COUNT:
                value = log1p(found[own, event, EVENTS])
            elif code == LEANING_LABEL_MEAN:
                prior = _group_mean(found[group, event, LABELS], found[group, event, EVENTS], label_prior)
                value = _smoothed(found[own, event, LABELS], found[own, event, EVENTS], prior)
            elif code == LEANING_VALUE_MEAN:
                prior = _group_mean(found[group, event, VALUES], found[group, event, EVENTS], value_prior)
                value = _smoothed(found[own, event, VALUES], found[own, event, EVENTS], prior)
            elif code == RECENT_LABEL_MEAN:
                value = _smoothed(
                    found[own, event, RECENT_LABELS], found[own, event, RECENT_EVENTS], label_prior
                )
            elif code == RECENT_VALUE_MEAN:
                value = _smoothed(
                    found[own, event, RECENT_VALUES], found[own, event, RECENT_EVENTS], value_prior
                )
            elif code == RECENT_RESIDUAL:
                weight = found[own, event, RECENT_EVENTS] + RESIDUAL_WEIGHT
                value = found[own, event, RECENT_RESIDUALS] / weight
            elif code == LOG_RECENT_COUNT:
                value = log1p(found[own, event, RECENT_EVENTS])
            else:
                since = NEVER + 0.0 * events  # NaN stays
                if found[own, event, EVENTS] > 0.0:
                    since = max(0.0, float(times[event]) - found[own, event, NEWEST]) / 1000.0
                value = log1p(since)
            out[row, feature] = float(np.rint(value * _UNIT) / _UNIT)


@njit(cache=True)
def _touch(ring: Integers, row: int, capacity: int) -> int:
    """Make a row the newest of its ring; return the row that is evicted for it, or `NO_ROW`."""
    evicted = NO_ROW
    if ring[row, OLDER] != UNLINKED:
        _unlink(ring, row)
    elif capacity == 0:
        evicted = ring[NO_ROW, NEWER]
        _unlink(ring, evicted)
        ring[evicted, OLDER] = UNLINKED
    newest = ring[NO_ROW, OLDER]
    ring[newest, NEWER] = row
    ring[row, OLDER] = newest
    ring[row, NEWER] = NO_ROW
    ring[NO_ROW, OLDER] = row
    return evicted


@njit(cache=True)
def _unlink(ring: Integers, row: int) -> None:
    older, newer = ring[row, OLDER], ring[row, NEWER]
    ring[older, NEWER] = newer
    ring[newer, OLDER] = older


@njit(cache=True)
def _forget(totals: Floats, evicted: int) -> None:
    """Empty the totals of a row that is evicted; `NO_ROW` for none."""
    if evicted != NO_ROW:
        for column in range(totals.shape[1]):
            totals[evicted, column] = 0.0


@njit(cache=True)
def _add(totals: Floats, row: int, label: bool, value: float) -> None:
    totals[row, EVENTS] += 1.0
    totals[row, LABELS] += label
    totals[row, VALUES] += value


@njit(cache=True)
def _add_timed(
    totals: Floats, row: int, time: float, label: bool, value: float, residual: float, half_life: float
) -> None:
    """Count a label in the recent totals, which are as of the newest event."""
    age = totals[row, NEWEST] - time
    totals[row, NEWEST] = max(time, totals[row, NEWEST])
    columns = totals.shape[1]
    if columns >= RECENT_COLUMNS:
        if age < 0.0:
            share = kept(-age, half_life)
            for column in range(RECENT_EVENTS, columns):
                totals[row, column] *= share
        weight = kept(age, half_life)
        totals[row, RECENT_EVENTS] += weight
        totals[row, RECENT_LABELS] += weight * label
        totals[row, RECENT_VALUES] += weight * value
        if columns == RESIDUAL_COLUMNS:
            totals[row, RECENT_RESIDUALS] += weight * residual


@njit(cache=True)
def _change(totals: Floats, row: int, change: Floats) -> None:
    """Change labels and values of totals. Neither falls below 0, and there are no more labels than events."""
    totals[row, LABELS] = min(max(totals[row, LABELS] + change[0], 0.0), totals[row, EVENTS])
    totals[row, VALUES] = max(totals[row, VALUES] + change[1], 0.0)


@njit(cache=True)
def _change_timed(totals: Floats, row: int, time: float, change: Floats, half_life: float) -> None:
    """Change the totals of a table, recent ones by what the event counts by now."""
    _change(totals, row, change)
    if totals.shape[1] >= RECENT_COLUMNS:
        share = kept(totals[row, NEWEST] - time, half_life)
        labels = max(totals[row, RECENT_LABELS] + share * change[0], 0.0)
        totals[row, RECENT_LABELS] = min(labels, totals[row, RECENT_EVENTS])
        totals[row, RECENT_VALUES] = max(totals[row, RECENT_VALUES] + share * change[1], 0.0)


@njit(cache=True)
def _change_residual(totals: Floats, row: int, time: float, change: float, half_life: float) -> None:
    """Change the recent residuals of a table by what the event counts by now."""
    share = kept(totals[row, NEWEST] - time, half_life)
    limit = MAX_RESIDUAL * totals[row, RECENT_EVENTS]
    residuals = totals[row, RECENT_RESIDUALS] + share * change
    totals[row, RECENT_RESIDUALS] = min(max(residuals, -limit), limit)


@njit(cache=True)
def _residual(signal: float, expected: float) -> float:
    """Return what is left of a signal."""
    return min(max(signal - expected, -MAX_RESIDUAL), MAX_RESIDUAL)


@njit(cache=True)
def kept(age: float, half_life: float) -> float:
    """Return what an event counts after so many milliseconds: 1 at first, half after a half-life."""
    if age <= 0.0:
        return 1.0
    share: float = exponential(-age * (_LOG_2 / half_life))
    return share


@njit(cache=True)
def _group_mean(total: float, events: float, prior: float) -> float:
    """Return the mean of what an entity leans on; the prior where that has no events."""
    if events == 0.0:  # 10 p / 10 need not be p
        return prior
    return _smoothed(total, events, prior)


@njit(cache=True)
def _smoothed(total: float, events: float, prior: float) -> float:
    """Return the mean over so many events, and over `PRIOR_WEIGHT` more that are at the prior."""
    return (total + PRIOR_WEIGHT * prior) / (events + PRIOR_WEIGHT)
