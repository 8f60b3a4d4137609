"""Steps of a learner that compiled code of its caller runs, from one change of the map to the next.

A caller that decides from scores what is learned next cannot give all steps at once, and a call from Python
for each few of them would take longer than they do. See `forks.learning.event_loop` before changing compiled
functions.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from forks.algorithm.kernels import gaussian_row
from forks.arrays import FloatArray, IntArray
from forks.jit import ZERO, njit
from forks.learning.event_loop import run, segment_end
from forks.learning.events import NO_FACTORS, NO_SLOTS, STEPS_AT_A_TIME, Rows
from forks.learning.stages import Stages

LearnerArrays: TypeAlias = tuple[Any, ...]
"""What `run_until_change` needs of a learner and its events: `LearnerRun.arrays`."""

LEARNED, LEFT = range(2)
"""Places in `LearnerRun.counts`: events learned, and how many more can be before one changes the map."""


class LearnerRun:
    """Steps over n events: see `forks.Forks.begin`.

    `run_until_change` runs the steps up to one that may change the map. If `changes_map` says that it does,
    `change_map` runs it, and so on.

    Parameters
    ----------
    stages
        The state of the learner; it changes.
    events
        The events.
    y : ndarray, shape (n,), float64
        Their labels.
    importances : ndarray, shape (n,) or (0,), float64
        Weights of the labels.
    formers : ndarray, shape (n, 2) or (0, 2), float64
        Former labels and their weights.

    Attributes
    ----------
    y, importances, formers
        As above.
    counts : ndarray, shape (2,), int64
        See `LEARNED`.
    """

    def __init__(
        self, stages: Stages, events: Rows, y: FloatArray, importances: FloatArray, formers: FloatArray
    ) -> None:
        self._stages, self._events = stages, events
        self.y, self.importances, self.formers = y, importances, formers
        self.counts = np.zeros(2, dtype=np.int64)
        self._count()

    @property
    def rows(self) -> FloatArray:
        """The events, (n, columns given). A row may be changed until a step of it is run."""
        return self._events.given

    @property
    def arrays(self) -> LearnerArrays:
        """The arrays of `run_until_change`, others after each change of the map."""
        blocks, landmarks, factors, slots = self._events.blocks, NO_FACTORS, NO_FACTORS, NO_SLOTS
        if len(blocks):
            landmarks = np.ascontiguousarray(self._stages.landmarks)
            slots = np.arange(len(blocks) * STEPS_AT_A_TIME).reshape(STEPS_AT_A_TIME, len(blocks))
            factors = np.empty((slots.size, landmarks.shape[1]))
        return (
            self.rows,
            self._events.first,
            blocks,
            landmarks,
            factors,
            slots,
            *self._stages.loop_arrays,
        )

    def changes_map(self) -> bool:
        """Note what was learned, and return whether the next event that is learned changes the map.

        Otherwise the cycle has become longer meanwhile, and `run_until_change` goes on.
        """
        self._stages.note_updates(int(self.counts[LEARNED]))
        self._count()
        return not self.counts[LEFT]

    def change_map(self, step: int) -> float:
        """Run the step that changes the map, and return its score."""
        out, event, none = np.empty(1), np.array([step % len(self.y)]), slice(0)
        importances = self.importances[event if len(self.importances) else none]
        self._stages.learn_changing_map(
            self._events, np.array([step], dtype=np.int64), self.y[event], importances, out
        )
        self._count()
        return float(out[0])

    def finish(self) -> None:
        """Note what was learned, after the last step."""
        self._stages.note_updates(int(self.counts[LEARNED]))

    def _count(self) -> None:
        self.counts[:] = self._stages.updates, self._stages.learns_until_map_change()


@njit(cache=True, inline="always")  # compiled once, where it is called
def run_until_change(
    learner: LearnerArrays,
    order: IntArray,
    begin: int,
    end: int,
    labels: FloatArray,
    importances: FloatArray,
    formers: FloatArray,
    counts: IntArray,
    out: FloatArray,
) -> int:
    """Run steps up to one that may change the map; return its place in the order, or the end without one.

    Parameters
    ----------
    learner
        `LearnerRun.arrays`.
    order : ndarray, shape (steps,), int64
        Steps: i scores event i, n + i learns it, 2 n + i replaces its label. An event whose label weighs 0
        is scored instead of learned.
    begin, end
        Those of the order that are run.
    labels, importances, formers
        Of the steps' events, as those of `LearnerRun`.
    counts
        Those of the run; changed.
    out : ndarray, shape (steps,), float64
        Score of each step; for a step that learns, the score before learning.
    """
    X, first, blocks, landmarks, factors, slots, params, others = learner
    stop = begin + segment_end(order[begin:end], X.shape[0], ZERO, counts[LEFT])
    while begin < stop:
        part = stop
        if blocks.shape[0] > 0:
            part = min(stop, begin + slots.shape[0])
            _fill_factors(X, order[begin:part], blocks, landmarks, params[0].gamma, factors)
        updates = run(  # type: ignore[call-arg]  # it has as many parameters as there are others
            X,
            first,
            factors,
            slots,
            order[begin:part],
            labels[begin:part],
            importances[begin:part],
            formers[begin:part],
            params,
            counts[LEARNED],
            *others,
            out[begin:part],
        )
        counts[LEFT] -= updates - counts[LEARNED]
        counts[LEARNED] = updates
        begin = part
    return stop


@njit(cache=True)
def _fill_factors(
    X: FloatArray,
    order: IntArray,
    blocks: IntArray,
    landmarks: FloatArray,
    gamma: float,
    factors: FloatArray,
) -> None:
    """Compute the factors of the steps' entity blocks, those of a step one after the other."""
    edge = blocks[0, 0]
    for step in range(order.shape[0]):
        event = order[step] % X.shape[0]
        for b in range(blocks.shape[0]):
            start, stop = blocks[b, 0], blocks[b, 1]
            block = landmarks[start - edge : stop - edge]
            gaussian_row(X[event, start:stop], block, gamma, factors[step * blocks.shape[0] + b])
