"""Estimate what another policy's choices would have been worth, from the outcomes of the one that chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Floats: TypeAlias = NDArray[np.float64]

LEVEL: Final = 0.95
"""The level of confidence, unless it is given."""
LOGGED: Final = np.dtype(
    [
        ("reward", np.float64),
        ("propensity", np.float64),
        ("target_propensity", np.float64),
        ("estimate", np.float64),
        ("target_estimate", np.float64),
    ]
)
"""Columns of outcomes; a number that there is not is NaN."""
Logged: TypeAlias = NDArray[np.void]
"""Outcomes as an array of type `LOGGED`, shape (n,)."""


class OffPolicy(NamedTuple):
    """How the values of policies are estimated: see `off_policy_figures`."""

    level: float = LEVEL
    cap: float | None = None


class Estimate(msgspec.Struct, frozen=True):
    """The value of a policy: its mean reward."""

    value: float
    low: float | None
    """The lower limit of the interval of confidence; None with fewer than two outcomes, as `high`."""
    high: float | None


class OffPolicyFigures(msgspec.Struct, frozen=True):
    """The values of two policies. An estimate is None where outcomes lack what it needs."""

    level: float
    """The level of confidence of all intervals."""
    outcomes: int
    """Outcomes with a reward."""
    without_reward: int
    """Outcomes that count nowhere, since no label came and none is learned in its place."""
    logged: Estimate | None
    """The policy that chose: the mean of all rewards."""
    weighted: int
    """Outcomes with both propensities, from which the target policy is estimated."""
    ips: Estimate | None
    """The target policy, by inverse propensities up to `cap`."""
    snips: Estimate | None
    """The same, self-normalised, without a cap."""
    with_estimates: int
    """Outcomes that also have both estimates of a model."""
    doubly_robust: Estimate | None
    """The target policy, by these estimates and the weighted errors of the first, without a cap."""
    cap: float | None
    """The largest weight that `ips` takes as it is."""
    capped: int
    """Outcomes with a larger one."""
    largest_weight: float | None
    effective: float | None
    """Kish's effective number of outcomes: (sum of weights)^2 / sum of squared weights."""


def off_policy_figures(
    outcomes: Sequence[Logged], level: float = LEVEL, cap: float | None = None
) -> OffPolicyFigures:
    """Estimate the value of the logging and of the target policy.

    An outcome's weight is its target propensity over its propensity. Intervals are those of Student's t for
    means, which need some hundred outcomes that weigh something; the variance of the self-normalised mean is
    that of the delta method.

    Parameters
    ----------
    outcomes
        Outcomes of each partition.
    level
        The level of confidence, above 0 and below 1.
    cap
        The largest weight that counts as it is; by default the square root of the number of outcomes. Where
        there are larger ones, the interval also has what the cap may have taken away, if rewards lie between
        the least and the largest of the log.

    References
    ----------
    Horvitz and Thompson, A Generalization of Sampling Without Replacement From a Finite Universe, 1952.
    Ionides, Truncated Importance Sampling, 2008: the default cap.
    Dudik, Langford and Li, Doubly Robust Policy Evaluation and Learning, ICML 2011.
    Bottou et al., Counterfactual Reasoning and Learning Systems, JMLR 14, 2013: intervals with a cap.
    Swaminathan and Joachims, The Self-Normalized Estimator for Counterfactual Learning, NIPS 2015.

    Examples
    --------
    Two actions, shown equally often, of which the target policy would always show the first:

    >>> rows = [(1.0, 0.5, 1.0, 0.9, 0.9), (0.0, 0.5, 0.0, 0.2, 0.9)] * 50
    >>> found = off_policy_figures([np.array(rows, LOGGED)])
    >>> values = found.logged, found.ips, found.snips, found.doubly_robust
    >>> tuple(round(each.value, 6) for each in values)
    (0.5, 1.0, 1.0, 1.0)
    """
    log = np.concatenate([np.empty(0, LOGGED), *outcomes])
    rewarded = log[~np.isnan(log["reward"])]
    known = ~(np.isnan(rewarded["propensity"]) | np.isnan(rewarded["target_propensity"]))
    weighted = rewarded[known]
    weights = weighted["target_propensity"] / weighted["propensity"]
    modelled = ~(np.isnan(weighted["estimate"]) | np.isnan(weighted["target_estimate"]))
    if cap is None and len(weights):
        cap = float(np.sqrt(len(weights)))
    rewards = weighted["reward"]
    robust = weighted[modelled]
    corrections = weights[modelled] * (robust["reward"] - robust["estimate"])
    total = float(weights.sum())
    return OffPolicyFigures(
        level=level,
        outcomes=len(rewarded),
        without_reward=len(log) - len(rewarded),
        logged=_mean(rewarded["reward"], level),
        weighted=len(weights),
        ips=None if cap is None else _capped(rewards, weights, cap, level),
        snips=_self_normalised(rewards, weights, level),
        with_estimates=len(robust),
        doubly_robust=_mean(robust["target_estimate"] + corrections, level),
        cap=cap,
        capped=0 if cap is None else int((weights > cap).sum()),
        largest_weight=float(weights.max()) if len(weights) else None,
        effective=1.0 / float(((weights / total) ** 2).sum()) if total > 0.0 else None,
    )


def _mean(values: Floats, level: float) -> Estimate | None:
    """Return the mean with its interval; None without values."""
    if not len(values):
        return None
    mean, reach = float(values.mean()), _reach(values, level)
    return Estimate(mean, None, None) if reach is None else Estimate(mean, mean - reach, mean + reach)


def _reach(values: Floats, level: float) -> float | None:
    """Return the distance from a mean to the limits of its interval; None for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    return float(stdtrit(n - 1, 0.5 + 0.5 * level) * values.std(ddof=1) / np.sqrt(n))


def _capped(rewards: Floats, weights: Floats, cap: float, level: float) -> Estimate | None:
    """Return the mean of the rewards by weights up to the cap.

    With rewards from a to b and weights whose mean is 1, the value is at least a + E[min(w, cap) (r - a)] and
    at most b - E[min(w, cap) (b - r)].
    """
    kept = np.minimum(weights, cap)
    found = _mean(kept * rewards, level)
    if found is None or not (weights > cap).any():
        return found
    least, most = rewards.min(), rewards.max()
    from_below = _mean(least + kept * (rewards - least), level)
    from_above = _mean(most - kept * (most - rewards), level)
    assert from_below is not None
    assert from_above is not None
    return Estimate(found.value, from_below.low, from_above.high)


def _self_normalised(rewards: Floats, weights: Floats, level: float) -> Estimate | None:
    """Return the weighted mean of the rewards; None where nothing weighs anything."""
    total = float(weights.sum())
    if not total > 0.0:
        return None
    shares = weights / total  # weights may be so small that their squares are 0
    mean = float((shares * rewards).sum())
    reach = _reach(len(shares) * shares * (rewards - mean), level)
    return Estimate(mean, None, None) if reach is None else Estimate(mean, mean - reach, mean + reach)
