"""The compiled loop over events, with a fixed order of every sum.

A score therefore has the same bits whether its event came alone or in a batch, and whatever was restored
before it. For the same reason nothing here calls BLAS, runs in parallel or uses fastmath.

- Functions called from Python take only plain arrays and numbers: Numba needs microseconds to determine the
  type of a named tuple, more than the rest of an event takes. The tuples are made inside.
- Helpers with named tuples as parameters are inlined: a call would count references to every array in them
  atomically, which took a third of an event's time.
- `run` releases the GIL. It writes only to arrays of one learner, which must be used by one thread at a time.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from forks.algorithm.feature_map import FeatureMap
from forks.algorithm.kogd import Expansion, expansion_value
from forks.algorithm.moments import standardize
from forks.algorithm.newton import NewtonState, clipped, project_and_step
from forks.algorithm.tracking import Tracker, corrected_scores, track, track_weighted
from forks.algorithm.weighted import weighted_project_and_step
from forks.arrays import FloatArray, IntArray
from forks.compiled.alignment import aligned_rows, aligned_zeros, padded_length
from forks.compiled.products import dot, downdate_and_vecmat, rank_one_downdate, vecmat
from forks.jit import njit
from forks.learning.params import Params
from forks.learning.tile import (
    TILE_STEPS,
    Steps,
    compute_features,
    copy_features,
    event_of,
    tile_in,
    tile_size,
)
from forks.losses import loss_curvature, loss_slope, loss_value
from forks.settings import ForksSettings

HypothesisArrays: TypeAlias = tuple[
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
]


class Hypothesis(NamedTuple):
    """The function that scores events: moments, Newton's state, feature map, expansion and tracker.

    Attributes
    ----------
    mean, squares : ndarray, shape (dimension,), float64
        Running moments of the columns, see `forks.algorithm.moments`.
    newton
        State of Online Newton Step on the features, those of the linear part first.
    feature_map
        Feature map of the kernel part; without landmarks (stage 1) its features are zero.
    expansion
        Function of stage 1; without points (stage 2) it is zero.
    tracker
        State of tracking; not used without it.
    """

    mean: FloatArray
    squares: FloatArray
    newton: NewtonState
    feature_map: FeatureMap
    expansion: Expansion
    tracker: Tracker

    def aligned(self) -> tuple[Self, HypothesisArrays]:
        """Return the hypothesis and its arrays, in the order of `run`'s parameters, aligned to cache lines.

        The hypothesis shares the memory of the arrays, so it sees what `run` writes to them.
        """
        features = len(self.newton.weights)
        weights = aligned_rows(self.newton.weights[None])[0]
        inverse_hessian = aligned_rows(self.newton.inverse_hessian)
        landmarks, Z = (aligned_rows(matrix) for matrix in self.feature_map)
        newton = NewtonState(weights[:features], inverse_hessian[:, :features])
        arrays = (
            self.mean,
            self.squares,
            weights,
            inverse_hessian,
            landmarks,
            Z,
            *self.expansion,
            *self.tracker,
        )
        return self._replace(newton=newton), arrays


def workspace_for(settings: ForksSettings, params: Params) -> FloatArray:
    """Return scratch memory for `run`: a tile, and at the end the vectors of `_vector_views`."""
    start, stop = settings.kernel_columns
    inputs = int(params[0]["used_stop"] - params[0]["used_start"])
    return aligned_zeros(tile_size(settings, inputs) + 3 * padded_length(settings.features) + stop - start)


@njit(cache=True, inline="always")
def _vector_views(
    workspace: FloatArray, params: Any, inverse_hessian: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return views of ``workspace``: a point, (kernel columns,), its z, A^-1 z, and the root of a downdate.

    The last three begin at cache lines. The padding of z is never written to, and so stays zero.
    """
    length = inverse_hessian.shape[1]
    point = workspace.shape[0] - (params.kernel_stop - params.kernel_start)
    z, u, root = point - 3 * length, point - 2 * length, point - length
    return workspace[point:], workspace[z:u], workspace[u:root], workspace[root:point]


