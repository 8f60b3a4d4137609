"""Adjusted effects of users and items on the labels, compiled.

A running mean of a user's labels mixes what the user is like with what items came before them. Here both are
parts of one model: with a user u, an item v and its groups (tags, a category), a signal x of a label is

    x = b_u + q_v + noise of variance s_u,   b_u ~ N(m, USER_PRIOR),   q_v ~ N(t_v, ITEM_PRIOR),

where m is the mean of all signals and t_v the mean of the effects of v's groups, each N(0, GROUP_PRIOR). Its
solution is kept near the optimum in one pass:

- An item and a group have two sums over their labels: of (x - b_u) / s_u and of 1 / s_u, the precision.
- A user has a ring of the newest labels, and three sums over the older ones. Each label of the user solves
  b_u and s_u again over the ring, with the items' effects as they are now. What changes is passed on to the
  sums of the ring's items and groups, so that these stay exact for the current b_u and s_u.

All operations are sums, products, quotients and roots, which IEEE 754 rounds exactly, in a fixed order. So
the bits are the same on every machine.

Numba's cache on disk sees changes of a function's own file alone, so nothing here depends on another file.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
# mypy: disable-error-code="untyped-decorator"
# (numba.njit has no types)
from __future__ import annotations

import math
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

USER_PRIOR: Final = 0.05
"""Prior variance of a user's effect. These three were chosen on KuaiRec, for signals between -1 and 1."""
ITEM_PRIOR: Final = 0.15
"""Prior variance of an item's effect around that of its groups."""
GROUP_PRIOR: Final = 0.05
"""Prior variance of a group's effect."""
NOISE_WEIGHT: Final = 5.0
"""Labels for which the mean noise counts in the noise of a user or an item."""
RING: Final = 16
"""Labels of a user that are kept one by one."""
NOISE_STEPS: Final = 2
"""Turns of solving for effect and noise, each given the other."""

EFFECT, NOISE, LABELS, OLDER_LABELS, OLDER_RESIDUALS, OLDER_SQUARES = range(6)
"""The columns of users: effect b and noise s as of the newest label, number of labels, and the sums of those
that have left the ring: their number, residuals x - q, and squares of these."""
RESIDUALS, PRECISION, SQUARES, COUNT = range(4)
"""The columns of items: sums of (x - b) / s, of 1 / s, of squared residuals, and the number of labels. Groups
have the first two."""
TOTAL, SIGNALS, ALL_SQUARES = range(3)
"""The columns of everything: number of labels, sum of signals, sum of squared residuals."""

EFFECT_FEATURES: Final = ("margin", "user_noise", "item_noise", "user_effect", "item_effect")
"""Names of the features: the expected signal over its standard deviation, the standard deviations of the
user's and of the item's noise, the user's effect less the mean signal, and the item's effect."""
_UNIT: Final = 1e6


class Effects(NamedTuple):
    """The state of the model.

    Attributes
    ----------
    users : ndarray, shape (users, 6), float64
        See `EFFECT`.
    ring_items, ring_groups : ndarray, shape (users, `RING`), int64
        Items of the user's newest labels, and the positions of their groups' lists.
    ring_signals : ndarray, shape (users, `RING`), float64
        Signals of these labels.
    items : ndarray, shape (items, 4), float64
        See `RESIDUALS`.
    groups : ndarray, shape (groups, 2), float64
        See `RESIDUALS`.
    everything : ndarray, shape (3,), float64
        See `TOTAL`.
    """

    users: Floats
    ring_items: Integers
    ring_groups: Integers
    ring_signals: Floats
    items: Floats
    groups: Floats
    everything: Floats

    @classmethod
    def zeros(cls, users: int, items: int, groups: int) -> Self:
        """Return the state before the first label.

        Parameters
        ----------
        users, items, groups
            Numbers of rows.
        """
        return cls(
            np.zeros((users, 6)),
            np.zeros((users, RING), dtype=np.int64),
            np.zeros((users, RING), dtype=np.int64),
            np.zeros((users, RING)),
            np.zeros((items, 4)),
            np.zeros((groups, 2)),
            np.zeros(3),
        )


