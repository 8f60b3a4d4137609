"""Scores of the variants of the sparse part, compiled: where an event's weights are, and their sums."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forks.arrays import FloatArray, IntArray
from forks.compiled.logarithm import logarithm
from forks.compiled.simd import prefetch
from forks.jit import njit
from forks.losses import LOGISTIC
from forks.sparse.hashing import key_of, pair_of
from forks.sparse.mixing import mixed_score
from forks.sparse.table import NO_ROW, WAYS, bucket_of, find

BINS: Final = 16
"""Bins of a number."""
BINNED_AFTER: Final = 500
"""Learned events whose numbers decide where the bins are; before, all numbers are in one bin."""
ABSENT: Final = -2
"""Stands for the row of a word that an event has not."""
DECIMALS: Final = 1e6
"""Scores that are log-odds have six decimals, as records keep them."""
FIELD, WORD, BIN, PAIR, BINNED_PAIR = KINDS = range(5)
"""Kinds of weights: of a category, a word, a bin, a cross of categories, and a cross with a bin."""
NO_MEMBER: Final = -1
"""Stands for the third member of a pair."""
LEARNED, USED = range(2)
"""Places in `State.counts`: learned events, and rows of the table in use."""
LABELS, LABEL_SUM, SQUARES = range(3)
"""Places in `State.totals`: number, sum and sum of squares of labels, 0 and 1 with the logistic loss."""


class Plan(NamedTuple):
    """The settings as compiled code reads them, for v variants and k active weights of an event.

    Attributes
    ----------
    loss
        Number of the loss in `forks.losses.LOSSES`.
    inputs : ndarray, shape (fields + words + numbers,), int64
        Columns of an event's categories, words and numbers.
    base
        Column of a score that all variants start from; -1 for none.
    fields, words, numbers
        How many of each there are.
    first_score
        Column of the first score.
    kinds : ndarray, shape (k,), int64
        Kind of each active weight, the bias aside.
    members : ndarray, shape (k, 3), int64
        Of a cross, the places among the active weights of what is crossed; `NO_MEMBER` behind two.
    reach : ndarray, shape (kinds, 2), int64
        First variant that has weights of a kind, and the one behind the last.
    priors : ndarray, shape (kinds, v), float64
        Prior variances.
    growths : ndarray, shape (v,), float64
        What variances are multiplied by with each use.
    places : ndarray, shape (v,), int64
        Where the variants' scores stand among the scores.
    mixture, constant, own
        Where the other scores stand.
    experts : ndarray, shape (e,), int64
        Which scores the final mixture consists of.
    """

    loss: int
    inputs: IntArray
    base: int
    fields: int
    words: int
    numbers: int
    first_score: int
    kinds: IntArray
    members: IntArray
    reach: IntArray
    priors: FloatArray
    growths: FloatArray
    places: IntArray
    mixture: int
    constant: int
    own: int
    experts: IntArray


class State(NamedTuple):
    """The state, of v variants and e experts.

    Attributes
    ----------
    tags, clocks, weights
        See `forks.sparse.table.Table`.
    bias : ndarray, shape (v, 2), float64
        Weight and variance of each variant's bias.
    totals : ndarray, shape (3,), float64
        See `LABELS`.
    squared_errors : ndarray, shape (v,), float64
        Sums of the variants' squared errors; not used with the logistic loss.
    shares : ndarray, shape (v + 1,), float64
        Weights of the variants and of the constant in their mixture.
    errors : ndarray, shape (2,), float64
        See `forks.sparse.mixing.reweigh`.
    final_shares : ndarray, shape (e,), float64
        Weights in the final mixture.
    final_errors : ndarray, shape (2,), float64
        See `forks.sparse.mixing.reweigh`.
    edges : ndarray, shape (numbers, BINS - 1), float64
        Edges of the bins.
    first : ndarray, shape (numbers, BINNED_AFTER), float64
        The first numbers that were learned.
    counts : ndarray, shape (2,), int64
        See `LEARNED`.
    """

    tags: NDArray[np.uint32]
    clocks: NDArray[np.uint32]
    weights: NDArray[np.float32]
    bias: FloatArray
    totals: FloatArray
    squared_errors: FloatArray
    shares: FloatArray
    errors: FloatArray
    final_shares: FloatArray
    final_errors: FloatArray
    edges: FloatArray
    first: FloatArray
    counts: IntArray


class Work(NamedTuple):
    """Scratch memory, of k active weights and v variants.

    Attributes
    ----------
    keys : ndarray, shape (k,), uint64
        Keys of the active weights.
    rows : ndarray, shape (k,), int64
        Their rows in the table.
    scores, variances : ndarray, shape (v,), float64
        Scores of the variants, and the sums of the variances of their weights.
    steps, shrinks : ndarray, shape (v,), float64
        What each variant's weights change by, for each unit of their variance, and their variances, for each
        unit of its square.
    columns : ndarray, shape (v + 1,), int64
        Which scores the mixture consists of.
    """

    keys: NDArray[np.uint64]
    rows: IntArray
    scores: FloatArray
    variances: FloatArray
    steps: FloatArray
    shrinks: FloatArray
    columns: IntArray


@njit(cache=True, inline="always")
def find_rows(plan: Plan, state: State, work: Work, X: FloatArray, row: int) -> None:
    """Find the rows of an event's active weights.

    Memory answers to many questions at once, so all are asked before the first answer is needed.
    """
    inputs, active, buckets = plan.inputs.shape[0], plan.kinds.shape[0], state.tags.shape[0]
    binned = state.counts[LEARNED] >= BINNED_AFTER
    for k in range(inputs):
        value, field = X[row, plan.inputs[k]], k
        if plan.fields <= k < plan.fields + plan.words:
            field = plan.fields  # a word weighs the same wherever it stands
        elif k >= plan.fields + plan.words:
            value = _bin(state.edges, k - plan.fields - plan.words, value) if binned else float(BINS)
        work.keys[k] = key_of(value, field)
        prefetch(state.tags, (bucket_of(work.keys[k], buckets), 0))
    for k in range(inputs, active):
        work.keys[k] = pair_of(work.keys[plan.members[k, 0]], work.keys[plan.members[k, 1]])
        if plan.members[k, 2] != NO_MEMBER:
            work.keys[k] = pair_of(work.keys[k], work.keys[plan.members[k, 2]])
        prefetch(state.tags, (bucket_of(work.keys[k], buckets), 0))
    for k in range(active):
        found = find(work.keys[k], state.tags)
        if found >= 0:
            ask_for(state, found)
        work.rows[k] = found
    for k in range(plan.fields, plan.fields + plan.words):
        if X[row, plan.inputs[k]] == 0.0:
            work.rows[k] = ABSENT


@njit(cache=True, inline="always")
def ask_for(state: State, found: int) -> None:
    """Ask memory for the weights of a row."""
    bucket, place = found // WAYS, found % WAYS
    prefetch(state.weights, (bucket, place, 0, 0))
    prefetch(state.weights, (bucket, place, state.weights.shape[2] - 1, 1))


@njit(cache=True, inline="always")
def score_variants(plan: Plan, state: State, work: Work, X: FloatArray, row: int) -> None:
    """Compute the scores of the variants, and the sums of their variances."""
    base = X[row, plan.base] if plan.base >= 0 else 0.0
    for variant in range(plan.growths.shape[0]):
        work.scores[variant] = base + state.bias[variant, 0]
        work.variances[variant] = state.bias[variant, 1]
    for k in range(plan.kinds.shape[0]):
        kind, found = plan.kinds[k], work.rows[k]
        if found >= 0:
            bucket, place = found // WAYS, found % WAYS
            for variant in range(plan.reach[kind, 0], plan.reach[kind, 1]):
                work.scores[variant] += state.weights[bucket, place, variant, 0]
                work.variances[variant] += variance_of(plan, state, kind, found, variant)
        elif found == NO_ROW:
            for variant in range(plan.reach[kind, 0], plan.reach[kind, 1]):
                work.variances[variant] += plan.priors[kind, variant]


@njit(cache=True, inline="always")
def variance_of(plan: Plan, state: State, kind: int, found: int, variant: int) -> float:
    """Return the variance of a weight as it is used: a fading one grows, up to the prior."""
    grown = float(state.weights[found // WAYS, found % WAYS, variant, 1] * plan.growths[variant])
    return min(float(plan.priors[kind, variant]), grown)


@njit(cache=True, inline="always")
def write_scores(plan: Plan, state: State, work: Work, X: FloatArray, row: int) -> None:
    """Write the scores of the variants, of the constant and of their mixture."""
    scores = X[row, plan.first_score :]
    for variant in range(plan.places.shape[0]):
        scores[plan.places[variant]] = rounded(plan.loss, work.scores[variant])
    scores[plan.constant] = rounded(plan.loss, _constant(plan.loss, state.totals))
    mixture = mixed_score(plan.loss, scores, work.columns, state.shares)
    scores[plan.mixture] = rounded(plan.loss, mixture)


@njit(cache=True, nogil=True)
def weights_in_use(
    arrays: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]], X: FloatArray, found: FloatArray
) -> None:
    """Write the active weights of the event X[0], shape (k,): means over the variants, by their shares."""
    plan, state, work = Plan(*arrays[0]), State(*arrays[1]), Work(*arrays[2])
    find_rows(plan, state, work, X, 0)
    for k in range(plan.kinds.shape[0]):
        kind, row = plan.kinds[k], work.rows[k]
        found[k] = 0.0
        if row >= 0:
            for variant in range(plan.reach[kind, 0], plan.reach[kind, 1]):
                found[k] += state.shares[variant] * state.weights[row // WAYS, row % WAYS, variant, 0]


@njit(cache=True)
def _constant(loss: int, totals: FloatArray) -> float:
    """Return the mean label, or the log-odds of the share of positive ones."""
    if loss == LOGISTIC:
        p = (totals[LABEL_SUM] + 0.5) / (totals[LABELS] + 1.0)
        return float(logarithm(p / (1.0 - p)))
    return float(totals[LABEL_SUM] / max(totals[LABELS], 1.0))


@njit(cache=True)
def rounded(loss: int, score: float) -> float:
    """Return a score as it is written."""
    return float(np.rint(score * DECIMALS) / DECIMALS) if loss == LOGISTIC else score


@njit(cache=True)
def _bin(edges: FloatArray, number: int, value: float) -> float:
    """Return the bin of a number: how many edges lie below it."""
    below = 0
    for edge in range(edges.shape[1]):
        below += value > edges[number, edge]
    return float(below)
