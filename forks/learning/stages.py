"""FORKS, Algorithm 1: stage 1 until the budget is full, then stage 2, whose map changes once a cycle."""

from __future__ import annotations

from typing import Self

import numpy as np

from forks.algorithm.carry_over import carry_over, first_weights, forget, transfer
from forks.algorithm.feature_map import FeatureMap
from forks.algorithm.kernels import gaussian_matrix, precision
from forks.algorithm.kogd import Expansion, expansion_value
from forks.algorithm.newton import NewtonState
from forks.algorithm.sketched_kernel import SketchedKernel
from forks.algorithm.tracking import Tracker
from forks.algorithm.weighted import repeated_slope
from forks.arrays import FloatArray, IntArray
from forks.compiled.exponential import exponential
from forks.compiled.products import matvec
from forks.learning import event_loop
from forks.learning.events import EventSource
from forks.learning.explanation import Explanation, split
from forks.learning.health import Health, singular_values_of
from forks.learning.params import Params, params_of
from forks.learning.stored_points import NearPoint, nearest
from forks.losses import LOSSES, loss_slope, loss_value
from forks.settings import ForksSettings
from forks.state import State, StateReader

# The first events of a stream are not typical of it, so a bounded learner changes its map more often then:
# after a twentieth of the cycle, but not more than 200 events, or a twentieth of the events learned so far if
# that is more.
WARM_UP_CYCLES = 20
WARM_UP_SPEED = 20
LONGEST_FIRST_CYCLE = 200

UNWEIGHTED = np.empty(0)
NO_FORMERS = np.empty((0, 2))
"""The weights of labels that all have the weight 1."""


