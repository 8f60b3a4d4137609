"""Adjusted effects of users and items on the labels, compiled.

A running mean of a user's labels mixes what the user is like with what items came before them. Here both are
parts of one model: with a user u, an item v and its groups (tags, a category), a signal x of a label is

    x = b_u + q_v + noise of variance s_u,   b_u ~ N(m, USER_PRIOR),   q_v ~ N(t_v, ITEM_PRIOR),

where m is the mean of all signals and t_v the mean of the effects of v's groups, each N(0, GROUP_PRIOR). Its
solution is kept near the optimum in one pass:

- An item and a group have two sums over their labels: of (x - b_u) / s_u and of 1 / s_u, the precision.
- A user has a ring of the newest labels, and three sums over the older ones, which fade. Each label of the
  user gives b_u and s_u anew. One in `SOLVE_INTERVAL` solves them over the whole ring, with the items'
  effects as they are now. What changes is then passed on to the sums of the ring's items and groups, so that
  these are exact for the b_u and s_u of the newest solution. Labels in between are added to what it summed.

An item that is evicted leaves entries behind in the rings of users. They count as labels of an item of which
nothing is known, and nothing is passed on to them.

All operations are sums, products, quotients and roots, which IEEE 754 rounds exactly, in a fixed order. So
the bits are the same on every machine.

Functions are inlined: a call counts references to each of its arrays atomically, which took half of an
event's time.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

import math
from typing import Final

import numpy as np

from forks.jit import njit
from pipeline.features.effect_arrays import (
    ALL_RESIDUALS,
    ALL_SQUARES,
    COUNT,
    EFFECT,
    GENERATION_BIT,
    LABELS,
    NO_ITEM,
    NOISE,
    OLDER_LABELS,
    OLDER_RESIDUALS,
    OLDER_SQUARES,
    PRECISION,
    RESIDUALS,
    RING,
    ROW_MASK,
    SIGNALS,
    SOLVED_EFFECT,
    SOLVED_NOISE,
    SQUARES,
    TOTAL,
    TOTAL_SQUARES,
    VARIANCE,
    EffectArrays,
    Floats,
    Integers,
)

USER_PRIOR: Final = 0.05
"""Prior variance of a user's effect. These three were chosen on KuaiRec, for signals between -1 and 1."""
ITEM_PRIOR: Final = 0.15
"""Prior variance of an item's effect around that of its groups."""
GROUP_PRIOR: Final = 0.05
"""Prior variance of a group's effect."""
NOISE_WEIGHT: Final = 5.0
"""Labels for which the mean noise counts in the noise of a user or an item."""
SOLVE_INTERVAL: Final = 4
"""Labels of a user from one solution over the ring to the next. With 1, and a ring of 16, an event takes
twice as long, and KuaiRand's first week is predicted no better."""
FIRST_LABELS: Final = 8
"""A user's first labels, each of which solves over the ring."""
FADE: Final = 0.98
"""What is kept of a user's older labels with each label that joins them, chosen on KuaiRand's first week."""
NOISE_STEPS: Final = 2
"""Turns of solving for effect and noise, each given the other."""
LOGIT_SCALE: Final = 1.5
"""Log-odds of a positive label for each standard deviation of the expected signal, chosen on KuaiRec."""

_UNIT: Final = 1e6


