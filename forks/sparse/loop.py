"""The compiled loop of the sparse part: scores of its variants, and what they learn of a label.

A variant has a weight w and a variance v for the bias and each active category, word, bin or pair. Its score
is s = sum of w. A label is learned by one step of an extended Kalman filter with a diagonal covariance:

    d = 1 + h sum of v,   w += v g / d,   v -= h v^2 / d,

where g is minus the slope of the loss at s, and h its curvature. With squared loss both are divided by the
variance of the variant's errors, and variances are in units of that of the labels. So there is no learning
rate, each weight has a certainty of its own, and a label changes the weights in proportion to what is not yet
known of them.

References
----------
Graepel et al., Web-Scale Bayesian Click-Through Rate Prediction for Sponsored Search Advertising in
Microsoft's Bing Search Engine (ICML 2010): the same model with the probit loss.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from forks.arrays import FloatArray, IntArray
from forks.jit import njit
from forks.losses import LOGISTIC, probability
from forks.sparse.mixing import mixed_score, reweigh
from forks.sparse.scores import (
    BINNED_AFTER,
    BINS,
    LABEL_SUM,
    LABELS,
    LEARNED,
    SQUARES,
    USED,
    Plan,
    State,
    Work,
    ask_for,
    find_rows,
    rounded,
    score_variants,
    variance_of,
    write_scores,
)
from forks.sparse.table import NO_ROW, WAYS, find, insert

SMALLEST_VARIANCE: Final = 1e-30
"""Smallest variance of a weight."""
SMALLEST_CURVATURE: Final = 1e-4
"""Smallest curvature of the logistic loss."""
FIRST_ERRORS: Final = 10.0
"""Errors as large as the labels' deviation that count as seen before the first, with squared loss."""
BISECTIONS: Final = 60
"""Steps that find where a label of a weight above 1 takes a score."""
NEW: Final = -3
"""Rows that are new are this less their number; above are `NO_ROW` and `ABSENT`."""
NOW_MASK: Final = 2**32 - 1

SparseArrays: TypeAlias = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]
"""`Plan`, `State` and `Work` as plain tuples, whose types Numba determines faster."""


@njit(cache=True, nogil=True)
def run_sparse(
    arrays: SparseArrays,
    X: FloatArray,
    n: int,
    order: IntArray,
    rows: IntArray,
    begin: int,
    end: int,
    labels: FloatArray,
    importances: FloatArray,
    formers: FloatArray,
) -> None:
    """Run steps: write the scores of events, and learn their labels.

    Parameters
    ----------
    arrays
        They change.
    X : ndarray, shape (rows, columns), float64
        The events. A step that scores writes the scores of its event, but that of the dense learner; one that
        learns reads them.
    n
        Number of events that the order counts.
    order : ndarray, shape (steps,), int64
        Steps: i scores event i, n + i learns its label, 2 n + i replaces it.
    rows : ndarray, shape (steps,), int64
        Row of each step's event.
    begin, end
        The first step that is run, and the one behind the last.
    labels : ndarray, shape (steps,), float64
        Labels.
    importances : ndarray, shape (steps,) or (0,), float64
        Their weights, all 1 if there are none. A label of weight 0 is not learned.
    formers : ndarray, shape (steps, 2) or (0, 2), float64
        Labels that are replaced, and their weights.
    """
    plan, state, work = Plan(*arrays[0]), State(*arrays[1]), Work(*arrays[2])
    scored = -1  # the row that was scored last, while nothing has been learned since
    for step in range(begin, end):
        kind, row = order[step] // n, rows[step]
        importance = importances[step] if importances.shape[0] > 0 else 1.0
        if kind == 1 and importance == 0.0:
            continue
        if row != scored:
            find_rows(plan, state, work, X, row)
            score_variants(plan, state, work, X, row)
        scored = -1
        if kind == 0:
            write_scores(plan, state, work, X, row)
            scored = row
        elif kind == 1:
            _learn(plan, state, work, X, row, labels[step], importance)
        else:
            _replace(plan, state, work, labels[step], importance, formers[step, 0], formers[step, 1])