class Stages:
    """The state of a learner, and the steps that change it.

    Steps run in the compiled loop as long as they change only moments and Newton's state: in stage 2 until
    the map changes.

    Parameters
    ----------
    settings
        Settings of the learner, which has learned nothing yet.
    """

    def __init__(self, settings: ForksSettings) -> None:
        self._settings = settings
        self._params = params_of(settings)
        self._loss = LOSSES[settings.loss]
        self._gamma = precision(settings.width)
        self._workspace = event_loop.workspace_for(settings, self._params)
        self._own_score = np.zeros(1)
        self.updates = 0
        """Number of events learned."""
        self._since_change = 0
        self._kernel: SketchedKernel | None = None
        self._learned_before: list[int | None] = []
        start, stop = settings.kernel_columns
        self._set_hypothesis(
            event_loop.Hypothesis(
                mean=np.zeros(settings.dimension),
                squares=np.zeros(settings.dimension),
                newton=NewtonState.prior(settings.features, _prior_precisions(settings)),
                feature_map=FeatureMap(np.empty((stop - start, 0)), np.empty((0, settings.rank))),
                expansion=Expansion.empty(stop - start),
                tracker=Tracker.initial(settings.linear_features),
            )
        )

    def state(self) -> State:
        """Return the entries of `forks.Forks.state`."""
        hypothesis = self._hypothesis
        state: State = {
            "updates": self.updates,
            "since_change": self._since_change,
            "mean": hypothesis.mean.copy(),
            "squares": hypothesis.squares.copy(),
            "weights": hypothesis.newton.weights.copy(),
            "inverse_hessian": hypothesis.newton.inverse_hessian.copy(),
        }
        if self._settings.tracking:
            state |= {name: array.copy() for name, array in hypothesis.tracker._asdict().items()}
        if self._kernel is not None:
            return state | {"stage": 2} | self._kernel.state()
        points, coefficients = hypothesis.expansion
        return state | {"stage": 1, "points": points.copy(), "coefficients": coefficients.copy()}

    def health(self) -> Health:
        """Return what `forks.Forks.health` does."""
        kernel = self._kernel
        if kernel is None:
            return Health(1, self.updates, len(self._hypothesis.expansion.points))
        return Health(
            2,
            self.updates,
            kernel.stored,
            singular_values_of(kernel.eigenvalues),
            kernel.changes,
            kernel.changes if self._settings.bounded else 0,
            self._since_change,
            kernel.changes_since_refresh,
        )

    @classmethod
    def from_state(cls, settings: ForksSettings, state: State) -> Self:
        """Return stages restored from `state`; errors are those of `forks.Forks.from_state`."""
        stages = cls(settings)
        reader = StateReader(state)
        stages.updates = reader.integer("updates")
        stages._since_change = reader.integer("since_change")
        hypothesis = stages._hypothesis._replace(
            mean=reader.floats("mean", settings.dimension),
            squares=reader.floats("squares", settings.dimension),
            newton=NewtonState(
                reader.floats("weights", settings.features),
                reader.floats("inverse_hessian", settings.features, settings.features),
            ),
        )
        if settings.tracking:
            tracker = Tracker(
                reader.floats("corrections", 3, settings.linear_features),
                reader.floats("shares", 4),
                reader.floats("covariance", settings.linear_features, settings.linear_features),
                reader.floats("phase", 1),
            )
            hypothesis = hypothesis._replace(tracker=tracker)
        if reader.integer("stage") == 1:
            points = reader.floats("points", None, hypothesis.expansion.points.shape[1])
            expansion = Expansion(points, reader.floats("coefficients", len(points)))
            stages._set_hypothesis(hypothesis._replace(expansion=expansion))
        else:
            stages._kernel = SketchedKernel.from_state(settings, reader)
            stages._set_hypothesis(hypothesis._replace(feature_map=stages._kernel.feature_map))
        stages._learned_before = [None] * len(stages._stored)
        return stages

    def run(
        self,
        events: EventSource,
        order: IntArray,
        y: FloatArray,
        importances: FloatArray = UNWEIGHTED,
        formers: FloatArray = NO_FORMERS,
    ) -> FloatArray:
        """Run the steps of ``order``: i scores event i, n + i learns it, 2 n + i replaces its label.

        Parameters
        ----------
        events
            Source of n events.
        order : ndarray, shape (steps,), int64
            Steps to run.
        y : ndarray, shape (steps,), float64
            Labels of the steps' events, read only at steps that learn or replace.
        importances : ndarray, shape (steps,) or (0,), float64
            Weights of the labels, all 1 if there are none. A label of weight 0 is not learned.
        formers : ndarray, shape (steps, 2) or (0, 2), float64
            Former labels and their weights, read only at steps that replace.

        Returns
        -------
        ndarray, shape (steps,), float64
            Score of each step; for a step that learns, the score before learning.
        """
        out = np.empty(len(order))
        if len(importances):
            learns = (order >= len(events)) & (order < 2 * len(events))
            order = np.where((importances == 0.0) & learns, order - len(events), order)
        start = 0
        while start < len(order):
            stop = event_loop.segment_end(order, len(events), start, self.learns_until_map_change())
            if start < stop:
                part = slice(start, stop)
                start += self.run_on_fixed_map(
                    events, order[part], y[part], importances[part], out[part], formers[part]
                )
            else:
                part = slice(start, stop := start + 1)
                self.learn_changing_map(events, order[part], y[part], importances[part], out[part])
                start = stop
        return out

    def run_on_fixed_map(  # noqa: PLR0917 - those of `run`
        self,
        events: EventSource,
        order: IntArray,
        y: FloatArray,
        importances: FloatArray,
        out: FloatArray,
        formers: FloatArray = NO_FORMERS,
    ) -> int:
        """Run steps that do not change the map or the expansion; return their number, at least one."""
        part = events.steps_for(order, self._hypothesis.feature_map)
        updates = event_loop.run(
            *part,
            y,
            importances,
            formers,
            self._params,
            self.updates,
            *self._arrays,
            self._workspace,
            self._own_score,
            out,
        )
        self.note_updates(updates)
        return len(part.order)

    @property
    def loop_arrays(self) -> tuple[Params, tuple[FloatArray, ...]]:
        """The parameters of the compiled loop, and those of its arrays that stand together."""
        return self._params, (*self._arrays, self._workspace, self._own_score)

    @property
    def landmarks(self) -> FloatArray:
        """The landmarks of the map, (kernel columns, s_m); none in stage 1."""
        return self._hypothesis.feature_map.landmarks

    def note_updates(self, updates: int) -> None:
        """Note how many events the compiled loop has learned in all, none of which changed the map."""
        self._since_change += updates - self.updates
        self.updates = updates

    def explain(self, event: EventSource) -> Explanation:
        """Return the terms of the score of the only event given."""
        score = np.empty(1)
        self.run_on_fixed_map(event, np.zeros(1, dtype=np.int64), np.empty(0), UNWEIGHTED, score)
        row, settings, hypothesis = event.row(0), self._settings, self._hypothesis
        z = np.empty(settings.features)
        event_loop.last_features(self._params, self._arrays[3], self._workspace, z)
        offset = 0.0 if settings.offset_column is None else float(row[settings.offset_column])
        expansion = 0.0
        if len(hypothesis.expansion.points):
            expansion = float(expansion_value(self._kernel_point(row), hypothesis.expansion, self._gamma))
        return split(
            settings,
            float(score[0]),
            z=z,
            weights=hypothesis.newton.weights,
            offset=max(min(offset, settings.clip), -settings.clip),
            expansion=expansion,
            tracker=hypothesis.tracker,
        )

    def variances(self, events: EventSource) -> FloatArray:
        """Return what `forks.Forks.variances` does, (n,)."""
        out, start = np.empty(len(events)), 0
        mean, squares, _, inverse_hessian, landmarks, Z = self._arrays[:6]
        while start < len(out):
            part = events.steps_for(np.arange(start, len(out)), self._hypothesis.feature_map)
            stop = start + len(part.order)
            event_loop.variances(
                *part,
                self._params,
                self.updates,
                mean,
                squares,
                inverse_hessian,
                landmarks,
                Z,
                self._workspace,
                out[start:stop],
            )
            start = stop
        if self._kernel is None:
            out += 1.0 / self._settings.alpha  # the kernel part's prior: k(x, x) is 1
        return out

    def nearest(self, event: EventSource, count: int) -> list[NearPoint]:
        """Return the stored points that are nearest to the only event given."""
        point = self._kernel_point(event.row(0))
        return nearest(point, self._stored, self._learned_before, self._gamma, count)

    @property
    def stored_events(self) -> tuple[int | None, ...]:
        """Of each stored point, the number of events learned before it; None where that is not known."""
        return tuple(self._learned_before)

    @property
    def _stored(self) -> FloatArray:
        """The stored points, the oldest first, (n, kernel columns)."""
        return self._hypothesis.expansion.points if self._kernel is None else self._kernel.points

    def _set_hypothesis(self, hypothesis: event_loop.Hypothesis) -> None:
        self._hypothesis, self._arrays = hypothesis.aligned()

    def learns_until_map_change(self) -> int:
        """Return how many of the next events change only moments and Newton's state when they are learned."""
        return 0 if self._kernel is None else self._cycle() - self._since_change

    def _cycle(self) -> int:
        """Return the current number of learned events from one change of the map to the next."""
        cycle = self._settings.cycle
        if not self._settings.bounded:
            return cycle
        first = max(1, min(cycle // WARM_UP_SPEED, LONGEST_FIRST_CYCLE))
        return min(cycle, max(first, self.updates // WARM_UP_CYCLES))

    def learn_changing_map(
        self, events: EventSource, order: IntArray, y: FloatArray, importances: FloatArray, out: FloatArray
    ) -> None:
        """Learn one event, the only step given, which also changes the map or the expansion."""
        row = events.row(int(order[0]) - len(events))
        if self._kernel is None and len(self._hypothesis.expansion.points) < self._settings.budget:
            point = self._kernel_point(row)
            self.run_on_fixed_map(events, order, y, importances, out)
            self._descend(point, self._own_score[0], y[0], importances[0] if len(importances) else 1.0)
        else:
            self.run_on_fixed_map(events, order - len(events), y, importances, out)
            score = out[0]  # with the old map: no prediction was made with the new one
            self._change_map(row)
            self.run_on_fixed_map(events, order, y, importances, out)
            out[0] = score

    def _descend(self, point: FloatArray, score: float, label: float, importance: float) -> None:
        """Apply stage 1's step of KOGD; the linear part, if any, has already learned from the same loss."""
        slope = loss_slope(self._loss, score, label)
        if importance != 1.0:
            slope = repeated_slope(self._loss, score, label, importance, self._settings.step)
        store = loss_value(self._loss, score, label) > 0.0
        if store:
            self._learned_before.append(self.updates - 1)
        expansion = self._hypothesis.expansion.descend(
            point,
            slope,
            store=store,
            step=self._settings.step,
            decay=self._settings.decay,
        )
        # The other arrays stay as they are.
        self._hypothesis = self._hypothesis._replace(expansion=expansion)
        self._arrays = (*self._arrays[:6], *expansion, *self._arrays[8:])

    def _kernel_point(self, x: FloatArray) -> FloatArray:
        """Return the point to store for the row ``x``, (kernel columns,)."""
        point: FloatArray = event_loop.kernel_point(x, self._params, self.updates, *self._arrays[:2])
        return point

    def _change_map(self, x: FloatArray) -> None:
        """Make the first map, or change it with ``x`` as the newest stored point; carry over or reset."""
        before = self._hypothesis
        if self._kernel is None:
            self._kernel = SketchedKernel.of(before.expansion.points, self._settings)
            newton = self._first_newton(before, self._kernel)
        else:
            newton = self._next_newton(before.newton, self._kernel, self._kernel_point(x))
            self._learned_before.append(self.updates)
            del self._learned_before[: -self._kernel.stored]  # those of evicted points
        self._set_hypothesis(
            before._replace(
                newton=newton,
                feature_map=self._kernel.feature_map,
                expansion=Expansion.empty(before.expansion.points.shape[1]),
            )
        )
        self._since_change = 0

    def _first_newton(self, before: event_loop.Hypothesis, kernel: SketchedKernel) -> NewtonState:
        """Return Newton's state for the first map, with stage 1's values at the stored points."""
        if not self._settings.carry_over:
            return NewtonState.prior(self._settings.features, _prior_precisions(self._settings))
        points, coefficients = before.expansion
        values = matvec(gaussian_matrix(points, points, self._gamma), coefficients)
        return first_weights(before.newton, values, kernel.features())

    def _next_newton(self, before: NewtonState, kernel: SketchedKernel, point: FloatArray) -> NewtonState:
        """Change the map and return Newton's state for it, carried over or reset."""
        if not self._settings.carry_over:
            kernel.change(point)
            return NewtonState.prior(self._settings.features, _prior_precisions(self._settings))
        old = kernel.features_with(point)
        kernel.change(point)
        newton = carry_over(before, transfer(old, kernel.features()), self._settings.alpha)
        share = exponential(-self._since_change / self._settings.memory)
        return forget(newton, share, _prior_precisions(self._settings))


def _prior_precisions(settings: ForksSettings) -> FloatArray:
    """Return the prior precision of each weight, (features,), linear part first."""
    linear = np.full(settings.linear_features, settings.linear_precision)
    return np.concatenate([linear, np.full(settings.rank, settings.alpha)])