@njit(cache=True, nogil=True)
def run(  # noqa: PLR0912, PLR0915 - calls cost more than branches
    X: FloatArray,
    first: int,
    factors: FloatArray,
    slots: IntArray,
    order: IntArray,
    labels: FloatArray,
    importances: FloatArray,
    formers: FloatArray,
    params: Params,
    learned: int,
    mean: FloatArray,
    squares: FloatArray,
    weights: FloatArray,
    inverse_hessian: FloatArray,
    landmarks: FloatArray,
    Z: FloatArray,
    points: FloatArray,
    coefficients: FloatArray,
    corrections: FloatArray,
    shares: FloatArray,
    covariance: FloatArray,
    phase: FloatArray,
    workspace: FloatArray,
    own: FloatArray,
    out: FloatArray,
) -> int:
    """Run the steps of `Steps` on the arrays of a `Hypothesis`; return the number of events learned in all.

    ``learned`` is the number of events learned before. The score of each step is written to ``out`` (steps,),
    for a step that learns the score before learning. ``labels`` (steps,) are read only at steps that learn,
    and so are their weights ``importances`` (steps,), > 0; without any, ``importances`` (0,), all are 1.
    At steps that replace, ``formers`` (steps, 2) has the former labels and their weights.
    These change the moments, Newton's state and the tracker in place, not the feature map and the expansion.
    ``own`` (1,) is overwritten by the last step's score as it is without tracking.
    """
    events = Steps(X, first, factors, slots, order)
    feature_map, expansion = FeatureMap(landmarks, Z), Expansion(points, coefficients)
    tile = tile_in(workspace, params[0].used_stop - params[0].used_start, feature_map)
    point, z, u, root = _vector_views(workspace, params[0], inverse_hessian)
    features, linear = z[: inverse_hessian.shape[0]], z[: corrections.shape[1]]
    loss, sigma, own_curvature = params[0].loss, params[0].sigma, params[0].own_curvature
    tracking, clip = params[0].tracking, params[0].clip
    weighted = importances.shape[0] > 0
    n = X.shape[0]
    downdate_pending = False  # whether the downdate in ``root`` is not applied to A^-1 yet
    for start in range(0, order.shape[0], TILE_STEPS):
        count = min(TILE_STEPS, order.shape[0] - start)
        learned = compute_features(events, start, count, params[0], learned, mean, squares, feature_map, tile)
        for i in range(count):
            event, learns = event_of(order[start + i], n)
            copy_features(tile, i, params[0], features)
            score = dot(weights, z)
            if params[0].offset_column >= 0:
                score += clipped(X[event, params[0].offset_column - first], clip)
            excess = score - clipped(score, clip)
            if points.shape[0] > 0:
                _fill_point(X[event], tile.inputs[i], params[0], point)
                score += expansion_value(point, expansion, params[0].gamma)
                excess = 0.0  # the sum is clipped, and the projection cannot change its other part
            score = clipped(score, clip)
            own[0] = score
            out[start + i], slow, fast, renewed = corrected_scores(
                tracking, score, linear, clip, corrections, shares, phase
            )
            if not learns:
                if order[start + i] >= 2 * n:
                    if downdate_pending:
                        rank_one_downdate(inverse_hessian, root)
                        downdate_pending = False
                    importance = importances[start + i] if weighted else 1.0
                    slope = importance * loss_slope(loss, score, labels[start + i])
                    slope -= formers[start + i, 1] * loss_slope(loss, score, formers[start + i, 0])
                    vecmat(features, inverse_hessian, u)
                    project_and_step(weights, z, u, 0.0, slope, 0.0, root)
                continue
            label = labels[start + i]
            importance = importances[start + i] if weighted else 1.0
            slope = loss_slope(loss, score, label)
            curvature = sigma * slope * slope
            if own_curvature:
                curvature = loss_curvature(loss, score, label)
            if slope != 0.0 or curvature != 0.0 or excess != 0.0:  # the hinge has no loss beyond its margin
                if downdate_pending:
                    downdate_and_vecmat(inverse_hessian, root, z, u)
                else:
                    vecmat(features, inverse_hessian, u)
                if importance == 1.0:
                    project_and_step(weights, z, u, excess, slope, curvature, root)
                else:
                    weighted_project_and_step(
                        weights,
                        z,
                        u,
                        excess,
                        score,
                        label,
                        importance,
                        loss,
                        sigma,
                        own_curvature,
                        clip,
                        points.shape[0] == 0,
                        root,
                    )
                downdate_pending = True
            if tracking and importance == 1.0:
                track(
                    label,
                    score,
                    slow,
                    fast,
                    renewed,
                    linear,
                    corrections,
                    shares,
                    covariance,
                    phase,
                    u,
                )
            elif tracking:
                track_weighted(
                    label,
                    importance,
                    score,
                    slow,
                    fast,
                    renewed,
                    linear,
                    corrections,
                    shares,
                    covariance,
                    phase,
                    u,
                )
    if downdate_pending:
        rank_one_downdate(inverse_hessian, root)
    return learned


