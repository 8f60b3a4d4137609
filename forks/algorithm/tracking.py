"""Tracking: corrections with short memories, mixed in where a stream changes at once.

Beside the learner's own score s there are corrected ones, s + v'z with weights v on the linear features:

- **slow** takes normalised gradient steps on the logistic loss: it follows a change of ranking, of a column
  or of the mean within tens to hundreds of labels;
- **fast** takes passive-aggressive steps and fades: it repeats what the newest labels said of such an event;
- **renewed** takes Newton's steps on the logistic loss, from 0 and without certainty. It starts anew whenever
  slow and fast together come to have most of the weight, which says that the stream has just changed. It
  ends where the own score has nearly all the weight again.

The score is the mean of the four under weights that follow their likelihoods by fixed share. Where nothing
changes, the own score has nearly all the weight, and there is no renewed correction. The learner itself is
the one that it would be without tracking.

Scores have to be log-odds, which have a likelihood. Time and memory are those of two linear learners of first
order, and of one of second order while there is a renewed correction.

References
----------
- Herbster and Warmuth, Tracking the best expert, Machine Learning 32, 1998: fixed share.
- Crammer et al., Online passive-aggressive algorithms, JMLR 7, 2006.
- Hazan et al., Logarithmic regret algorithms for online convex optimization, Machine Learning 69, 2007:
  Newton's steps.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Final, NamedTuple, Self, cast

import numpy as np

from forks.algorithm.newton import clipped, project_and_step
from forks.algorithm.weighted import repeated_slope, weighted_project_and_step
from forks.arrays import FloatArray
from forks.compiled.exponential import exponential
from forks.compiled.logarithm import logarithm
from forks.compiled.products import dot, rank_one_downdate, vecmat
from forks.compiled.simd import fma
from forks.jit import FALSE, TRUE, njit
from forks.losses import LOGISTIC, probability

FIRST_SHARES: Final = (0.97, 0.01, 0.01, 0.01)
"""Weights of the own, the slow, the fast and the renewed score at first."""
SWITCHING: Final = 1e-3
"""Share of the weights that each label moves back to `FIRST_SHARES`."""
SLOW_STEP: Final = 0.3
"""Step of the slow correction, relative to 1 / |z|^2."""
MARGIN: Final = 1.0
"""Margin that a step of the fast correction reaches."""
FAST_KEEPS: Final = 0.99
"""Share of the fast correction that each label leaves."""
RENEWED_PRECISION: Final = 2.0
"""Prior precision of each weight of the renewed correction."""
CHANGED: Final = 0.5
"""Weight of the slow and the fast score together above which the stream has changed."""
SETTLED_BELOW: Final = 0.05
"""Weight of the slow and the fast score together below which a change is over."""
OWN_AGAIN: Final = 0.95
"""Weight of the own score above which there is no renewed correction any more."""
FLOOR: Final = 1e-12
"""Smallest likelihood of a label, so that no score is refuted for good by one label."""
_LOSS: Final = cast("int", np.int64(LOGISTIC))  # no literal, see `forks.jit.ZERO`
UNCHANGED, NEW, SETTLED = 0.0, 1.0, 2.0
"""Phases: there is no renewed correction, it has just started, and it may start anew."""


class Tracker(NamedTuple):
    """State of tracking.

    Attributes
    ----------
    corrections : ndarray, shape (3, n), float64
        Weights v of the slow, the fast and the renewed correction on the n features of the linear part.
    shares : ndarray, shape (4,), float64
        Weights of the own, the slow, the fast and the renewed score, > 0, with sum 1.
    covariance : ndarray, shape (n, n), float64
        Inverse Hessian of the renewed correction, symmetric; zeros where there is none.
    phase : ndarray, shape (1,), float64
        `UNCHANGED`, `NEW` or `SETTLED`.
    """

    corrections: FloatArray
    shares: FloatArray
    covariance: FloatArray
    phase: FloatArray

    @classmethod
    def initial(cls, features: int) -> Self:
        """Return the state before the first label, for this many features of the linear part."""
        return cls(
            np.zeros((3, features)),
            np.array(FIRST_SHARES),
            np.zeros((features, features)),
            np.array([UNCHANGED]),
        )


@njit(cache=True, inline="always")
def corrected_scores(
    tracking: bool,
    score: float,
    z: FloatArray,
    clip: float,
    corrections: FloatArray,
    shares: FloatArray,
    phase: FloatArray,
) -> tuple[float, float, float, float]:
    """Return the mean of the four scores, the slow, the fast and the renewed one, each within +-``clip``.

    Parameters
    ----------
    tracking
        Whether there is tracking; without it all four are the own score.
    score
        The own score.
    z : ndarray, shape (n,), float64
        Features of the linear part, the intercept's 1 first.
    clip
        Bound of the scores.
    corrections, shares, phase
        Arrays of a `Tracker`.
    """
    if not tracking:
        return score, score, score, score
    slow = clipped(score + dot(corrections[0], z), clip)
    fast = clipped(score + dot(corrections[1], z), clip)
    renewed = score
    if phase[0] != UNCHANGED:
        renewed = clipped(score + dot(corrections[2], z), clip)
    # Differences from the own score, so that the mean is exact where all are equal.
    mean = score + shares[1] * (slow - score) + shares[2] * (fast - score) + shares[3] * (renewed - score)
    return clipped(mean, clip), slow, fast, renewed


@njit(cache=True, inline="always")
def track(
    label: float,
    score: float,
    slow: float,
    fast: float,
    renewed: float,
    z: FloatArray,
    corrections: FloatArray,
    shares: FloatArray,
    covariance: FloatArray,
    phase: FloatArray,
    workspace: FloatArray,
) -> None:
    """Learn a label.

    Parameters
    ----------
    label
        Label, -1 or +1.
    score, slow, fast, renewed
        The four scores of the event before the label was learned.
    z : ndarray, shape (n,), float64
        Features of the linear part, the intercept's 1 first.
    corrections, shares, covariance, phase
        Arrays of a `Tracker`; changed.
    workspace : ndarray, shape (at least n,), float64
        Scratch memory; overwritten.
    """
    of_own = max(probability(label * score), FLOOR)
    of_slow = max(probability(label * slow), FLOOR)
    of_fast = max(probability(label * fast), FLOOR)
    of_renewed = max(probability(label * renewed), FLOOR)
    total = shares[0] * of_own + shares[1] * of_slow + shares[2] * of_fast + shares[3] * of_renewed
    kept = (1.0 - SWITCHING) / total
    shares[0] = shares[0] * of_own * kept + SWITCHING * FIRST_SHARES[0]
    shares[1] = shares[1] * of_slow * kept + SWITCHING * FIRST_SHARES[1]
    shares[2] = shares[2] * of_fast * kept + SWITCHING * FIRST_SHARES[2]
    shares[3] = shares[3] * of_renewed * kept + SWITCHING * FIRST_SHARES[3]
    length = dot(z, z)  # at least 1, by the intercept
    slow_step = SLOW_STEP * (1.0 - of_slow) * label / length
    fast_step = max(0.0, MARGIN - label * fast) * label / length
    for j in range(z.shape[0]):
        corrections[0, j] = fma(slow_step, z[j], corrections[0, j])
        corrections[1, j] = fma(fast_step, z[j], FAST_KEEPS * corrections[1, j])
    if phase[0] != UNCHANGED:
        _step(label, of_renewed, z, corrections[2], covariance, workspace[: z.shape[0]])
    _turn(corrections, shares, covariance, phase)


@njit(cache=True)
def track_weighted(
    label: float,
    importance: float,
    score: float,
    slow: float,
    fast: float,
    renewed: float,
    z: FloatArray,
    corrections: FloatArray,
    shares: FloatArray,
    covariance: FloatArray,
    phase: FloatArray,
    workspace: FloatArray,
) -> None:
    """Learn a label whose weight is ``importance``, > 0; else as `track`, which this would slow down.

    Its likelihoods count as often as the weight says. The slow and the renewed correction take as many steps
    along the same direction, each at the score that the one before has left. A step of the fast one reaches
    the margin, so it takes at most one.
    """
    of_own = max(probability(label * score), FLOOR)
    of_slow = max(probability(label * slow), FLOOR)
    of_fast = max(probability(label * fast), FLOOR)
    of_renewed = max(probability(label * renewed), FLOOR)
    best = max(of_own, of_slow, of_fast, of_renewed)  # relative to it, as no power takes it to 0
    of_own, of_slow = _power(of_own / best, importance), _power(of_slow / best, importance)
    of_fast, of_renewed = _power(of_fast / best, importance), _power(of_renewed / best, importance)
    total = shares[0] * of_own + shares[1] * of_slow + shares[2] * of_fast + shares[3] * of_renewed
    kept = (1.0 - SWITCHING) / total
    shares[0] = shares[0] * of_own * kept + SWITCHING * FIRST_SHARES[0]
    shares[1] = shares[1] * of_slow * kept + SWITCHING * FIRST_SHARES[1]
    shares[2] = shares[2] * of_fast * kept + SWITCHING * FIRST_SHARES[2]
    shares[3] = shares[3] * of_renewed * kept + SWITCHING * FIRST_SHARES[3]
    length = dot(z, z)
    slow_step = -SLOW_STEP * repeated_slope(_LOSS, slow, label, importance, SLOW_STEP) / length
    fast_step = min(importance, 1.0) * max(0.0, MARGIN - label * fast) * label / length
    for j in range(z.shape[0]):
        corrections[0, j] = fma(slow_step, z[j], corrections[0, j])
        corrections[1, j] = fma(fast_step, z[j], FAST_KEEPS * corrections[1, j])
    if phase[0] != UNCHANGED:
        u = workspace[: z.shape[0]]
        vecmat(z, covariance, u)
        weighted_project_and_step(
            corrections[2], z, u, 0.0, renewed, label, importance, _LOSS, 0.0, TRUE, np.inf, FALSE, u
        )
        rank_one_downdate(covariance, u)
    _turn(corrections, shares, covariance, phase)


@njit(cache=True)
def _power(base: float, exponent: float) -> float:
    """Return base^exponent, for a base in (0, 1] and an exponent > 0."""
    return exponential(exponent * logarithm(base))


@njit(cache=True, inline="always")
def _turn(corrections: FloatArray, shares: FloatArray, covariance: FloatArray, phase: FloatArray) -> None:
    """Begin or end a renewed correction, if the weights of the scores say so."""
    quick = shares[1] + shares[2]
    if phase[0] != NEW and quick > CHANGED:
        _start(phase, NEW, corrections, covariance)
    elif phase[0] != UNCHANGED and shares[0] > OWN_AGAIN:
        _start(phase, UNCHANGED, corrections, covariance)
    elif phase[0] == NEW and quick < SETTLED_BELOW:
        phase[0] = SETTLED


@njit(cache=True)
def _step(
    label: float, likelihood: float, z: FloatArray, v: FloatArray, covariance: FloatArray, u: FloatArray
) -> None:
    """Take Newton's step of the renewed correction ``v``; ``u`` (n,) is overwritten."""
    vecmat(z, covariance, u)
    slope = label * (likelihood - 1.0)
    project_and_step(v, z, u, 0.0, slope, likelihood * (1.0 - likelihood), u)
    rank_one_downdate(covariance, u)


@njit(cache=True)
def _start(phase: FloatArray, new: float, corrections: FloatArray, covariance: FloatArray) -> None:
    """Begin the phase ``new`` with a renewed correction of 0."""
    phase[0] = new
    corrections[2] = 0.0
    covariance[:] = 0.0
    if new == NEW:
        for j in range(covariance.shape[0]):
            covariance[j, j] = 1.0 / RENEWED_PRECISION
