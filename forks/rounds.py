"""The compiled loops over events: one event after the other, every sum in a fixed order.

A score therefore has the same bits whether its event came alone or in a batch, and whatever was
restored before it. For the same reason nothing here calls BLAS, runs in parallel or uses fastmath.

What is called from Python takes plain arrays and numbers only: Numba needs microseconds to find out the
type of a tuple with names, more than all the rest of an event. The names come back inside.

Helpers with such tuples as parameters are inlined by Numba: a call counts a reference to every array in
them up and down, atomically, which took a third of an event.

Numba's cache on disk knows a function by its own file only. Whoever changes a module that these loops
call has to touch this file too, or the old code of that module stays compiled in.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit

from forks.arrays import FloatArray, IntArray
from forks.feature_map import FeatureMap, map_row
from forks.kernels import gaussian_row
from forks.kogd import Expansion, expansion_value
from forks.losses import loss_curvature, loss_slope, loss_value
from forks.moments import standardize, update_moments
from forks.newton import NewtonState, clipped, dot, newton_step, project
from forks.rule import Rule
from forks.settings import ForksSettings

HypothesisArrays: TypeAlias = tuple[
    FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray
]


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

    def arrays(self) -> HypothesisArrays:
        """Return all arrays in order, as the loops take them."""
        return (self.mean, self.squares, *self.newton, *self.feature_map, *self.expansion)


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


class Events(NamedTuple):
    """Rows for the loops, whole or without what the factors of their entities stand for.

    Parameters
    ----------
    X : (n, columns) float64
    first : number of X's first column: 0 for whole rows, else the first that is in no entity block
    factors : (slots, s_m) float64, kernels of entities' blocks against the landmarks' blocks
    slots : (n, entity blocks) int64, each row's factors
    """

    X: FloatArray
    first: int
    factors: FloatArray
    slots: IntArray


def room_for(settings: ForksSettings) -> FloatArray:
    """Return the memory that the loops work in, for any number of landmarks up to the settings'."""
    start, stop = settings.kernel_columns
    return np.empty(stop - start + settings.landmarks + 2 * settings.features)


@njit(cache=True)
def scores(
    X: FloatArray,
    first: int,
    factors: FloatArray,
    slots: IntArray,
    rule: Rule,
    count: int,
    mean: FloatArray,
    squares: FloatArray,
    weights: FloatArray,
    inverse_hessian: FloatArray,
    landmarks: FloatArray,
    Z: FloatArray,
    points: FloatArray,
    coefficients: FloatArray,
    memory: FloatArray,
    out: FloatArray,
) -> None:
    """Write each event's score, by a `Hypothesis` that learned ``count`` events, to ``out`` (n,)."""
    hypothesis = Hypothesis(
        mean,
        squares,
        NewtonState(weights, inverse_hessian),
        FeatureMap(landmarks, Z),
        Expansion(points, coefficients),
    )
    events = Events(X, first, factors, slots)
    room = _room(rule[0], hypothesis, memory)
    for i in range(X.shape[0]):
        _describe(events, i, rule[0], count, hypothesis, room)
        score = dot(weights, room.z) + expansion_value(room.point, hypothesis.expansion, rule[0].gamma)
        out[i] = clipped(score, rule[0].clip)


@njit(cache=True)
def learn(
    X: FloatArray,
    first: int,
    factors: FloatArray,
    slots: IntArray,
    y: FloatArray,
    rule: Rule,
    count: int,
    mean: FloatArray,
    squares: FloatArray,
    weights: FloatArray,
    inverse_hessian: FloatArray,
    landmarks: FloatArray,
    Z: FloatArray,
    points: FloatArray,
    coefficients: FloatArray,
    memory: FloatArray,
    out: FloatArray,
) -> None:
    """Learn `Events` and their labels ``y`` (n,) in turn; write their scores before to ``out`` (n,).

    Changes moments and Newton's state in place; the feature map and the expansion count as given.
    """
    newton = NewtonState(weights, inverse_hessian)
    hypothesis = Hypothesis(mean, squares, newton, FeatureMap(landmarks, Z), Expansion(points, coefficients))
    events = Events(X, first, factors, slots)
    room = _room(rule[0], hypothesis, memory)
    a, b = rule[0].moments_start, rule[0].moments_stop
    for i in range(X.shape[0]):
        _describe(events, i, rule[0], count + i, hypothesis, room)
        if points.shape[0] == 0:
            score = project(newton, room.z, rule[0].clip, room.u)
        else:
            score = dot(weights, room.z) + expansion_value(room.point, hypothesis.expansion, rule[0].gamma)
            score = clipped(score, rule[0].clip)
        slope = loss_slope(rule[0].loss, score, y[i])
        curvature = rule[0].sigma * slope * slope
        if rule[0].own_curvature:
            curvature = loss_curvature(rule[0].loss, score, y[i])
        newton_step(newton, room.z, slope, curvature, room.u)
        if rule[0].standardize:
            update_moments(X[i, a - first : b - first], count + i + 1, mean[a:b], squares[a:b])
        out[i] = score


