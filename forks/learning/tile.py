"""Tiles: consecutive steps whose features are computed together.

Between two changes of the map, learning changes features only through the moments, which depend on the inputs
alone. So the features of several steps can be computed before the first of them runs. With each operation
done for all of them, the loops are long enough for vector instructions, and events do not depend on each
other. The sums of an event keep their order, so its bits do not depend on the size of the tile.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Any, NamedTuple

from forks.algorithm.feature_map import FeatureMap
from forks.algorithm.kernels import gaussian_in_place, squared_distance_matrix
from forks.algorithm.moments import standardize, update_moments
from forks.arrays import FloatArray, IntArray
from forks.compiled.alignment import padded_length
from forks.compiled.products import matmul
from forks.jit import njit
from forks.settings import ForksSettings

TILE_STEPS = 32
"""Number of steps in a tile: enough for long loops, and few enough for the fastest cache."""


class Steps(NamedTuple):
    """Steps for the event loop, on whole rows or on rows without the entity blocks and with their factors.

    Attributes
    ----------
    X : ndarray, shape (n, columns), float64
        Rows of the events.
    first
        Number of the first column of X: 0 for whole rows, otherwise the first one behind the entity blocks.
    factors : ndarray, shape (slots, s_m), float64
        Kernel of entities' blocks with the landmarks' blocks.
    slots : ndarray, shape (steps, entity blocks), int64
        Rows of ``factors`` that each step's event needs.
    order : ndarray, shape (steps,), int64
        Steps: i scores row i, n + i learns it.
    """

    X: FloatArray
    first: int
    factors: FloatArray
    slots: IntArray
    order: IntArray


class Tile(NamedTuple):
    """Memory for the steps of a tile, one row for each step.

    Attributes
    ----------
    inputs : ndarray, shape (TILE_STEPS, used columns), float64
        Columns that are used, standardised where the parameters say so.
    kernel : ndarray, shape (TILE_STEPS, padded s_m), float64
        Kernel with the landmarks; rows begin at cache lines.
    phi : ndarray, shape (TILE_STEPS, padded k), float64
        Features of the kernel part; rows begin at cache lines.
    """

    inputs: FloatArray
    kernel: FloatArray
    phi: FloatArray


def tile_size(settings: ForksSettings, inputs: int) -> int:
    """Return the number of float64 in a tile of a learner that uses this many columns."""
    return TILE_STEPS * (inputs + padded_length(settings.landmarks) + padded_length(settings.rank))


@njit(cache=True, inline="always")
def tile_in(workspace: FloatArray, inputs: int, feature_map: FeatureMap) -> Tile:
    """Return a tile at the beginning of ``workspace``, of at most `tile_size` numbers."""
    landmarks, features = feature_map.landmarks.shape[1], feature_map.Z.shape[1]
    a = TILE_STEPS * inputs
    b = a + TILE_STEPS * landmarks
    c = b + TILE_STEPS * features
    return Tile(
        workspace[:a].reshape((TILE_STEPS, inputs)),
        workspace[a:b].reshape((TILE_STEPS, landmarks)),
        workspace[b:c].reshape((TILE_STEPS, features)),
    )


@njit(cache=True)
def event_of(step: int, n: int) -> tuple[int, bool]:
    """Return the event of a step, for n events, and whether the step learns it."""
    if step < n:
        return step, False
    if step < 2 * n:
        return step - n, True
    return step - 2 * n, False


@njit(cache=True)
def compute_features(
    events: Steps,
    start: int,
    count: int,
    params: Any,
    learned: int,
    mean: FloatArray,
    squares: FloatArray,
    feature_map: FeatureMap,
    tile: Tile,
) -> int:
    """Compute the features of ``count`` <= `TILE_STEPS` steps from ``start`` on.

    Parameters
    ----------
    params
        Record of `forks.learning.params.PARAMS_DTYPE`.
    learned
        Number of events in the moments before the first step.
    mean, squares : ndarray, shape (dimension,), float64
        Running moments; changed by each event that is learned, before the next step.
    feature_map
        Feature map; the rows of its matrices begin at cache lines.

    Returns
    -------
    int
        Number of events in the moments after the last step.
    """
    learned = _fill_inputs(events, start, count, params, learned, mean, squares, tile.inputs)
    if feature_map.Z.shape[0] > 0:
        _fill_kernel(events, start, count, params, feature_map.landmarks, tile)
    matmul(tile.kernel, feature_map.Z, tile.phi[:count])
    return learned


@njit(cache=True, inline="always")
def copy_features(tile: Tile, i: int, params: Any, z: FloatArray) -> None:
    """Write the features of step i of the tile, linear part first, to ``z`` (features,)."""
    linear = params.linear_features
    if linear > 0:
        z[0] = 1.0
        for j in range(1, linear):
            z[j] = tile.inputs[i, params.linear_start - params.used_start + j - 1]
    for k in range(linear, z.shape[0]):
        z[k] = tile.phi[i, k - linear]


@njit(cache=True)
def _fill_inputs(
    events: Steps,
    start: int,
    count: int,
    params: Any,
    learned: int,
    mean: FloatArray,
    squares: FloatArray,
    inputs: FloatArray,
) -> int:
    a, b = params.used_start, params.used_stop
    for i in range(count):
        event, learns = event_of(events.order[start + i], events.X.shape[0])
        x = events.X[event, a - events.first : b - events.first]
        if params.standardize:
            standardize(x, learned, mean[a:b], squares[a:b], inputs[i])
            if learns:
                update_moments(x, learned + 1, mean[a:b], squares[a:b])
        else:
            for j in range(b - a):
                inputs[i, j] = x[j]
        learned += learns
    return learned


@njit(cache=True)
def _fill_kernel(
    events: Steps, start: int, count: int, params: Any, landmarks: FloatArray, tile: Tile
) -> None:
    """Compute the kernel on the varying columns, and multiply it by the factors of the entities."""
    varying = landmarks[params.entity_stop - params.kernel_start :]
    first = params.entity_stop - params.used_start
    squared_distance_matrix(tile.inputs[:, first : first + varying.shape[0]], varying, tile.kernel[:count])
    gaussian_in_place(tile.kernel.reshape(-1)[: count * tile.kernel.shape[1]], params.gamma)
    for b in range(events.slots.shape[1]):
        for i in range(count):
            slot = events.slots[start + i, b]
            for m in range(events.factors.shape[1]):
                tile.kernel[i, m] *= events.factors[slot, m]
