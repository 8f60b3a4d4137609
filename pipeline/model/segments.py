"""The compiled loop of a model: statistics, features, learner and label policy, segment by segment.

A policy decides from the score of a prediction whether its label is learned. So the steps of a batch are run
in segments: one ends before a label of a prediction that is made in it. Without such a policy, a batch is one
segment. A run in segments has the bits of one in one.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit
from forks.learning.learner_run import LearnerArrays, run_until_change
from forks.sparse.loop import SparseArrays, mix_dense, run_sparse
from pipeline.features.statistics_loop import StatisticsArrays, make_features, run_statistics
from pipeline.model.label_policy import PreparedPolicy, decide

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

NOTHING, LEARNED = -1, -2
"""What a label replaces, other than that of a step: nothing, or a label that was learned before."""
TAKEN, BEGIN, AT, END, FIRST, NEXT = range(6)
"""Places in `Kept.places`. Of the steps planned: those taken. Of those kept: the first of the segment, the
next one that the learner runs, and the one behind the segment's last. Of the interactions: the first one that
the segment predicts, and the one behind the last."""


class Planned(NamedTuple):
    """Steps over n interactions, some of which turn out to be left out or to replace a label.

    Attributes
    ----------
    order : ndarray, shape (steps,), int64
        i predicts interaction i, n + i learns its label, 2 n + i replaces it.
    origins : ndarray, shape (steps,), int64
        Row of the prediction: other than i where i is there for one more label of it.
    came : ndarray, shape (steps,), bool
        Whether the label came.
    replaces : ndarray, shape (steps,), int64
        The step whose label one that learns replaces, if that was learned; else `NOTHING` or `LEARNED`.
    learned : ndarray, shape (steps,), bool
        Whether each is run, as far as the policy leaves it; written.
    """

    order: Integers
    origins: Integers
    came: Flags
    replaces: Integers
    learned: Flags


class Kept(NamedTuple):
    """The steps that are run.

    Attributes
    ----------
    places : ndarray, shape (6,), int64
        How far the loop has come: see `TAKEN`.
    order : ndarray, shape (steps,), int64
        Steps, as those of `Planned.order`.
    origins : ndarray, shape (steps,), int64
        Row of the prediction of each.
    of_learner : ndarray, shape (steps,), int64
        The same for the learner, which does not learn a label of weight 0.
    labels : ndarray, shape (steps,), float64
        What the learner is taught.
    importances : ndarray, shape (steps,) or (0,), float64
        Weights of the labels.
    formers : ndarray, shape (steps, 2) or (0, 2), float64
        Labels that are replaced, and their weights.
    evicted : ndarray, shape (tables, steps), int64
        See `pipeline.features.statistics_loop.run_statistics`.
    found : ndarray, shape (steps,), float64
        Scores.
    """

    places: Integers
    order: Integers
    origins: Integers
    of_learner: Integers
    labels: Floats
    importances: Floats
    formers: Floats
    evicted: Integers
    found: Floats


class Rows(NamedTuple):
    """Interactions, row by row.

    Attributes
    ----------
    features : ndarray, shape (n, features), float64
        Their features; the running ones of predictions are written.
    x : ndarray, shape (n, columns), float64
        What the learner sees; may be the same.
    running, first_running
        How many running features `x` has, the first ones, and the column of the first one.
    y : ndarray, shape (n,), float64
        What the learner is taught.
    importances : ndarray, shape (n,) or (0,), float64
        Weights of the labels.
    formers : ndarray, shape (n, 2) or (0, 2), float64
        Labels that are replaced, and their weights.
    scores : ndarray, shape (n,), float64
        Written.
    sparse
        Whether the learner has a sparse part.
    """

    features: Floats
    x: Floats
    running: int
    first_running: int
    y: Floats
    importances: Floats
    formers: Floats
    scores: Floats
    sparse: bool


Plain: TypeAlias = tuple[Any, ...]
"""A named tuple as a plain one, whose type Numba determines faster."""


@njit(cache=True, nogil=True)
def run_segments(
    plain_planned: Plain,
    plain_policy: Plain,
    plain_kept: Plain,
    plain_rows: Plain,
    statistics: StatisticsArrays,
    sparse: SparseArrays,
    learner: LearnerArrays,
    counts: Integers,
) -> bool:
    """Run the steps of `Planned` up to one that may change the learner's map; return whether there is one.

    It is the step at `AT`. If it does, run it elsewhere, and move `AT` on. Then call this again.

    Parameters
    ----------
    plain_planned, plain_policy, plain_kept, plain_rows
        See `Planned`, `pipeline.model.label_policy.PreparedPolicy`, `Kept` and `Rows`.
    statistics
        `pipeline.features.statistics_run.StatisticsRun.arrays`.
    sparse
        `forks.sparse.SparsePart.arrays`.
    learner, counts
        Those of a `forks.learning.learner_run.LearnerRun`.
    """
    planned, policy, kept = Planned(*plain_planned), PreparedPolicy(*plain_policy), Kept(*plain_kept)
    rows, places = Rows(*plain_rows), kept.places
    while True:
        places[AT] = run_until_change(
            learner,
            kept.of_learner,
            places[AT],
            places[END],
            kept.labels,
            kept.importances,
            kept.formers,
            counts,
            kept.found,
        )
        if places[AT] < places[END]:
            return True
        _finish_segment(policy, kept, rows, sparse)
        if places[TAKEN] == planned.order.shape[0]:
            return False
        _begin_segment(planned, policy, kept, rows, statistics, sparse)


@njit(cache=True, inline="always")
def _begin_segment(
    planned: Planned,
    policy: PreparedPolicy,
    kept: Kept,
    rows: Rows,
    statistics: StatisticsArrays,
    sparse: SparseArrays,
) -> None:
    """Choose the steps of the next segment, and run the statistics and make the features of it."""
    places = kept.places
    taken, begin, first = places[TAKEN], places[END], places[NEXT]
    step, end, behind = taken, begin, first
    while step < planned.order.shape[0]:
        origin = planned.origins[step]
        if planned.order[step] < rows.y.shape[0]:
            behind = max(behind, origin + 1)
        elif policy.looks and origin >= first:
            break
        end = _keep(planned, policy, kept, rows, step, end)
        step += 1
    places[TAKEN], places[BEGIN], places[END], places[FIRST], places[NEXT] = step, begin, end, first, behind
    run_statistics(statistics, kept.order, begin, end, kept.evicted)
    make_features(statistics, first, rows.features[first:behind])
    if rows.sparse:
        run_sparse(
            sparse,
            rows.features,
            rows.y.shape[0],
            kept.order,
            kept.origins,
            begin,
            end,
            kept.labels,
            kept.importances,
            kept.formers,
        )
    for row in range(first, behind):
        for column in range(rows.running):
            rows.x[row, rows.first_running + column] = rows.features[row, column]
    for number in range(taken, step):
        row = planned.order[number] % rows.y.shape[0]
        if row != planned.origins[number]:
            for column in range(rows.x.shape[1]):
                rows.x[row, column] = rows.x[planned.origins[number], column]


@njit(cache=True)
def _keep(planned: Planned, policy: PreparedPolicy, kept: Kept, rows: Rows, step: int, end: int) -> int:
    """Append a step to those that are kept, unless nothing is learned; return the number of these."""
    n, action = rows.y.shape[0], planned.order[step]
    if action >= n:
        if policy.asked[planned.origins[step]] == 0 and not (policy.learns_unasked and planned.came[step]):
            planned.learned[step] = False
        if not planned.learned[step]:
            return end
        former = planned.replaces[step]
        if former == LEARNED or (former >= 0 and planned.learned[former]):
            action += n
    row = action % n
    kept.order[end] = kept.of_learner[end] = action
    kept.origins[end] = planned.origins[step]
    kept.labels[end] = rows.y[row]
    if rows.importances.shape[0] > 0:
        kept.importances[end] = rows.importances[row]
        if rows.importances[row] == 0.0 and n <= action < 2 * n:
            kept.of_learner[end] = row
    for column in range(2 if rows.formers.shape[0] > 0 else 0):
        kept.formers[end, column] = rows.formers[row, column]
    return end + 1


@njit(cache=True)
def _finish_segment(policy: PreparedPolicy, kept: Kept, rows: Rows, sparse: SparseArrays) -> None:
    """Keep the scores of a segment's predictions, and decide whose label is asked for."""
    places = kept.places
    if rows.sparse:
        mix_dense(
            sparse,
            rows.features,
            rows.y.shape[0],
            kept.order,
            kept.origins,
            places[BEGIN],
            places[END],
            kept.labels,
            kept.importances,
            kept.found,
        )
    for step in range(places[BEGIN], places[END]):
        if kept.order[step] < rows.y.shape[0]:
            rows.scores[kept.order[step]] = kept.found[step]
    if policy.looks:
        decide(policy, rows.scores, rows.features, places[FIRST], places[NEXT])