@njit(cache=True, nogil=True)
def mix_dense(
    arrays: SparseArrays,
    X: FloatArray,
    n: int,
    order: IntArray,
    rows: IntArray,
    begin: int,
    end: int,
    labels: FloatArray,
    importances: FloatArray,
    found: FloatArray,
) -> None:
    """Mix the scores of the dense learner with the others, and learn from labels how far to trust each.

    Parameters
    ----------
    arrays, X, n, order, rows, begin, end, labels, importances
        As those of `run_sparse`, which has run the same steps. The scores of the dense learner are written to
        ``X``.
    found : ndarray, shape (steps,), float64
        Scores of the dense learner at the steps; those of steps that score become those of the mixture.
    """
    plan, state = Plan(*arrays[0]), State(*arrays[1])
    for step in range(begin, end):
        kind, row = order[step] // n, rows[step]
        importance = importances[step] if importances.shape[0] > 0 else 1.0
        scores = X[row, plan.first_score :]
        if kind == 0:
            scores[plan.own] = rounded(plan.loss, found[step])
            found[step] = mixed_score(plan.loss, scores, plan.experts, state.final_shares)
        elif kind == 1 and importance > 0.0:
            reweigh(
                plan.loss,
                labels[step],
                importance,
                scores,
                plan.experts,
                state.final_shares,
                state.final_errors,
            )