@njit(cache=True)
def last_features(
    params: Params, inverse_hessian: FloatArray, workspace: FloatArray, out: FloatArray
) -> None:
    """Write the features of the step that `run` did last to ``out`` (features,)."""
    z = _vector_views(workspace, params[0], inverse_hessian)[1]
    for i in range(out.shape[0]):
        out[i] = z[i]


@njit(cache=True, nogil=True)
def variances(
    X: FloatArray,
    first: int,
    factors: FloatArray,
    slots: IntArray,
    order: IntArray,
    params: Params,
    learned: int,
    mean: FloatArray,
    squares: FloatArray,
    inverse_hessian: FloatArray,
    landmarks: FloatArray,
    Z: FloatArray,
    workspace: FloatArray,
    out: FloatArray,
) -> None:
    """Write z' A^-1 z of each event to ``out`` (steps,). No step of ``order`` (steps,) learns."""
    events, feature_map = Steps(X, first, factors, slots, order), FeatureMap(landmarks, Z)
    tile = tile_in(workspace, params[0].used_stop - params[0].used_start, feature_map)
    _, z, u, _ = _vector_views(workspace, params[0], inverse_hessian)
    features = z[: inverse_hessian.shape[0]]
    for start in range(0, order.shape[0], TILE_STEPS):
        count = min(TILE_STEPS, order.shape[0] - start)
        compute_features(events, start, count, params[0], learned, mean, squares, feature_map, tile)
        for i in range(count):
            copy_features(tile, i, params[0], features)
            vecmat(features, inverse_hessian, u)
            out[start + i] = max(dot(z, u), 0.0)  # rounding can make the sum negative


@njit(cache=True)
def segment_end(order: IntArray, n: int, start: int, learn_steps: int) -> int:
    """Return the end of the longest run of steps from ``start`` with at most ``learn_steps`` that learn."""
    for step in range(start, order.shape[0]):
        if n <= order[step] < 2 * n:
            if learn_steps <= 0:
                return step
            learn_steps -= 1
    return len(order)


@njit(cache=True, allocates=True)
def loss_values(scores: FloatArray, y: FloatArray, loss: int) -> FloatArray:
    """Return the loss of each score, (n,); ``loss`` is a number of `LOSSES`."""
    out = np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        out[i] = loss_value(loss, scores[i], y[i])
    return out


@njit(cache=True, allocates=True)
def kernel_point(
    x: FloatArray, params: Params, count: int, mean: FloatArray, squares: FloatArray
) -> FloatArray:
    """Return the point to store for ``x``: its kernel columns, standardised if the parameters say so."""
    a, b = params[0].used_start, params[0].used_stop
    inputs = x[a:b].copy()
    if params[0].standardize:
        standardize(x[a:b], count, mean[a:b], squares[a:b], inputs)
    point = np.empty(params[0].kernel_stop - params[0].kernel_start)
    _fill_point(x, inputs, params[0], point)
    return point


@njit(cache=True, inline="always")
def _fill_point(x: FloatArray, inputs: FloatArray, params: Any, point: FloatArray) -> None:
    """Write the kernel's columns to ``point``: entity blocks from ``x``, others from ``inputs``."""
    entity_columns = params.entity_stop - params.kernel_start
    first = params.entity_stop - params.used_start
    for j in range(entity_columns):
        point[j] = x[params.kernel_start + j]
    for j in range(entity_columns, point.shape[0]):
        point[j] = inputs[first + j - entity_columns]
