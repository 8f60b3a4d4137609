"""FORKS: fast second-order online kernel learning with incremental sketches."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from forks import rounds
from forks.arrays import FloatArray, IntArray
from forks.blas import on_one_thread
from forks.carry_over import carry_over, first_weights, forget, transfer
from forks.checks import check_label, check_labels, check_matrix, check_order, check_vector
from forks.entities import EntityEvents
from forks.events import EventSource, Rows
from forks.feature_map import FeatureMap
from forks.kernels import gaussian_matrix, precision
from forks.kogd import Expansion
from forks.losses import LOSSES, loss_slope, loss_value
from forks.newton import NewtonState
from forks.rule import rule_of
from forks.settings import ForksSettings
from forks.sketched_kernel import SketchedKernel
from forks.state import State, StateReader

# The first events of a stream are not typical of it, so a bounded learner changes its map faster then: at
# first ten times as fast, and no later than when a twentieth of what was learned so far came since.
WARM_UP_CYCLES = 20
WARM_UP_SPEED = 10

# The steps of `Forks.walk` for one event.
SCORE, LEARN = np.array([0]), np.array([1])
NO_LABELS = np.empty(0)


class Forks:
    """A second-order online kernel learner whose time and memory need not grow with the stream.

    Stage 1 stores the points that had a loss and learns by kernelized gradient descent. When the
    budget is full, the stored points' kernel matrix is sketched, and an explicit feature map made of
    the sketch takes over: Online Newton Step learns on its features. Once a cycle the newest point
    enters the sketch and the map changes.

    Learners with the same settings that learned the same events in the same order have the same bits,
    whether the events came one by one or in batches, and whether or not one of them was saved with
    `state` and restored with `from_state` on the way. (This holds on one kind of processor: the change of
    the map, once a cycle, calls LAPACK, on one thread. Nothing else does.)

    Parameters
    ----------
    settings : a preset of `ForksSettings`, with what differs

    References
    ----------
    FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, Algorithm 1.

    Examples
    --------
    One event at a time:

    >>> learner = Forks(ForksSettings.practical(2))
    >>> round(learner.learn_one([1.0, 0.5], 1), 4)  # the logistic loss of a score of 0
    0.6931
    >>> learner.predict_one([1.0, 0.5]) > 0
    True

    Many, with the same bits:

    >>> X, y = [[0.0, 1.0], [2.0, 0.5], [1.5, 0.5]], [-1, 1, 1]
    >>> other = learner.clone()
    >>> learner.predict_and_learn_many(X, y).shape
    (3,)
    >>> losses = other.learn_many(X, y)
    >>> bool((other.predict_many(X) == learner.predict_many(X)).all())
    True
    >>> learner.updates
    4

    Saved and restored:

    >>> restored = Forks.from_state(learner.settings, learner.state())
    >>> restored.predict_one([1.0, 1.0]) == learner.predict_one([1.0, 1.0])
    True

    A regression predicts numbers:

    >>> learner = Forks(ForksSettings.practical(1, loss="squared"))
    >>> losses = learner.learn_many([[x] for x in range(60)], [x / 10 for x in range(60)])
    >>> bool(abs(learner.predict_one([59.0]) - 5.9) < 0.2)
    True
    """

    def __init__(self, settings: ForksSettings) -> None:
        self.settings = settings
        self._rule = rule_of(settings)
        self._loss = LOSSES[settings.loss]
        self._gamma = precision(settings.width)
        self._largest = settings.largest
        self._memory = rounds.memory_for(settings, self._rule)
        self._updates = 0
        self._since_change = 0
        self._kernel: SketchedKernel | None = None
        start, stop = settings.kernel_columns
        self._adopt(
            rounds.Hypothesis(
                mean=np.zeros(settings.dimension),
                squares=np.zeros(settings.dimension),
                newton=NewtonState.prior(settings.features, settings.alpha),
                feature_map=FeatureMap(np.empty((stop - start, 0)), np.empty((0, settings.rank))),
                expansion=Expansion.empty(stop - start),
            )
        )

    @property
    def updates(self) -> int:
        """Number of events learned."""
        return self._updates

    def predict_one(self, x: ArrayLike) -> float:
        """Return the score of ``x``, (dimension,): its sign is the label; if logistic, it is the log-odds.

        Changes nothing.

        Raises
        ------
        ValueError
            ``x`` has another shape, or a number that is not finite.
        """
        out = np.empty(1)
        self._take_alike(self._row(x), SCORE, NO_LABELS, out)
        return float(out[0])

    def predict_many(self, X: ArrayLike | EntityEvents) -> FloatArray:
        """Return the scores of the rows of ``X`` (n, dimension), with the same bits as one by one.

        In place of rows, this and the other ``_many`` methods take what `EntityTables.events` made.
        """
        events = self._events(X)
        return self._take_steps(events, np.arange(len(events)), NO_LABELS)

    def learn_one(self, x: ArrayLike, y: float) -> float:
        """Learn the label ``y`` of ``x``, (dimension,), and return the loss of the score before.

        Raises
        ------
        ValueError
            ``x`` is not as `predict_one` takes it, or ``y`` is no label for the loss. Then nothing
            has changed.
        """
        event = self._row(x)
        label = check_label("y", y, self.settings.loss)
        score = self._take_steps(event, LEARN, np.array([label]))[0]
        return float(loss_value(self._loss, score, label))

    def learn_many(self, X: ArrayLike | EntityEvents, y: ArrayLike) -> FloatArray:
        """Learn the rows of ``X`` (n, dimension) in turn; return the loss of each one's score before."""
        events = self._events(X)
        labels = check_labels("y", y, len(events), self.settings.loss)
        losses: FloatArray = rounds.loss_values(self._learn(events, labels), labels, self._loss)
        return losses

    def predict_and_learn_many(self, X: ArrayLike | EntityEvents, y: ArrayLike) -> FloatArray:
        """Predict and then learn each row of ``X`` (n, dimension) in turn; return the scores, (n,)."""
        events = self._events(X)
        return self._learn(events, check_labels("y", y, len(events), self.settings.loss))

    def walk(self, X: ArrayLike | EntityEvents, y: ArrayLike, order: ArrayLike) -> FloatArray:
        """Score and learn events in any order, with the same bits as one by one.

        Parameters
        ----------
        X : (n, dimension), or what `EntityTables.events` made
        y : (n,), labels; those of events that are not learned may be any number
        order : (steps,) integers: i scores event i by what is known then, n + i learns it. Not every event
            needs both: what is missing may be a step of another call

        Returns
        -------
        (n,) float64
            Scores; not a number where an event was not asked for.

        Raises
        ------
        ValueError
            The events, the labels of those to learn or a step are not accepted. Nothing has changed.

        Examples
        --------
        The first event's label comes after the second event was asked for:

        >>> learner = Forks(ForksSettings.practical(1))
        >>> learner.walk([[0.5], [2.0]], [1, 0], [0, 1, 2]).tolist()  # 2 learns event 0
        [0.0, 0.0]
        >>> learner.updates
        1
        """
        events = self._events(X)
        n = len(events)
        steps = check_order("order", order, n)
        labels = check_labels("y", y, n, self.settings.loss, steps[steps >= n] - n)
        found = self._take_steps(events, steps, labels[steps % n])
        scores = np.full(n, np.nan)
        asked = steps < n
        scores[steps[asked]] = found[asked]
        return scores

    def state(self) -> State:
        """Return all that the learner knows: contiguous copies of arrays, and plain numbers."""
        hypothesis = self._hypothesis
        state: State = {
            "updates": self._updates,
            "since_change": self._since_change,
            "mean": hypothesis.mean.copy(),
            "squares": hypothesis.squares.copy(),
            "weights": hypothesis.newton.weights.copy(),
            "inverse_hessian": hypothesis.newton.inverse_hessian.copy(),
        }
        if self._kernel is not None:
            return state | {"stage": 2} | self._kernel.state()
        points, coefficients = hypothesis.expansion
        return state | {"stage": 1, "points": points.copy(), "coefficients": coefficients.copy()}

    @classmethod
    def from_state(cls, settings: ForksSettings, state: State) -> Self:
        """Return the learner that `state` described. It goes on with the same bits.

        Raises
        ------
        ValueError
            ``state`` lacks an entry, or has one of another type or shape than ``settings`` ask for.
        """
        learner = cls(settings)
        reader = StateReader(state)
        learner._updates = reader.integer("updates")
        learner._since_change = reader.integer("since_change")
        hypothesis = learner._hypothesis._replace(
            mean=reader.floats("mean", settings.dimension),
            squares=reader.floats("squares", settings.dimension),
            newton=NewtonState(
                reader.floats("weights", settings.features),
                reader.floats("inverse_hessian", settings.features, settings.features),
            ),
        )
        if reader.integer("stage") == 1:
            points = reader.floats("points", None, hypothesis.expansion.points.shape[1])
            expansion = Expansion(points, reader.floats("coefficients", len(points)))
            learner._adopt(hypothesis._replace(expansion=expansion))
        else:
            learner._kernel = SketchedKernel.from_state(settings, reader)
            learner._adopt(hypothesis._replace(feature_map=learner._kernel.feature_map))
        return learner

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the learner knows; arrays that share memory would come back as strangers."""
        return self.from_state, (self.settings, self.state())

    def clone(self) -> Self:
        """Return an independent learner that knows the same."""
        return self.from_state(self.settings, self.state())

    def _adopt(self, hypothesis: rounds.Hypothesis) -> None:
        self._hypothesis, self._arrays = hypothesis.laid_out()

    def _row(self, x: ArrayLike) -> Rows:
        return Rows(check_vector("x", x, self.settings.dimension, self._largest), self.settings, self._gamma)

    def _events(self, X: ArrayLike | EntityEvents) -> EventSource:
        if isinstance(X, EntityEvents):
            return X.checked_for(self.settings)
        return Rows(check_matrix("X", X, self.settings.dimension, self._largest), self.settings, self._gamma)

    def _learn(self, events: EventSource, y: FloatArray) -> FloatArray:
        """Learn the events in turn; return the scores that they had before."""
        return self._take_steps(events, np.arange(len(events), 2 * len(events)), y)

    def _take_steps(self, events: EventSource, order: IntArray, y: FloatArray) -> FloatArray:
        """Take the steps of ``order``, as `walk` does; return each one's score, at a lesson that of before.

        Labels ``y`` (steps,) are read at lessons only.
        """
        out = np.empty(len(order))
        start = 0
        while start < len(order):
            stop = rounds.end_of_part(order, len(events), start, self._lessons_alike())
            if start < stop:
                start += self._take_alike(events, order[start:stop], y[start:stop], out[start:stop])
            else:
                stop = start + 1
                self._take_turn(events, order[start:stop], y[start:stop], out[start:stop])
                start = stop
        return out

    def _lessons_alike(self) -> int:
        """Return how many lessons from now on change only moments and Newton's state."""
        return 0 if self._kernel is None else self._cycle() - self._since_change

    def _cycle(self) -> int:
        """Return the events from one change of the map to the next, at this point of the stream."""
        cycle = self.settings.cycle
        if not self.settings.bounded:
            return cycle
        return min(cycle, max(1, cycle // WARM_UP_SPEED, self._updates // WARM_UP_CYCLES))

    def _take_alike(self, events: EventSource, order: IntArray, y: FloatArray, out: FloatArray) -> int:
        """Take steps that leave the map and the expansion alone; return how many were taken, at least one."""
        part = events.take(order, self._hypothesis.feature_map)
        updates = rounds.walk(*part, y, self._rule, self._updates, *self._arrays, self._memory, out)
        self._since_change += updates - self._updates
        self._updates = updates
        return len(part.order)

    def _take_turn(self, events: EventSource, order: IntArray, y: FloatArray, out: FloatArray) -> None:
        """Take a lesson, the only step given, that changes the map or the expansion too."""
        row = events.row(int(order[0]) - len(events))
        if self._kernel is None and len(self._hypothesis.expansion.points) < self.settings.budget:
            point = self._kernel_point(row)
            self._take_alike(events, order, y, out)
            self._descend(point, out[0], y[0])
        else:
            self._take_alike(events, order - len(events), y, out)
            score = out[0]  # of the old map; that of the new one was never given to anyone
            self._change_map(row)
            self._take_alike(events, order, y, out)
            out[0] = score

    def _descend(self, point: FloatArray, score: float, label: float) -> None:
        """Take stage 1's step of KOGD; a linear part beside it has taken its own on the sum's slope."""
        expansion = self._hypothesis.expansion.descend(
            point,
            loss_slope(self._loss, score, label),
            store=loss_value(self._loss, score, label) > 0.0,
            step=self.settings.step,
            decay=self.settings.decay,
        )
        self._adopt(self._hypothesis._replace(expansion=expansion))

    def _kernel_point(self, x: FloatArray) -> FloatArray:
        """Return what of the row ``x`` is stored, (kernel columns,)."""
        point: FloatArray = rounds.kernel_point(x, self._rule, self._updates, *self._arrays[:2])
        return point

    @on_one_thread
    def _change_map(self, x: FloatArray) -> None:
        """Make the first map, or change it with ``x`` as the newest stored point; carry over or reset."""
        before = self._hypothesis
        newton = NewtonState.prior(self.settings.features, self.settings.alpha)
        if self._kernel is None:
            points, coefficients = before.expansion
            self._kernel = SketchedKernel.of(points, self.settings)
            if self.settings.carry_over:
                values = gaussian_matrix(points, points, self._gamma) @ coefficients
                newton = first_weights(before.newton, values, self._kernel.features)
        else:
            old = self._kernel.change(self._kernel_point(x))
            if self.settings.carry_over:
                newton = self._carried_over(before.newton, transfer(old, self._kernel.features))
        self._adopt(
            before._replace(
                newton=newton,
                feature_map=self._kernel.feature_map,
                expansion=Expansion.empty(before.expansion.points.shape[1]),
            )
        )
        self._since_change = 0

    def _carried_over(self, newton: NewtonState, T: FloatArray) -> NewtonState:
        """Return what Newton's state becomes, so that the values at the stored points hardly change."""
        share = math.exp(-self._since_change / self.settings.memory)
        return forget(carry_over(newton, T, self.settings.alpha), share, self.settings.alpha)
