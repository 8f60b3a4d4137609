"""The compiled loops over events: every sum in a fixed order.

A score therefore has the same bits whether its event came alone or in a batch, and whatever was
restored before it. For the same reason nothing here calls BLAS, runs in parallel or uses fastmath.

What is called from Python takes plain arrays and numbers only: Numba needs microseconds to find out the
type of a tuple with names, more than all the rest of an event. The names come back inside.

`walk` lets other Python threads run meanwhile. All that it writes to belongs to one learner, which is for
one thread at a time.

Helpers with such tuples as parameters are inlined by Numba: a call counts a reference to every array in
them up and down, atomically, which took a third of an event.

Numba's cache on disk knows a function by its own file only. Whoever changes a compiled function has to
change the files of those that call it too, or its old code stays compiled in.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numba import njit

from forks.algorithm.feature_map import FeatureMap
from forks.algorithm.kogd import Expansion, expansion_value
from forks.algorithm.moments import standardize
from forks.algorithm.newton import NewtonState, clipped, step_along
from forks.arrays import FloatArray, IntArray
from forks.compiled.alignment import line_memory, on_lines, whole_lines
from forks.compiled.products import combine, dot, lower, lower_and_combine
from forks.learning.params import Rule
from forks.learning.tile import LENGTH, Events, describe, event_of, fill_features, strip_in, strip_size
from forks.losses import loss_curvature, loss_slope, loss_value
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

    def laid_out(self) -> tuple[Self, HypothesisArrays]:
        """Return the same hypothesis, and its arrays in order, as the loops take them: in whole lines.

        What is learned into the arrays, the hypothesis knows.
        """
        features = len(self.newton.weights)
        weights = on_lines(self.newton.weights[None])[0]
        inverse_hessian = on_lines(self.newton.inverse_hessian)
        landmarks, Z = (on_lines(matrix) for matrix in self.feature_map)
        newton = NewtonState(weights[:features], inverse_hessian[:, :features])
        arrays = (self.mean, self.squares, weights, inverse_hessian, landmarks, Z, *self.expansion)
        return self._replace(newton=newton), arrays


def memory_for(settings: ForksSettings, rule: Rule) -> FloatArray:
    """Return the memory that the loops work in: a strip, and at the end what `_vectors_in` tells."""
    start, stop = settings.kernel_columns
    inputs = int(rule[0]["used_stop"] - rule[0]["used_start"])
    return line_memory(strip_size(settings, inputs) + 3 * whole_lines(settings.features) + stop - start)


@njit(cache=True)
def _vectors_in(
    memory: FloatArray, rule: Any, inverse_hessian: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return room for a point (kernel columns,), and for its z, A^-1 z and what A^-1 loses, in whole lines.

    What fills up the lines of z is zero, as nothing else is ever written there.
    """
    length = inverse_hessian.shape[1]
    point = memory.shape[0] - (rule.kernel_stop - rule.kernel_start)
    z, u, root = point - 3 * length, point - 2 * length, point - length
    return memory[point:], memory[z:u], memory[u:root], memory[root:point]


@njit(cache=True, nogil=True)
def walk(
    X: FloatArray,
    first: int,
    factors: FloatArray,
    slots: IntArray,
    order: IntArray,
    labels: FloatArray,
    rule: Rule,
    learned: int,
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
) -> int:
    """Take the steps of `Events` by a `Hypothesis` that learned so many before; return how many are now.

    Writes to ``out`` (steps,) each step's score, at a lesson that of before. ``labels`` (steps,) are read
    at lessons only. These change moments and Newton's state in place; the feature map and the expansion
    count as given.
    """
    events = Events(X, first, factors, slots, order)
    feature_map, expansion = FeatureMap(landmarks, Z), Expansion(points, coefficients)
    strip = strip_in(memory, rule[0].used_stop - rule[0].used_start, feature_map)
    point, z, u, root = _vectors_in(memory, rule[0], inverse_hessian)
    features = z[: inverse_hessian.shape[0]]
    loss, sigma, own_curvature = rule[0].loss, rule[0].sigma, rule[0].own_curvature
    n = X.shape[0]
    owing = False  # whether A^-1 has still to lose what the lesson before left in ``root``
    for start in range(0, order.shape[0], LENGTH):
        count = min(LENGTH, order.shape[0] - start)
        learned = describe(events, start, count, rule[0], learned, mean, squares, feature_map, strip)
        for i in range(count):
            event, lesson = event_of(order[start + i], n)
            fill_features(strip, i, rule[0], features)
            score = dot(weights, z)
            excess = score - clipped(score, rule[0].clip)
            if points.shape[0] > 0:
                _fill_point(X[event], strip.inputs[i], rule[0], point)
                score += expansion_value(point, expansion, rule[0].gamma)
                excess = 0.0  # it is the sum that is clipped, and the sum's other part does not move
            score = clipped(score, rule[0].clip)
            out[start + i] = score
            if not lesson:
                continue
            label = labels[start + i]
            slope = loss_slope(loss, score, label)
            curvature = sigma * slope * slope
            if own_curvature:
                curvature = loss_curvature(loss, score, label)
            if slope != 0.0 or curvature != 0.0 or excess != 0.0:  # a hinge beyond its margin teaches nothing
                if owing:
                    lower_and_combine(inverse_hessian, root, z, u)
                else:
                    combine(features, inverse_hessian, u)
                step_along(weights, z, u, excess, slope, curvature, root)
                owing = True
    if owing:
        lower(inverse_hessian, root)
    return learned


@njit(cache=True)
def end_of_part(order: IntArray, n: int, start: int, lessons: int) -> int:
    """Return where the steps from ``start`` on end, of n events, that have at most so many lessons."""
    for step in range(start, order.shape[0]):
        if order[step] >= n:
            if lessons <= 0:
                return step
            lessons -= 1
    return len(order)


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
    a, b = rule[0].used_start, rule[0].used_stop
    inputs = x[a:b].copy()
    if rule[0].standardize:
        standardize(x[a:b], count, mean[a:b], squares[a:b], inputs)
    point = np.empty(rule[0].kernel_stop - rule[0].kernel_start)
    _fill_point(x, inputs, rule[0], point)
    return point


@njit(cache=True, inline="always")
def _fill_point(x: FloatArray, inputs: FloatArray, rule: Any, point: FloatArray) -> None:
    """Write the kernel's columns to ``point``: entity blocks from ``x``, the others from ``inputs``."""
    entity_columns = rule.entity_stop - rule.kernel_start
    first = rule.entity_stop - rule.used_start
    for j in range(entity_columns):
        point[j] = x[rule.kernel_start + j]
    for j in range(entity_columns, point.shape[0]):
        point[j] = inputs[first + j - entity_columns]