def signal(watch_ratios: Floats, threshold: float, slope: float = 2.5) -> Floats:
    """Return bounded signals, 0 at the threshold: y / sqrt(1 + y^2) for y = slope (ratio - threshold).

    Parameters
    ----------
    watch_ratios : ndarray, shape (n,), float64
        Watch ratios.
    threshold
        A watch ratio above this is a positive label.
    slope
        Slope of the signal at the threshold. The default was chosen on KuaiRec.

    Returns
    -------
    ndarray, shape (n,), float64
        Signals, in [-1, 1].

    Examples
    --------
    >>> signal(np.array([0.0, 0.75, 300.0]), 0.75).round(2).tolist()
    [-0.88, 0.0, 1.0]
    """
    y = slope * (watch_ratios - threshold)
    found: Floats = y / np.sqrt(1.0 + y * y)
    return found


@njit(cache=True)
def item_effect(item: int, group_list: int, effects: Effects, packed: Integers) -> tuple[float, float]:
    """Return the posterior mean and variance of an item's effect, given those of the users.

    Parameters
    ----------
    item
        Row of the item.
    group_list
        Position of the list of its groups in `packed`.
    effects
        State of the model.
    packed : ndarray, int64
        Lists of groups, see `pipeline.features.tags.TagLists`.
    """
    count = packed[group_list]
    mean, variance = 0.0, GROUP_PRIOR
    if count > 0:
        variance = 0.0
        for position in range(group_list + 1, group_list + 1 + count):
            group = packed[position]
            precision = effects.groups[group, PRECISION] + 1.0 / GROUP_PRIOR
            mean += effects.groups[group, RESIDUALS] / precision
            variance += 1.0 / precision
        mean /= count
        variance /= count * count
    precision = effects.items[item, PRECISION] + 1.0 / ITEM_PRIOR
    prior_share = (1.0 / ITEM_PRIOR) / precision
    effect = effects.items[item, RESIDUALS] / precision + prior_share * mean
    return effect, 1.0 / precision + prior_share * prior_share * variance


@njit(cache=True)
def user_effect(user: int, effects: Effects, packed: Integers) -> tuple[float, float, float]:
    """Return a user's effect, noise and the variance of the effect, given the items' effects as they are.

    The effect is the posterior mean under its prior, and the noise the mean squared residual, in which the
    mean noise counts for `NOISE_WEIGHT` labels. Each is solved given the other, `NOISE_STEPS` times.

    Parameters
    ----------
    user
        Row of the user.
    effects
        State of the model.
    packed : ndarray, int64
        Lists of groups.
    """
    users, mean, mean_noise = effects.users, mean_signal(effects), noise_of_all(effects)
    count = users[user, OLDER_LABELS]
    residuals, squares = users[user, OLDER_RESIDUALS], users[user, OLDER_SQUARES]
    for slot in range(min(int(users[user, LABELS]), RING)):
        effect, _ = item_effect(
            effects.ring_items[user, slot], effects.ring_groups[user, slot], effects, packed
        )
        residual = effects.ring_signals[user, slot] - effect
        count += 1.0
        residuals += residual
        squares += residual * residual
    noise = users[user, NOISE]
    if noise == 0.0:  # the user's first label
        noise = mean_noise
    for _ in range(NOISE_STEPS):
        effect = (residuals / noise + mean / USER_PRIOR) / (count / noise + 1.0 / USER_PRIOR)
        rest = squares - 2.0 * effect * residuals + count * effect * effect
        noise = (NOISE_WEIGHT * mean_noise + max(rest, 0.0)) / (NOISE_WEIGHT + count)
    precision = count / noise + 1.0 / USER_PRIOR
    return (residuals / noise + mean / USER_PRIOR) / precision, noise, 1.0 / precision


@njit(cache=True)
def mean_signal(effects: Effects) -> float:
    """Return the mean of all signals, as if there was one more, of 0."""
    return float(effects.everything[SIGNALS] / (effects.everything[TOTAL] + 1.0))


@njit(cache=True)
def noise_of_all(effects: Effects) -> float:
    """Return the mean squared residual, as if there was one more, of 0.5."""
    return float((effects.everything[ALL_SQUARES] + 0.5) / (effects.everything[TOTAL] + 1.0))


