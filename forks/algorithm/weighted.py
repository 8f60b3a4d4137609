"""Newton's steps on labels that have weights: a label of weight 3 is learned as three of its kind in a row.

A label of weight h has its loss h times, so its gradient and its curvature count h times. One step of that
length would go far beyond the label where the loss is steep and not curved, as the logistic loss is far from
it. So h is cut into parts of at most 1, and each part steps at the score that the one before has left. All
steps go along the same A^-1 z, so that each but the first is a few sums of numbers. With squared loss, the
steps together are one step of h times the gradient and h times the curvature.

See `forks.learning.event_loop` before changing compiled functions.

References
----------
Karampatziakis and Langford, Online Importance Weight Aware Updates, UAI 2011: a weight is not a step size.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

import math

from forks.algorithm.newton import clipped
from forks.arrays import FloatArray
from forks.compiled.products import dot
from forks.compiled.simd import fma
from forks.jit import njit
from forks.losses import loss_curvature, loss_slope


@njit(cache=True)
def weighted_project_and_step(
    weights: FloatArray,
    z: FloatArray,
    u: FloatArray,
    excess: float,
    score: float,
    label: float,
    importance: float,
    loss: int,
    sigma: float,
    own_curvature: bool,
    clip: float,
    projects: bool,
    root: FloatArray,
) -> None:
    """Do as `forks.algorithm.newton.project_and_step`, with a label that has a weight.

    Parameters
    ----------
    weights, z, u, excess
        As there.
    score
        Score of the event, within +-``clip``.
    label
        Label of the event.
    importance
        Weight of the label, > 0.
    loss
        Number of the loss in `LOSSES`.
    sigma, own_curvature
        What a label of weight 1 adds to the Hessian: the loss's own curvature, or ``sigma`` times the squared
        slope.
    clip
        Bound of the scores.
    projects
        Whether scores beyond the bound are projected.
    root
        As there.
    """
    along = max(dot(z, u), 0.0)
    step, added, left = 0.0, 0.0, importance  # the step along u, and the curvature added to A, so far
    while left > 0.0:
        part = min(left, 1.0)
        slope = loss_slope(loss, score, label)
        curvature = part * (loss_curvature(loss, score, label) if own_curvature else sigma * slope * slope)
        slope *= part
        if slope == 0.0 and curvature == 0.0 and excess == 0.0:
            break
        added += curvature
        taken = slope / (1.0 + added * along)  # the new A^-1 z is u / (1 + added z'u)
        step += taken
        if along > 0.0:
            step += excess / along
        moved = score - taken * along
        score = clipped(moved, clip)
        excess = moved - score if projects else 0.0
        left -= part
    for i in range(weights.shape[0]):
        weights[i] = fma(-step, u[i], weights[i])
    scale = math.sqrt(added / (1.0 + added * along))
    for i in range(root.shape[0]):
        root[i] = scale * u[i]


@njit(cache=True)
def repeated_slope(loss: int, score: float, label: float, importance: float, step: float) -> float:
    """Return the sum of the slopes of a label with a weight, where each of its steps moves the score.

    Parameters
    ----------
    loss
        Number of the loss in `LOSSES`.
    score, label, importance
        Score of the event, its label, and the label's weight.
    step
        How far a slope of -1 moves the score: the step of gradient descent, if the event has length 1.

    Examples
    --------
    >>> from forks.losses import SQUARED
    >>> 0.25 * repeated_slope(SQUARED, 0.0, 1.0, 2.0, 0.25)  # half of what is left, twice
    -0.75
    """
    total, left = 0.0, importance
    while left > 0.0:
        part = min(left, 1.0)
        slope = part * loss_slope(loss, score, label)
        total += slope
        score -= step * slope
        left -= part
    return total