@njit(cache=True, error_model="numpy", inline="always")
def oldest_label(labels: int) -> int:
    """Return which of a user's labels, counted from 0, is the oldest in the ring after so many.

    Labels leave the ring where one is solved over it, as many as make room until the next.

    Examples
    --------
    >>> [oldest_label(labels) for labels in (0, 20, 21, 24, 25)]
    [0, 0, 4, 4, 8]
    """
    return max(0, (labels - 1) // SOLVE_INTERVAL * SOLVE_INTERVAL + SOLVE_INTERVAL - RING)


@njit(cache=True, error_model="numpy", inline="always")
def row_of(ring_entry: int, generations: Integers) -> int:
    """Return the row of an entry's item, `NO_ITEM` if it was evicted."""
    row = ring_entry & ROW_MASK
    return row if generations[row] == ring_entry >> GENERATION_BIT else NO_ITEM


@njit(cache=True, error_model="numpy", inline="always")
def group_effect(group_list: int, state: EffectArrays, packed: Integers) -> float:
    """Return the mean effect of the groups in a list, 0 for an empty list.

    Parameters
    ----------
    group_list
        Position of the list in `packed`.
    state
        The state of the model.
    packed : ndarray, int64
        Lists of groups, see `pipeline.features.tags.TagLists`.
    """
    count = packed[group_list]
    total = 0.0
    for position in range(group_list + 1, group_list + 1 + count):
        group = packed[position]
        total += state.groups[group, RESIDUALS] / (state.groups[group, PRECISION] + 1.0 / GROUP_PRIOR)
    mean: float = total / count if count > 1 else total
    return mean


@njit(cache=True, error_model="numpy", inline="always")
def item_effect(item: int, group_list: int, state: EffectArrays, packed: Integers) -> float:
    """Return the posterior mean of an item's effect, given those of the users.

    Parameters
    ----------
    item
        Row of the item.
    group_list
        Position of the list of its groups in `packed`.
    state
        The state of the model.
    packed : ndarray, int64
        Lists of groups.
    """
    prior = group_effect(group_list, state, packed) / ITEM_PRIOR
    effect: float = (state.items[item, RESIDUALS] + prior) / (state.items[item, PRECISION] + 1.0 / ITEM_PRIOR)
    return effect


@njit(cache=True, error_model="numpy", inline="always")
def item_variance(item: int, group_list: int, state: EffectArrays, packed: Integers) -> float:
    """Return the posterior variance of an item's effect; parameters are those of `item_effect`."""
    count = packed[group_list]
    variance = 0.0
    for position in range(group_list + 1, group_list + 1 + count):
        variance += 1.0 / (state.groups[packed[position], PRECISION] + 1.0 / GROUP_PRIOR)
    variance = variance / (count * count) if count > 0 else GROUP_PRIOR
    precision = state.items[item, PRECISION] + 1.0 / ITEM_PRIOR
    prior_share = (1.0 / ITEM_PRIOR) / precision
    total: float = 1.0 / precision + prior_share * prior_share * variance
    return total


@njit(cache=True, error_model="numpy", inline="always")
def features(
    user: int, item: int, group_list: int, state: EffectArrays, packed: Integers
) -> tuple[float, float, float, float, float]:
    """Return the features of a user and an item, see `USER_EFFECT`, with six decimals."""
    mean, mean_noise = _mean_signal(state.everything), _mean_noise(state.everything)
    own, noise, variance = mean, mean_noise, USER_PRIOR
    if state.users[user, LABELS] > 0.0:
        own, noise = state.users[user, EFFECT], state.users[user, NOISE]
        variance = state.users[user, VARIANCE]
    effect = item_effect(item, group_list, state, packed)
    variance += item_variance(item, group_list, state, packed)
    item_noise = (NOISE_WEIGHT * mean_noise + state.items[item, SQUARES]) / (
        NOISE_WEIGHT + state.items[item, COUNT]
    )
    return (
        _rounded(own),
        _rounded(math.sqrt(noise)),
        _rounded(effect),
        _rounded(math.sqrt(item_noise)),
        _rounded(LOGIT_SCALE * (own + effect) / math.sqrt(noise + variance)),
    )


@njit(cache=True, error_model="numpy", inline="always")
def learn(
    user: int,
    item: int,
    group_list: int,
    x: float,
    evicted_user: int,
    evicted_item: int,
    state: EffectArrays,
    item_lists: Integers,
    packed: Integers,
) -> None:
    """Learn the signal of a label.

    Parameters
    ----------
    user, item
        Their rows.
    group_list
        Position of the list of the item's groups.
    x
        The signal, in [-1, 1].
    evicted_user, evicted_item
        Rows that are emptied before, 0 for none.
    state
        The state of the model; changed.
    item_lists : ndarray, shape (items,), int64
        Position of the list of each item's groups.
    packed : ndarray, int64
        Lists of groups.
    """
    _evict(evicted_user, evicted_item, state)
    seen = int(state.users[user, LABELS])
    solves = seen < FIRST_LABELS or seen % SOLVE_INTERVAL == 0
    oldest = oldest_label(seen)
    if solves:
        older, oldest = oldest, oldest_label(seen + 1)
        _move_to_older(user, older, oldest, state, item_lists, packed)
    newest = seen % RING
    state.ring[user, newest] = item | (state.generations[item] << GENERATION_BIT)
    state.ring_signals[user, newest] = x
    state.users[user, LABELS] = seen + 1.0
    residual = x - item_effect(item, group_list, state, packed)  # its sums lack this label so far
    if solves:
        _sum_residuals(user, oldest, state, item_lists, packed)
    else:
        state.users[user, ALL_RESIDUALS] += residual
        state.users[user, ALL_SQUARES] += residual * residual
    _solve(user, state.users[user, OLDER_LABELS] + (seen + 1 - oldest), state)
    if solves:
        _pass_on(user, oldest, seen, state, item_lists, packed)
    own, noise = state.users[user, SOLVED_EFFECT], state.users[user, SOLVED_NOISE]
    _add(item, group_list, (x - own) / noise, 1.0 / noise, state, packed)
    rest = residual - state.users[user, EFFECT]
    state.items[item, SQUARES] += rest * rest
    state.items[item, COUNT] += 1.0
    state.everything[TOTAL] += 1.0
    state.everything[SIGNALS] += x
    state.everything[TOTAL_SQUARES] += rest * rest


@njit(cache=True, error_model="numpy", nogil=True)
def run(
    order: Integers,
    user_rows: Integers,
    item_rows: Integers,
    group_lists: Integers,
    signals: Floats,
    formers: Floats,
    evicted_users: Integers,
    evicted_items: Integers,
    state: EffectArrays,
    item_lists: Integers,
    packed: Integers,
    out: Floats,
) -> None:
    """Run the steps of `order`: i writes event i's features to `out`, n + i learns its label.

    2 n + i replaces its label.

    Parameters
    ----------
    order : ndarray, shape (steps,), int64
        Steps.
    user_rows, item_rows, group_lists : ndarray, shape (n,), int64
        Rows of the events' users and items, and positions of the items' groups.
    signals : ndarray, shape (n,), float64
        Signals of the events' labels, see `pipeline.features.target.Target.signals`.
    formers : ndarray, shape (n,), float64
        Signals of labels that are replaced; (0,) where none is.
    evicted_users, evicted_items : ndarray, shape (steps,), int64
        Rows of the user and of the item that are evicted before a step learns, 0 for none.
    state
        The state of the model; changed.
    item_lists : ndarray, shape (items,), int64
        Position of the list of each item's groups.
    packed : ndarray, int64
        Lists of groups.
    out : ndarray, shape (n, 5), float64
        The features.
    """
    n = out.shape[0]
    for step in range(order.shape[0]):
        kind, event = order[step] // n, order[step] % n
        user, item, groups = user_rows[event], item_rows[event], group_lists[event]
        if kind == 0:
            found = features(user, item, groups, state, packed)
            for column in range(len(found)):
                out[event, column] = found[column]
        elif kind == 1:
            gone = evicted_users[step], evicted_items[step]
            learn(user, item, groups, signals[event], gone[0], gone[1], state, item_lists, packed)
        else:
            replace(user, item, groups, formers[event], signals[event], state, packed)


@njit(cache=True, error_model="numpy")
def replace(
    user: int, item: int, group_list: int, former: float, x: float, state: EffectArrays, packed: Integers
) -> None:
    """Replace the signal of a label that was learned by another.

    What the label says of its item is replaced as if its user's effect and noise were those of the newest
    solution, which is exact while it is in the user's ring. So is the user's effect. Of a label that has left
    the ring, the user's part stays as it was.

    Parameters
    ----------
    user, item
        Their rows.
    group_list
        Position of the list of the item's groups.
    former, x
        The former signal, and that in its place.
    state
        The state of the model; changed, but for rows of items in rings.
    packed : ndarray, int64
        Lists of groups.
    """
    change = x - former
    if state.users[user, LABELS] == 0.0 or state.items[item, COUNT] == 0.0:  # evicted since
        return
    labels = int(state.users[user, LABELS])
    for label in range(labels - 1, oldest_label(labels) - 1, -1):
        slot = label % RING
        of_item = row_of(state.ring[user, slot], state.generations) == item
        if of_item and state.ring_signals[user, slot] == np.float32(former):
            residual = former - item_effect(item, group_list, state, packed)
            state.ring_signals[user, slot] = x
            state.users[user, ALL_RESIDUALS] += change
            state.users[user, ALL_SQUARES] += change * (2.0 * residual + change)
            _solve(user, state.users[user, OLDER_LABELS] + (labels - oldest_label(labels)), state)
            break
    _add(item, group_list, change / state.users[user, SOLVED_NOISE], 0.0, state, packed)
    state.everything[SIGNALS] += change


@njit(cache=True, error_model="numpy", nogil=True)
def merge_shared(
    item_rows: Integers,
    group_lists: Integers,
    labels: Integers,
    sums: Floats,
    evicted: Integers,
    state: EffectArrays,
    packed: Integers,
) -> None:
    """Add sums over labels of other partitions to those of their items, groups and everything.

    Parameters
    ----------
    item_rows, group_lists : ndarray, shape (n,), int64
        Rows of the items, and positions of their groups.
    labels : ndarray, shape (n,), int64
        Numbers of labels.
    sums : ndarray, shape (n, 4), float64
        Sums of residuals, precisions, signals and squared residuals.
    evicted : ndarray, shape (n,), int64
        Row of the item that is evicted for each of them, 0 for none.
    state
        The state of the model; changed.
    packed : ndarray, int64
        Lists of groups.
    """
    for number in range(item_rows.shape[0]):
        _evict(0, evicted[number], state)
        if sums[number, 1] == 0.0:  # they are of no labels
            continue
        item = item_rows[number]
        _add(item, group_lists[number], sums[number, 0], sums[number, 1], state, packed)
        state.items[item, SQUARES] += sums[number, 3]
        state.items[item, COUNT] += labels[number]
        state.everything[TOTAL] += labels[number]
        state.everything[SIGNALS] += sums[number, 2]
        state.everything[TOTAL_SQUARES] += sums[number, 3]


@njit(cache=True, error_model="numpy", inline="always")
def _move_to_older(
    user: int, begin: int, end: int, state: EffectArrays, item_lists: Integers, packed: Integers
) -> None:
    """Add a user's labels `begin` to `end` - 1 to the sums of the older ones, which fade with each."""
    for label in range(begin, end):
        slot = label % RING
        row = row_of(state.ring[user, slot], state.generations)
        group_list = item_lists[row] if row != NO_ITEM else 0
        residual = state.ring_signals[user, slot] - item_effect(row, group_list, state, packed)
        state.users[user, OLDER_LABELS] = FADE * state.users[user, OLDER_LABELS] + 1.0
        state.users[user, OLDER_RESIDUALS] = FADE * state.users[user, OLDER_RESIDUALS] + residual
        state.users[user, OLDER_SQUARES] = FADE * state.users[user, OLDER_SQUARES] + residual * residual


@njit(cache=True, error_model="numpy", inline="always")
def _sum_residuals(
    user: int, oldest: int, state: EffectArrays, item_lists: Integers, packed: Integers
) -> None:
    """Sum the residuals of all labels of a user, given the items' effects as they are now."""
    residuals, squares = state.users[user, OLDER_RESIDUALS], state.users[user, OLDER_SQUARES]
    for label in range(oldest, int(state.users[user, LABELS])):
        slot = label % RING
        row = row_of(state.ring[user, slot], state.generations)
        group_list = item_lists[row] if row != NO_ITEM else 0
        residual = state.ring_signals[user, slot] - item_effect(row, group_list, state, packed)
        residuals += residual
        squares += residual * residual
    state.users[user, ALL_RESIDUALS], state.users[user, ALL_SQUARES] = residuals, squares


@njit(cache=True, error_model="numpy", inline="always")
def _solve(user: int, count: float, state: EffectArrays) -> None:
    """Solve a user's effect, noise and the variance of the effect, given the sums over `count` residuals.

    The effect is the posterior mean under its prior, and the noise the mean squared residual, in which the
    mean noise counts for `NOISE_WEIGHT` labels. Each is solved given the other, `NOISE_STEPS` times.
    """
    mean, mean_noise = _mean_signal(state.everything), _mean_noise(state.everything)
    residuals, squares = state.users[user, ALL_RESIDUALS], state.users[user, ALL_SQUARES]
    noise = state.users[user, NOISE]
    if noise == 0.0:  # the user's first label
        noise = mean_noise
    for _ in range(NOISE_STEPS):
        effect = (residuals / noise + mean / USER_PRIOR) / (count / noise + 1.0 / USER_PRIOR)
        rest = squares - 2.0 * effect * residuals + count * effect * effect
        noise = (NOISE_WEIGHT * mean_noise + max(rest, 0.0)) / (NOISE_WEIGHT + count)
    precision = count / noise + 1.0 / USER_PRIOR
    state.users[user, EFFECT] = (residuals / noise + mean / USER_PRIOR) / precision
    state.users[user, NOISE] = noise
    state.users[user, VARIANCE] = 1.0 / precision


@njit(cache=True, error_model="numpy", inline="always")
def _pass_on(
    user: int, oldest: int, newest: int, state: EffectArrays, item_lists: Integers, packed: Integers
) -> None:
    """Count the user's labels `oldest` to `newest` - 1 with the effect and noise as they are now."""
    own, noise = state.users[user, EFFECT], state.users[user, NOISE]
    if oldest < newest:
        noise_before = state.users[user, SOLVED_NOISE]
        precision = 1.0 / noise - 1.0 / noise_before
        shift = own / noise - state.users[user, SOLVED_EFFECT] / noise_before
        for label in range(oldest, newest):
            slot = label % RING
            row = row_of(state.ring[user, slot], state.generations)
            if row != NO_ITEM:
                change = state.ring_signals[user, slot] * precision - shift
                _add(row, item_lists[row], change, precision, state, packed)
    state.users[user, SOLVED_EFFECT], state.users[user, SOLVED_NOISE] = own, noise


@njit(cache=True, error_model="numpy", inline="always")
def _add(
    item: int, group_list: int, residual: float, precision: float, state: EffectArrays, packed: Integers
) -> None:
    """Add to the sums of an item and of its groups."""
    state.items[item, RESIDUALS] += residual
    state.items[item, PRECISION] += precision
    for position in range(group_list + 1, group_list + 1 + packed[group_list]):
        state.groups[packed[position], RESIDUALS] += residual
        state.groups[packed[position], PRECISION] += precision


@njit(cache=True, error_model="numpy", inline="always")
def _evict(user: int, item: int, state: EffectArrays) -> None:
    """Empty the rows of a user and of an item, 0 for none."""
    if user != 0:
        for column in range(state.users.shape[1]):
            state.users[user, column] = 0.0
    if item != NO_ITEM:
        state.generations[item] += 1
        for column in range(state.items.shape[1]):
            state.items[item, column] = 0.0


@njit(cache=True, error_model="numpy", inline="always")
def _mean_signal(everything: Floats) -> float:
    """Return the mean of all signals, as if there was one more, of 0."""
    mean: float = everything[SIGNALS] / (everything[TOTAL] + 1.0)
    return mean


@njit(cache=True, error_model="numpy", inline="always")
def _mean_noise(everything: Floats) -> float:
    """Return the mean squared residual, as if there was one more, of 0.5."""
    mean: float = (everything[TOTAL_SQUARES] + 0.5) / (everything[TOTAL] + 1.0)
    return mean


@njit(cache=True, error_model="numpy", inline="always")
def _rounded(value: float) -> float:
    """Return the nearest number of six decimals, whose shortest text has no more of them."""
    return float(np.rint(value * _UNIT) / _UNIT)