@njit(cache=True)
def features(
    user: int, item: int, group_list: int, effects: Effects, packed: Integers
) -> tuple[float, float, float, float, float]:
    """Return the features of a user and an item in the order of `EFFECT_FEATURES`, with six decimals."""
    mean, noise_mean = mean_signal(effects), noise_of_all(effects)
    own, noise, variance = mean, noise_mean, USER_PRIOR
    if effects.users[user, LABELS] > 0.0:
        own, noise, variance = user_effect(user, effects, packed)
    effect, item_variance = item_effect(item, group_list, effects, packed)
    squares, count = effects.items[item, SQUARES], effects.items[item, COUNT]
    item_noise = (NOISE_WEIGHT * noise_mean + squares) / (NOISE_WEIGHT + count)
    return (
        _rounded((own + effect) / math.sqrt(noise + variance + item_variance)),
        _rounded(math.sqrt(noise)),
        _rounded(math.sqrt(item_noise)),
        _rounded(own - mean),
        _rounded(effect),
    )


@njit(cache=True)
def learn(user: int, item: int, group_list: int, x: float, effects: Effects, packed: Integers) -> None:
    """Learn the signal of a label.

    Parameters
    ----------
    user, item
        Their rows.
    group_list
        Position of the list of the item's groups.
    x
        The signal, in [-1, 1].
    effects
        State of the model; changed.
    packed : ndarray, int64
        Lists of groups.
    """
    users = effects.users
    seen = int(users[user, LABELS])
    newest = seen % RING
    if seen >= RING:
        oldest, groups = effects.ring_items[user, newest], effects.ring_groups[user, newest]
        effect, _ = item_effect(oldest, groups, effects, packed)
        residual = effects.ring_signals[user, newest] - effect
        users[user, OLDER_LABELS] += 1.0
        users[user, OLDER_RESIDUALS] += residual
        users[user, OLDER_SQUARES] += residual * residual
    effects.ring_items[user, newest] = item
    effects.ring_groups[user, newest] = group_list
    effects.ring_signals[user, newest] = x
    users[user, LABELS] = seen + 1.0
    before, noise_before = users[user, EFFECT], users[user, NOISE]
    own, noise, _ = user_effect(user, effects, packed)
    users[user, EFFECT], users[user, NOISE] = own, noise
    for slot in range(min(seen + 1, RING)):
        if slot == newest:
            precision, residual = 1.0 / noise, (x - own) / noise
        else:
            precision = 1.0 / noise - 1.0 / noise_before
            residual = effects.ring_signals[user, slot] * precision - (own / noise - before / noise_before)
        _add(
            effects.ring_items[user, slot],
            effects.ring_groups[user, slot],
            residual,
            precision,
            effects,
            packed,
        )
    effect, _ = item_effect(item, group_list, effects, packed)
    rest = x - own - effect
    effects.items[item, SQUARES] += rest * rest
    effects.items[item, COUNT] += 1.0
    effects.everything[TOTAL] += 1.0
    effects.everything[SIGNALS] += x
    effects.everything[ALL_SQUARES] += rest * rest


@njit(cache=True, nogil=True)
def run(
    order: Integers,
    users: Integers,
    items: Integers,
    group_lists: Integers,
    signals: Floats,
    effects: Effects,
    packed: Integers,
    out: Floats,
) -> None:
    """Run the steps of `order`: i writes event i's features to `out`, n + i learns its signal.

    Parameters
    ----------
    order : ndarray, shape (steps,), int64
        Steps.
    users, items, group_lists : ndarray, shape (n,), int64
        Rows of the events' users and items, and positions of the items' groups.
    signals : ndarray, shape (n,), float64
        Signals of the events' labels.
    effects
        State of the model; changed.
    packed : ndarray, int64
        Lists of groups.
    out : ndarray, shape (n, 5), float64
        The features.
    """
    n = out.shape[0]
    for step in range(order.shape[0]):
        event = order[step]
        if event < n:
            found = features(users[event], items[event], group_lists[event], effects, packed)
            for column in range(len(found)):
                out[event, column] = found[column]
        else:
            event -= n
            learn(users[event], items[event], group_lists[event], signals[event], effects, packed)


@njit(cache=True)
def _add(
    item: int, group_list: int, residual: float, precision: float, effects: Effects, packed: Integers
) -> None:
    """Add to the sums of an item and of its groups."""
    effects.items[item, RESIDUALS] += residual
    effects.items[item, PRECISION] += precision
    for position in range(group_list + 1, group_list + 1 + packed[group_list]):
        effects.groups[packed[position], RESIDUALS] += residual
        effects.groups[packed[position], PRECISION] += precision


@njit(cache=True)
def _rounded(value: float) -> float:
    """Return the nearest number of six decimals, whose shortest text has no more of them."""
    return float(np.rint(value * _UNIT) / _UNIT)
