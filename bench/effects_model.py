"""The model of the adjusted effects with constants and a law of the noise that can be changed.

The same model as `pipeline.features.effects`, which has its constants compiled in. Labels come at once, and
nothing is evicted.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
# mypy: disable-error-code="untyped-decorator"
# (numba.njit has no types)
from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from forks.arrays import FloatArray, IntArray
from pipeline.features import effects
from pipeline.features.binary import TARGET

OF_USER, OF_ALL, OF_PAIR, HEAVY = range(4)
"""Laws of the noise: a variance for each user; one for all; that of the user times that of the item over the
mean; or a Student distribution with `TAIL` degrees of freedom around each user's."""
TAIL: Final = 4.0
EVERYTHING: Final = 1e12
"""A weight of the mean noise beside which a user's labels count for nothing."""
_B, _S, _VARIANCE, _LABELS, _SOLVED_B, _SOLVED_S, _OLD, _OLD_R, _OLD_SQ, _W, _R, _SQUARES = range(12)
_N, _D, _SQ, _COUNT = range(4)


class Constants(NamedTuple):
    """Constants of the model; by default those in use.

    Attributes
    ----------
    slope
        Slope of the signal at the threshold of the watch ratio; inf for signals of -1 and 1.
    user_prior, item_prior, group_prior
        Prior variances of the effects.
    noise_weight
        Labels for which the mean noise counts.
    fade
        What is kept of a user's older labels with each label that joins them.
    logit_scale
        Log-odds for each standard deviation of the expected signal.
    ring
        Labels of a user that are kept one by one, at most.
    interval, first
        One in so many labels of a user solves over the ring, and so do the first ones.
    noise
        `OF_USER`, `OF_ALL`, `OF_PAIR` or `HEAVY`.
    """

    slope: float = TARGET.slope
    user_prior: float = effects.USER_PRIOR
    item_prior: float = effects.ITEM_PRIOR
    group_prior: float = effects.GROUP_PRIOR
    noise_weight: float = effects.NOISE_WEIGHT
    fade: float = effects.FADE
    logit_scale: float = effects.LOGIT_SCALE
    ring: int = effects.RING
    interval: int = effects.SOLVE_INTERVAL
    first: int = effects.FIRST_LABELS
    noise: int = OF_USER


def signals(watch_ratios: FloatArray, threshold: float, slope: float) -> FloatArray:
    """Return the signals of watch ratios, shape (n,).

    Examples
    --------
    >>> signals(np.array([0.0, 0.75, 300.0]), 0.75, 2.5).round(2).tolist()
    [-0.88, 0.0, 1.0]
    >>> signals(np.array([0.7, 0.8]), 0.75, math.inf).tolist()
    [-1.0, 1.0]
    """
    if math.isinf(slope):
        return np.where(watch_ratios > threshold, 1.0, -1.0)
    y = slope * (watch_ratios - threshold)
    bounded: FloatArray = y / np.sqrt(1.0 + y * y)
    return bounded


def features(
    users: IntArray, items: IntArray, lists: IntArray, packed: IntArray, x: FloatArray, constants: Constants
) -> FloatArray:
    """Return the five features of `pipeline.features.effects`, in its order, and what is left, shape (n, 6).

    Parameters
    ----------
    users, items : ndarray, shape (n,), int64
        Numbers of the events' users and items.
    lists : ndarray, shape (n,), int64
        Positions of the lists of the items' groups in `packed`.
    packed : ndarray, int64
        See `pipeline.features.tags.TagLists`.
    x : ndarray, shape (n,), float64
        Signals of the events' labels.
    constants
        Constants of the model.

    Returns
    -------
    ndarray, shape (n, 6), float64
        The last column is the variance of the signal that is expected: noise, and what is not known of the
        effects.
    """
    weight = EVERYTHING if constants.noise == OF_ALL else constants.noise_weight
    own = constants._replace(noise_weight=weight)
    # numba compiles for the types: they are to be the same whatever is given.
    numbers = np.array(own[1:7], dtype=np.float64)
    groups = int(packed.max()) + 1 if len(packed) else 1
    found: FloatArray = _run(
        users, items, lists, packed, x, numbers, own.ring, own.interval, own.first, own.noise, groups
    )
    return found


@njit(cache=True, error_model="numpy", inline="always")
def _group(group_list, groups, packed, prior):  # type: ignore[no-untyped-def]
    count = packed[group_list]
    total = 0.0
    for position in range(group_list + 1, group_list + 1 + count):
        total += groups[packed[position], 0] / (groups[packed[position], 1] + 1.0 / prior)
    return total / count if count > 1 else total


