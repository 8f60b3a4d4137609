"""The compiled loops over events: one event after the other, every sum in a fixed order.

A score therefore has the same bits whether its event came alone or in a batch, and whatever was
restored before it. For the same reason nothing here calls BLAS, runs in parallel or uses fastmath.

Numba's cache on disk knows a function by its own file only. Whoever changes a module that these loops
call has to touch this file too, or the old code of that module stays compiled in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from forks.arrays import FloatArray
from forks.feature_map import FeatureMap, map_point
from forks.kernels import precision
from forks.kogd import Expansion, expansion_value
from forks.losses import LOSSES, loss_curvature, loss_slope, loss_value
from forks.moments import standardize, update_moments
from forks.newton import NewtonState, clipped, dot, newton_step, project
from forks.settings import ForksSettings


class Rule(NamedTuple):
    """The settings that every event needs, in the form that compiled code takes.

    ``start`` and ``stop`` are of the columns that moments are kept of.
    """

    loss: int
    own_curvature: bool
    sigma: float
    clip: float
    gamma: float
    standardize: bool
    start: int
    stop: int
    linear_features: int
    linear_start: int
    linear_stop: int
    kernel_start: int
    kernel_stop: int

    @classmethod
    def of(cls, settings: ForksSettings) -> Rule:
        linear_start, linear_stop = settings.linear_columns
        kernel_start, kernel_stop = settings.kernel_columns
        used = (settings.kernel_columns, settings.linear_columns)[: 1 + settings.sum_kernel]
        return cls(
            loss=LOSSES[settings.loss],
            own_curvature=settings.hessian == "curvature",
            sigma=float(settings.sigma + settings.eta),
            clip=float(settings.clip),
            gamma=precision(settings.width),
            standardize=settings.standardize,
            start=min(start for start, _ in used),
            stop=max(stop for _, stop in used),
            linear_features=settings.linear_features,
            linear_start=linear_start,
            linear_stop=linear_stop,
            kernel_start=kernel_start,
            kernel_stop=kernel_stop,
        )


class Hypothesis(NamedTuple):
    """What events are scored by.

    Parameters
    ----------
    mean, squares : (dimension,), running moments of the columns
    newton : on the features, linear part first
    feature_map : of the kernel part; without landmarks (stage 1) its features are zero
    expansion : stage 1's function; without points (stage 2) it is zero
    """

    mean: FloatArray
    squares: FloatArray
    newton: NewtonState
    feature_map: FeatureMap
    expansion: Expansion


class Room(NamedTuple):
    """Room for what is worked out for one event.

    Parameters
    ----------
    point : (kernel columns,), the kernel part's columns, standardised where the rule says so
    row : (s_m,), the kernel row against the landmarks
    z : (features,), linear part first
    u : (features,)
    """

    point: FloatArray
    row: FloatArray
    z: FloatArray
    u: FloatArray


@njit(cache=True)
def scores(X: FloatArray, rule: Rule, count: int, hypothesis: Hypothesis) -> FloatArray:
    """Return the score of each row of ``X`` (n, dimension) after ``count`` learned events."""
    out = np.empty(X.shape[0])
    room = _room(rule, hypothesis)
    for i in range(X.shape[0]):
        _describe(X[i], rule, count, hypothesis, room)
        score = dot(hypothesis.newton.weights, room.z)
        score += expansion_value(room.point, hypothesis.expansion, rule.gamma)
        out[i] = clipped(score, rule.clip)
    return out


@njit(cache=True)
def learn(X: FloatArray, y: FloatArray, rule: Rule, count: int, hypothesis: Hypothesis) -> FloatArray:
    """Learn the rows of ``X`` (n, dimension) and ``y`` (n,) in turn; return their scores before.

    Changes moments and Newton's state in place; the feature map and the expansion count as given.
    """
    out = np.empty(X.shape[0])
    room = _room(rule, hypothesis)
    newton = hypothesis.newton
    for i in range(X.shape[0]):
        _describe(X[i], rule, count + i, hypothesis, room)
        if hypothesis.expansion.points.shape[0] == 0:
            score = project(newton, room.z, rule.clip, room.u)
        else:
            score = dot(newton.weights, room.z) + expansion_value(
                room.point, hypothesis.expansion, rule.gamma
            )
            score = clipped(score, rule.clip)
        slope = loss_slope(rule.loss, score, y[i])
        curvature = rule.sigma * slope * slope
        if rule.own_curvature:
            curvature = loss_curvature(rule.loss, score, y[i])
        newton_step(newton, room.z, slope, curvature, room.u)
        if rule.standardize:
            a, b = rule.start, rule.stop
            update_moments(X[i, a:b], count + i + 1, hypothesis.mean[a:b], hypothesis.squares[a:b])
        out[i] = score
    return out


@njit(cache=True)
def loss_values(scores: FloatArray, y: FloatArray, rule: Rule) -> FloatArray:
    """Return the loss of each score, (n,)."""
    out = np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        out[i] = loss_value(rule.loss, scores[i], y[i])
    return out


@njit(cache=True)
def kernel_point(x: FloatArray, rule: Rule, count: int, hypothesis: Hypothesis) -> FloatArray:
    """Return the kernel part's columns of ``x``, standardised where the rule says so, as they are stored."""
    room = _room(rule, hypothesis)
    _describe(x, rule, count, hypothesis, room)
    return room.point


@njit(cache=True)
def _room(rule: Rule, hypothesis: Hypothesis) -> Room:
    features = hypothesis.newton.weights.shape[0]
    return Room(
        np.empty(rule.kernel_stop - rule.kernel_start),
        np.empty(hypothesis.feature_map.Z.shape[0]),
        np.empty(features),
        np.empty(features),
    )


@njit(cache=True)
def _describe(x: FloatArray, rule: Rule, count: int, hypothesis: Hypothesis, room: Room) -> None:
    """Write the kernel columns and the features of ``x`` to ``room``."""
    a, b = rule.kernel_start, rule.kernel_stop
    if rule.standardize:
        standardize(x[a:b], count, hypothesis.mean[a:b], hypothesis.squares[a:b], room.point)
    else:
        room.point[:] = x[a:b]
    map_point(room.point, hypothesis.feature_map, rule.gamma, room.row, room.z[rule.linear_features :])
    if rule.linear_features == 0:
        return
    room.z[0] = 1.0
    linear = room.z[1 : rule.linear_features]
    a, b = rule.linear_start, rule.linear_stop
    if rule.standardize:
        standardize(x[a:b], count, hypothesis.mean[a:b], hypothesis.squares[a:b], linear)
    else:
        linear[:] = x[a:b]