@njit(cache=True, inline="always")
def _learn(
    plan: Plan, state: State, work: Work, X: FloatArray, row: int, label: float, importance: float
) -> None:
    """Learn a label."""
    scores = X[row, plan.first_score :]
    reweigh(plan.loss, label, importance, scores, work.columns, state.shares, state.errors)
    _count(plan.loss, state.totals, label, importance)
    unit = _unit(plan.loss, state.totals)
    for variant in range(plan.growths.shape[0]):
        score, variance = work.scores[variant], unit * work.variances[variant]
        if plan.loss == LOGISTIC:
            slope, curvature = _logistic(score, label, importance, variance)
        else:
            curvature = importance / _noise(state, variant, unit)
            slope = (label - score) * curvature
            state.squared_errors[variant] += importance * (label - score) * (label - score)
        denominator = 1.0 + curvature * variance
        work.steps[variant] = unit * slope / denominator
        work.shrinks[variant] = unit * curvature / denominator
        _step(state.bias, variant, state.bias[variant, 1], work)
    now = np.uint32(state.counts[LEARNED] & NOW_MASK)
    for k in range(plan.kinds.shape[0]):
        if work.rows[k] >= 0:
            state.clocks[work.rows[k] // WAYS, work.rows[k] % WAYS] = now
    for k in range(plan.kinds.shape[0]):
        if work.rows[k] == NO_ROW:
            work.rows[k] = _add(state, work.keys[k], now)
    for k in range(plan.kinds.shape[0]):
        found, kind = work.rows[k], plan.kinds[k]
        if found <= NEW:
            found = NEW - found
            _clear(plan, state, found, kind)
        if found < 0:
            continue
        bucket, place = found // WAYS, found % WAYS
        for variant in range(plan.reach[kind, 0], plan.reach[kind, 1]):
            variance = variance_of(plan, state, kind, found, variant)
            _step(state.weights[bucket, place], variant, variance, work)
    _keep_numbers(plan, state, X, row)
    state.counts[LEARNED] += 1


@njit(cache=True, inline="always")
def _add(state: State, key: np.uint64, now: np.uint32) -> int:
    """Return the row for a key that had none when the event was looked up: `NEW` less its number."""
    found = find(key, state.tags)
    if found != NO_ROW:  # the event has the key twice
        return found
    used = state.counts[USED:]
    found = insert(key, now, state.tags, state.clocks, used)
    if found == NO_ROW:
        return NO_ROW
    ask_for(state, found)
    return NEW - found


@njit(cache=True, inline="always")
def _clear(plan: Plan, state: State, found: int, kind: int) -> None:
    """Give a new row the prior."""
    weights = state.weights[found // WAYS, found % WAYS]
    for variant in range(weights.shape[0]):
        weights[variant, 0] = 0.0
        weights[variant, 1] = plan.priors[kind, variant]


@njit(cache=True, inline="always")
def _step(weights: Any, variant: int, variance: float, work: Work) -> None:
    """Take the step of a weight, of which this is the variance."""
    weights[variant, 0] += variance * work.steps[variant]
    weights[variant, 1] = max(variance - work.shrinks[variant] * variance * variance, SMALLEST_VARIANCE)


@njit(cache=True)
def _count(loss: int, totals: FloatArray, label: float, importance: float) -> None:
    """Count a label so many times."""
    value = max(label, 0.0) if loss == LOGISTIC else label
    totals[LABELS] += importance
    totals[LABEL_SUM] += importance * value
    totals[SQUARES] += importance * value * value


@njit(cache=True)
def _unit(loss: int, totals: FloatArray) -> float:
    """Return the unit of variances: the variance of the labels, and of a 0 beside them, for squared loss."""
    if loss == LOGISTIC:
        return 1.0
    mean = totals[LABEL_SUM] / (totals[LABELS] + 1.0)
    return max(float(totals[SQUARES] / (totals[LABELS] + 1.0) - mean * mean), 0.0)


@njit(cache=True, inline="always")
def _noise(state: State, variant: int, unit: float) -> float:
    """Return the variance of a variant's errors."""
    seen = float(state.totals[LABELS]) + FIRST_ERRORS
    noise = (float(state.squared_errors[variant]) + FIRST_ERRORS * unit) / seen
    return noise if noise > 0.0 else 1.0  # all labels are 0


@njit(cache=True)
def _logistic(score: float, label: float, importance: float, variance: float) -> tuple[float, float]:
    """Return slope and curvature of a label of the logistic loss.

    For a label that weighs more than 1, one step could take the score far beyond what the label says. So the
    slope is that at which the step, with this curvature, takes the score to its minimum of the loss and of
    the squared distance over the variance.
    """
    p = probability(score)
    curvature = importance * max(p * (1.0 - p), SMALLEST_CURVATURE)
    if importance <= 1.0:
        return importance * label * probability(-label * score), curvature
    low, high = 0.0, importance * variance  # the way that the score goes towards the label
    for _ in range(BISECTIONS):
        way = 0.5 * (low + high)
        if way < importance * variance * probability(-label * score - way):
            low = way
        else:
            high = way
    return label * low * (1.0 + curvature * variance) / variance, curvature


@njit(cache=True, inline="always")
def _replace(
    plan: Plan,
    state: State,
    work: Work,
    label: float,
    importance: float,
    former: float,
    former_importance: float,
) -> None:
    """Take a step along the difference of the slopes of two labels. What is known stays as certain."""
    unit = _unit(plan.loss, state.totals)
    for variant in range(plan.growths.shape[0]):
        score, variance = work.scores[variant], unit * work.variances[variant]
        if plan.loss == LOGISTIC:
            p = probability(score)
            curvature = importance * max(p * (1.0 - p), SMALLEST_CURVATURE)
            slope = importance * label * probability(-label * score)
            slope -= former_importance * former * probability(-former * score)
        else:
            curvature = importance / _noise(state, variant, unit)
            slope = (importance * (label - score) - former_importance * (former - score)) * (
                1.0 / _noise(state, variant, unit)
            )
        work.steps[variant] = unit * slope / (1.0 + curvature * variance)
        state.bias[variant, 0] += state.bias[variant, 1] * work.steps[variant]
    for k in range(plan.kinds.shape[0]):
        found, kind = work.rows[k], plan.kinds[k]
        if found < 0:
            continue
        for variant in range(plan.reach[kind, 0], plan.reach[kind, 1]):
            weights = state.weights[found // WAYS, found % WAYS]
            weights[variant, 0] += weights[variant, 1] * work.steps[variant]
    _count(plan.loss, state.totals, former, -former_importance)
    _count(plan.loss, state.totals, label, importance)


@njit(cache=True, inline="always")
def _keep_numbers(plan: Plan, state: State, X: FloatArray, row: int) -> None:
    """Keep the numbers of one of the first events; the last of these makes edges of them: quantiles."""
    at = state.counts[LEARNED]
    if at >= BINNED_AFTER:
        return
    for number in range(plan.numbers):
        state.first[number, at] = X[row, plan.inputs[plan.fields + plan.words + number]]
    if at == BINNED_AFTER - 1:
        for number in range(plan.numbers):
            _sort(state.first, number)
            for edge in range(BINS - 1):
                state.edges[number, edge] = state.first[number, (edge + 1) * BINNED_AFTER // BINS]
            for place in range(BINNED_AFTER):
                state.first[number, place] = 0.0


@njit(cache=True)
def _sort(numbers: FloatArray, row: int) -> None:
    """Sort a row, by insertion: it happens once."""
    for end in range(1, numbers.shape[1]):
        value, place = numbers[row, end], end
        while place > 0 and numbers[row, place - 1] > value:
            numbers[row, place] = numbers[row, place - 1]
            place -= 1
        numbers[row, place] = value