@njit(cache=True, error_model="numpy", inline="always")
def _oldest(labels, ring, interval):  # type: ignore[no-untyped-def]
    """Return which of a user's labels, counted from 0, is the oldest in the ring after so many."""
    return max(0, (labels - 1) // interval * interval + interval - ring)


@njit(cache=True, error_model="numpy")
def _run(users, items, lists, packed, x, numbers, ring, interval, first, law, group_count):  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0915
    user_prior, item_prior, group_prior, weight, fade, scale = numbers
    n = len(x)
    user_count, item_count = users.max() + 1, items.max() + 1
    U, V = np.zeros((user_count, 12)), np.zeros((item_count, 4))
    G = np.zeros((group_count, 2))
    of_item = np.zeros(item_count, dtype=np.int64)
    ring_items = np.zeros((user_count, ring), dtype=np.int64)
    ring_x = np.zeros((user_count, ring))
    passed = np.zeros((user_count, ring, 2))  # what each label has added: precision times effect, precision
    w, q = np.ones(ring), np.zeros(ring)
    total, total_x, total_sq = 0.0, 0.0, 0.0
    out = np.empty((n, 6))
    for event in range(n):
        u, v, group_list = users[event], items[event], lists[event]
        of_item[v] = group_list
        mean, mean_noise = total_x / (total + 1.0), (total_sq + 0.5) / (total + 1.0)
        b, s, variance = mean, mean_noise, user_prior
        if U[u, _LABELS] > 0:
            b, s, variance = U[u, _B], U[u, _S], U[u, _VARIANCE]
        item_noise = (weight * mean_noise + V[v, _SQ]) / (weight + V[v, _COUNT])
        share = item_noise / mean_noise if law == 2 else 1.0
        precision = V[v, _D] / share + 1.0 / item_prior
        own_q = (V[v, _N] / share + _group(group_list, G, packed, group_prior) / item_prior) / precision
        count = packed[group_list]
        of_groups = 0.0
        for position in range(group_list + 1, group_list + 1 + count):
            of_groups += 1.0 / (G[packed[position], 1] + 1.0 / group_prior)
        of_groups = of_groups / (count * count) if count > 0 else group_prior
        prior_share = (1.0 / item_prior) / precision
        spread = s * share + variance + 1.0 / precision + prior_share * prior_share * of_groups
        out[event] = (
            b,
            math.sqrt(s),
            own_q,
            math.sqrt(item_noise),
            scale * (b + own_q) / math.sqrt(spread),
            spread,
        )
        # The label. Labels of the user are counted from 0; label i is at i % ring.
        seen = int(U[u, _LABELS])
        solves = seen < first or seen % interval == 0
        oldest = _oldest(seen, ring, interval)
        kept = _oldest(seen + 1, ring, interval) if solves else oldest
        for label in range(oldest if solves else seen, seen):
            slot = label % ring
            i = ring_items[u, slot]
            noise_of_i = (weight * mean_noise + V[i, _SQ]) / (weight + V[i, _COUNT])
            of_i = noise_of_i / mean_noise if law == 2 else 1.0
            q[slot] = (V[i, _N] / of_i + _group(of_item[i], G, packed, group_prior) / item_prior) / (
                V[i, _D] / of_i + 1.0 / item_prior
            )
            w[slot] = 1.0 / of_i
        for label in range(oldest, kept):
            slot = label % ring
            rest = ring_x[u, slot] - q[slot]
            left = (TAIL + 1.0) / (TAIL + (rest - b) ** 2 / s) if law == 3 else w[slot]
            U[u, _OLD] = fade * U[u, _OLD] + left
            U[u, _OLD_R] = fade * U[u, _OLD_R] + left * rest
            U[u, _OLD_SQ] = fade * U[u, _OLD_SQ] + left * rest * rest
        oldest, newest = kept, seen % ring
        ring_items[u, newest], ring_x[u, newest] = v, x[event]
        q[newest], w[newest] = own_q, 1.0 / share
        passed[u, newest, 0] = passed[u, newest, 1] = 0.0
        U[u, _LABELS] = seen + 1.0
        s = s if seen > 0 else mean_noise
        residual = x[event] - own_q
        if not solves:
            if law == 3:
                w[newest] = (TAIL + 1.0) / (TAIL + (residual - b) ** 2 / s)
            U[u, _W] += w[newest]
            U[u, _R] += w[newest] * residual
            U[u, _SQUARES] += w[newest] * residual * residual
        for step in range(3):
            if solves and (step == 0 or law == 3):
                U[u, _W], U[u, _R], U[u, _SQUARES] = U[u, _OLD], U[u, _OLD_R], U[u, _OLD_SQ]
                for label in range(oldest, seen + 1):
                    slot = label % ring
                    rest = ring_x[u, slot] - q[slot]
                    if law == 3:
                        w[slot] = (TAIL + 1.0) / (TAIL + (rest - b) ** 2 / s)
                    U[u, _W] += w[slot]
                    U[u, _R] += w[slot] * rest
                    U[u, _SQUARES] += w[slot] * rest * rest
            precision = U[u, _W] / s + 1.0 / user_prior
            b, variance = (U[u, _R] / s + mean / user_prior) / precision, 1.0 / precision
            if step < 2:
                squares = max(U[u, _SQUARES] - 2.0 * b * U[u, _R] + U[u, _W] * b * b, 0.0)
                labels = U[u, _W] if law == 3 else U[u, _OLD] + (seen + 1 - oldest)
                s = (weight * mean_noise + squares) / (weight + labels)
        U[u, _B], U[u, _S], U[u, _VARIANCE] = b, s, variance
        if solves:
            U[u, _SOLVED_B], U[u, _SOLVED_S] = b, s
        # Sums of items change by what their labels add with the newest solution.
        for label in range(oldest if solves else seen, seen + 1):
            slot = label % ring
            i = ring_items[u, slot]
            own_precision = (1.0 if law == 2 else w[slot]) / U[u, _SOLVED_S]
            own_residual = own_precision * (ring_x[u, slot] - U[u, _SOLVED_B])
            change, more = own_residual - passed[u, slot, 0], own_precision - passed[u, slot, 1]
            passed[u, slot, 0], passed[u, slot, 1] = own_residual, own_precision
            V[i, _N] += change
            V[i, _D] += more
            for position in range(of_item[i] + 1, of_item[i] + 1 + packed[of_item[i]]):
                G[packed[position], 0] += change
                G[packed[position], 1] += more
        rest = residual - b
        V[v, _SQ] += rest * rest
        V[v, _COUNT] += 1.0
        total += 1.0
        total_x += x[event]
        total_sq += rest * rest
    return out