@njit(cache=True)
def loss_values(scores: FloatArray, y: FloatArray, loss: int) -> FloatArray:
    """Return the loss of each score, (n,); ``loss`` is a number of `LOSSES`."""
    out = np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        out[i] = loss_value(loss, scores[i], y[i])
    return out


@njit(cache=True)
def kernel_point(x: FloatArray, rule: Rule, count: int, mean: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the kernel part's columns of ``x``, standardised where the rule says so, as they are stored."""
    point = np.empty(rule[0].kernel_stop - rule[0].kernel_start)
    _fill_point(x, 0, rule[0], count, mean, squares, point)
    return point


@njit(cache=True, inline="always")
def _room(rule: Any, hypothesis: Hypothesis, memory: FloatArray) -> Room:
    columns = rule.kernel_stop - rule.kernel_start
    z = columns + hypothesis.feature_map.Z.shape[0]
    u = z + hypothesis.newton.weights.shape[0]
    end = u + hypothesis.newton.weights.shape[0]
    return Room(memory[:columns], memory[columns:z], memory[z:u], memory[u:end])


@njit(cache=True, inline="always")
def _describe(events: Events, i: int, rule: Any, count: int, hypothesis: Hypothesis, room: Room) -> None:
    """Write the kernel columns and the features of row ``i`` to ``room``."""
    x, mean, squares = events.X[i], hypothesis.mean, hypothesis.squares
    _fill_point(x, events.first, rule, count, mean, squares, room.point)
    varying = rule.entity_stop - rule.kernel_start
    landmarks = hypothesis.feature_map.landmarks[varying:]
    gaussian_row(room.point[varying:], landmarks, rule.gamma, room.row)
    for b in range(events.slots.shape[1]):
        factor = events.factors[events.slots[i, b]]
        for m in range(room.row.shape[0]):
            room.row[m] *= factor[m]
    map_row(room.row, hypothesis.feature_map.Z, room.z[rule.linear_features :])
    if rule.linear_features > 0:
        room.z[0] = 1.0
        _fill(
            x,
            events.first,
            (rule.linear_start, rule.linear_stop),
            rule.standardize,
            count,
            mean,
            squares,
            room.z[1 : rule.linear_features],
        )


@njit(cache=True, inline="always")
def _fill_point(
    x: FloatArray,
    first: int,
    rule: Any,
    count: int,
    mean: FloatArray,
    squares: FloatArray,
    point: FloatArray,
) -> None:
    """Write the kernel's columns to ``point``; those of entity blocks as they are, where ``x`` has them."""
    varying = rule.entity_stop - rule.kernel_start
    if first == 0:
        point[:varying] = x[rule.kernel_start : rule.entity_stop]
    columns = (rule.entity_stop, rule.kernel_stop)
    _fill(x, first, columns, rule.standardize, count, mean, squares, point[varying:])


@njit(cache=True, inline="always")
def _fill(
    x: FloatArray,
    first: int,
    columns: tuple[int, int],
    standardized: bool,
    count: int,
    mean: FloatArray,
    squares: FloatArray,
    out: FloatArray,
) -> None:
    """Write these columns of ``x``, standardised or as they are, to ``out``."""
    start, stop = columns
    values = x[start - first : stop - first]
    if standardized:
        standardize(values, count, mean[start:stop], squares[start:stop], out)
    else:
        out[:] = values
