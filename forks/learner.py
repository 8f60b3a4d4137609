"""FORKS: fast second-order online kernel learning with incremental sketches."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from forks.algorithm.kernels import precision
from forks.arrays import FloatArray, IntArray
from forks.checks import (
    check_label,
    check_labels,
    check_matrix,
    check_order,
    check_vector,
    check_weight,
    check_weights,
)
from forks.learning import event_loop
from forks.learning.entities import EntityEvents
from forks.learning.events import EventSource, LastColumns, Rows
from forks.learning.explanation import Explanation
from forks.learning.health import Health
from forks.learning.learner_run import LearnerRun
from forks.learning.stages import NO_FORMERS, UNWEIGHTED, Stages
from forks.learning.stored_points import NearPoint
from forks.losses import LOSSES, loss_value
from forks.settings import ForksSettings
from forks.state import State

Events: TypeAlias = ArrayLike | EntityEvents | LastColumns
"""What methods for many events accept: rows, (n, dimension), or what stands for them."""

# The steps of `Forks.run` for one event.
SCORE, LEARN, REPLACE = np.array([0]), np.array([1]), np.array([2])
NO_LABELS = np.empty(0)


class Forks:
    """A second-order online kernel learner whose time and memory need not grow with the stream.

    Stage 1 stores the points that had a loss and learns by kernelized gradient descent. When the budget is
    full, the kernel matrix of the stored points is sketched, and stage 2 begins: Online Newton Step on the
    features of an explicit map made from the sketch. Once a cycle, the newest point enters the sketch and the
    map changes.

    Learners with the same settings that learned the same events in the same order have the same bits, whether
    the events came one by one or in batches, and whether or not a learner was saved with `state` and restored
    with `from_state` in between. This holds on all processors and with all versions of libraries that the
    tests cover: all arithmetic is compiled from this library's own loops.

    Parameters
    ----------
    settings
        A preset of `ForksSettings`, with the fields that differ from it.

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
    >>> other = learner.copy()
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
        self._loss = LOSSES[settings.loss]
        self._gamma = precision(settings.width)
        self._largest = settings.largest
        self._stages = Stages(settings)

    @property
    def updates(self) -> int:
        """Number of events learned."""
        return self._stages.updates

    def predict_one(self, x: ArrayLike) -> float:
        """Return the score of ``x``, (dimension,), without changing the learner.

        The sign of the score is the predicted label. With the logistic loss, the score is the log-odds.

        Raises
        ------
        ValueError
            ``x`` has another shape, or a number that is not finite.
        """
        out = np.empty(1)
        self._stages.run_on_fixed_map(self._row(x), SCORE, NO_LABELS, UNWEIGHTED, out)
        return float(out[0])

    def explain_one(self, x: ArrayLike) -> Explanation:
        """Return the terms that the score of ``x``, (dimension,), is the sum of.

        Raises
        ------
        ValueError
            `predict_one` does not accept ``x``.

        Examples
        --------
        >>> learner = Forks(ForksSettings.practical(2))
        >>> loss = learner.learn_one([1.0, 0.5], 1)
        >>> explanation = learner.explain_one([1.0, 0.5])
        >>> explanation.score == learner.predict_one([1.0, 0.5])
        True
        >>> bool(abs(explanation.terms.sum() - explanation.score) < 1e-12)
        True
        """
        return self._stages.explain(self._row(x))

    def variances(self, X: Events) -> FloatArray:
        """Return z' A^-1 z, (n,), of the features z of each row of ``X`` (n, dimension).

        It is the variance that the second-order learner gives the score: large where little was learned, and
        smaller with each event near by. The learner does not change, and a row has the same bits alone and
        among others.

        With the curvature of the logistic loss as Hessian it is the variance of the Laplace approximation.
        With that of the squared loss, multiply it by the variance of the labels' noise. With a Hessian of
        gradients it is in units of the learner's step. Without a feature map (stage 1), the kernel part
        counts with the variance of its prior, 1 / alpha. Corrections of tracking, an offset and the clipping
        of scores do not count.

        Raises
        ------
        ValueError
            `predict_many` does not accept ``X``.

        References
        ----------
        Chapelle and Li, An Empirical Evaluation of Thompson Sampling (NIPS 2011), section 5.

        Examples
        --------
        >>> learner = Forks(ForksSettings.practical(1))
        >>> before = learner.variances([[0.5]])
        >>> losses = learner.learn_many([[0.0], [1.0]] * 20, [-1, 1] * 20)
        >>> bool(learner.variances([[0.5]]) < before)
        True
        """
        return self._stages.variances(self._events(X))

    def nearest_one(self, x: ArrayLike, count: int) -> list[NearPoint]:
        """Return the stored points of the kernel part that are nearest to ``x``, (dimension,).

        There are at most ``count``, the nearest first.

        Raises
        ------
        ValueError
            `predict_one` does not accept ``x``.

        Examples
        --------
        >>> learner = Forks(ForksSettings.practical(1, standardize=False))
        >>> losses = learner.learn_many([[0.0], [2.0]], [-1, 1])
        >>> [nearest] = learner.nearest_one([1.9], 1)
        >>> nearest.learned_before  # the second event
        1
        """
        return self._stages.nearest(self._row(x), count)

    @property
    def stored_events(self) -> tuple[int | None, ...]:
        """Of each stored point, the oldest first, what `NearPoint.learned_before` says.

        Examples
        --------
        >>> learner = Forks(ForksSettings.practical(1))
        >>> losses = learner.learn_many([[0.0], [2.0]], [-1, 1])
        >>> learner.stored_events, Forks.from_state(learner.settings, learner.state()).stored_events
        ((0, 1), (None, None))
        """
        return self._stages.stored_events

    def predict_many(self, X: Events) -> FloatArray:
        """Return the scores, (n,), of the rows of ``X`` (n, dimension), with the same bits as one by one.

        This and the other ``_many`` methods also accept events made by `EntityTables.events`.
        """
        events = self._events(X)
        return self._stages.run(events, np.arange(len(events)), NO_LABELS)

    def learn_one(self, x: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn the label ``y`` of ``x``, (dimension,), and return the loss of the score before.

        Parameters
        ----------
        x : ndarray, shape (dimension,)
            Event.
        y
            Label of the event.
        weight
            Weight of the label, from 0 to 1000: it counts as so many labels. One of weight 0 changes nothing.

        Raises
        ------
        ValueError
            `predict_one` does not accept ``x``, ``y`` is not a label for the loss, or ``weight`` is not from
            0 to 1000. The learner has not changed.

        Examples
        --------
        The heavier a label, the nearer the score comes to it:

        >>> light, heavy = (Forks(ForksSettings.practical(1)) for _ in range(2))
        >>> light.learn_one([0.5], 1, weight=0.5) == heavy.learn_one([0.5], 1, weight=5.0)
        True
        >>> 0.0 < light.predict_one([0.5]) < heavy.predict_one([0.5])
        True
        """
        event = self._row(x)
        label = check_label("y", y, self.settings.loss)
        importances = UNWEIGHTED if weight == 1.0 else np.array([check_weight("weight", weight)])
        score = self._stages.run(event, LEARN, np.array([label]), importances)[0]
        return float(loss_value(self._loss, score, label))

    def replace_one(
        self, x: ArrayLike, former: float, y: float, *, former_weight: float = 1.0, weight: float = 1.0
    ) -> None:
        """Replace the label ``former`` that ``x``, (dimension,), was learned with by ``y``.

        The weights take one Newton step on the difference of the two labels' gradients at the current score,
        each times the weight of its label.
        The Hessian stays: that of squared loss does not depend on labels. With squared loss and features that
        do not change, this is exact. Otherwise it is what a label weighs now, to first order (Koh and Liang,
        Understanding Black-box Predictions via Influence Functions, ICML 2017). A kernel part that has no
        feature map yet, and the corrections of tracking, keep what they have learned.

        Raises
        ------
        ValueError
            `predict_one` does not accept ``x``, ``former`` or ``y`` is not a label for the loss, or a weight
            is not from 0 to 1000. The learner has not changed.

        Examples
        --------
        >>> settings = ForksSettings.practical(1, loss="squared", budget=20)
        >>> wrong, right = Forks(settings), Forks(settings)
        >>> X, y = [[x] for x in range(60)], [x / 10 for x in range(60)]
        >>> losses = wrong.learn_many(X, [*y[:-1], 50.0]), right.learn_many(X, y)
        >>> off = wrong.predict_one([59.0]) - right.predict_one([59.0])
        >>> wrong.replace_one([59.0], 50.0, 5.9)
        >>> abs(wrong.predict_one([59.0]) - right.predict_one([59.0])) < 0.2 * abs(off)
        True
        """
        event = self._row(x)
        taken_back = check_label("former", former, self.settings.loss)
        label = check_label("y", y, self.settings.loss)
        formers = np.array([[taken_back, check_weight("former_weight", former_weight)]])
        self._stages.run(
            event, REPLACE, np.array([label]), np.array([check_weight("weight", weight)]), formers
        )

    def learn_many(self, X: Events, y: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
        """Learn the rows of ``X`` (n, dimension) in order; return the losses, (n,), of the scores before.

        ``weights`` (n,) are those of the labels, see `learn_one`; None for 1 each.
        """
        events = self._events(X)
        labels = check_labels("y", y, len(events), self.settings.loss)
        losses: FloatArray = event_loop.loss_values(self._learn(events, labels, weights), labels, self._loss)
        return losses

    def predict_and_learn_many(self, X: Events, y: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
        """Predict and then learn each row of ``X`` (n, dimension) in order; return the scores, (n,).

        ``weights`` are as in `learn_many`.
        """
        events = self._events(X)
        return self._learn(events, check_labels("y", y, len(events), self.settings.loss), weights)

    def run(
        self,
        X: Events,
        y: ArrayLike,
        order: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        former: ArrayLike | None = None,
        former_weights: ArrayLike | None = None,
    ) -> FloatArray:
        """Score and learn events in any order, with the same bits as one by one.

        Parameters
        ----------
        X : ndarray, shape (n, dimension), EntityEvents or LastColumns
            Rows, events made by `EntityTables.events`, or the last columns of rows.
        y : ndarray, shape (n,)
            Labels; the label of an event that is not learned may be any number.
        order : ndarray, shape (steps,), integers
            Steps: i scores event i with the current state, n + i learns it, 2 n + i replaces its label. An
            event may lack any step, which may be part of another call.
        weights : ndarray, shape (n,)
            Weights of the labels, see `learn_one`; None for 1 each.
        former, former_weights : ndarray, shape (n,)
            Labels that are replaced, see `replace_one`, and their weights; None where nothing is replaced, or
            for 1 each.

        Returns
        -------
        ndarray, shape (n,), float64
            Scores; NaN for an event without a score step.

        Raises
        ------
        ValueError
            The events, a step, a weight or a label to learn is not accepted. The learner has not changed.

        Examples
        --------
        The label of the first event comes after the prediction of the second event:

        >>> learner = Forks(ForksSettings.practical(1))
        >>> learner.run([[0.5], [2.0]], [1, 0], [0, 1, 2]).tolist()  # 2 learns event 0
        [0.0, 0.0]
        >>> learner.updates
        1
        """
        events = self._events(X)
        n = len(events)
        steps = check_order("order", order, n, kinds=2 if former is None else 3)
        rows = steps % n
        labels, importances, formers = self._checked_labels(
            y, weights, former, former_weights, n, rows[steps >= n], rows[steps >= 2 * n]
        )
        importances = importances[rows] if len(importances) else UNWEIGHTED
        formers = formers[rows] if len(formers) else NO_FORMERS
        found = self._stages.run(events, steps, labels[rows], importances, formers)
        scores = np.full(n, np.nan)
        is_score = steps < n
        scores[steps[is_score]] = found[is_score]
        return scores

    def begin(
        self,
        X: Events,
        y: ArrayLike,
        learned: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        former: ArrayLike | None = None,
        former_weights: ArrayLike | None = None,
    ) -> LearnerRun:
        """Begin what `run` does, for compiled code of the caller that gives the steps few by few.

        Parameters
        ----------
        X
            Rows, or the last columns of rows.
        y : ndarray, shape (n,)
            As in `run`.
        learned : ndarray, shape (m,), integers
            Events that may be learned, and whose label may be replaced.
        weights, former, former_weights : ndarray, shape (n,)
            As in `run`.

        Raises
        ------
        ValueError
            The events, a weight or a label to learn is not accepted.
        TypeError
            The events are not rows.

        Examples
        --------
        `forks.learning.learner_run` has the compiled function that runs the steps.

        >>> learner = Forks(ForksSettings.practical(1))
        >>> run = learner.begin([[0.5], [2.0]], [1, -1], [0, 1])
        >>> run.rows.tolist(), run.changes_map()  # the first event that is learned becomes a stored point
        ([[0.5], [2.0]], True)
        """
        events = self._events(X)
        if not isinstance(events, Rows):
            raise TypeError("X must be rows, or the last columns of rows")
        rows = np.asarray(learned)
        labels = self._checked_labels(y, weights, former, former_weights, len(events), rows, rows)
        return LearnerRun(self._stages, events, *labels)

    def health(self) -> Health:
        """Return figures of the sketch, without changing the learner.

        It costs a sort of the singular values, whatever the budget.

        Examples
        --------
        >>> learner = Forks(ForksSettings.practical(1, budget=20, cycle=10))
        >>> losses = learner.learn_many([[x / 50] for x in range(100)], [1, -1] * 50)
        >>> health = learner.health()
        >>> health.stage, health.stored_points, health.map_changes == health.evictions > 0
        (2, 20, True)
        >>> health.rank == len(health.singular_values) or health.condition > 1e6
        True
        """
        return self._stages.health()

    def state(self) -> State:
        """Return the whole state: contiguous copies of arrays, and plain numbers."""
        return self._stages.state()

    @classmethod
    def from_state(cls, settings: ForksSettings, state: State) -> Self:
        """Return a learner restored from `state`; it continues with the same bits.

        Raises
        ------
        ValueError
            ``state`` lacks an entry, or has one of another type or shape than ``settings`` ask for.
        """
        learner = cls(settings)
        learner._stages = Stages.from_state(settings, state)
        return learner

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle settings and state; attributes would lose the memory that their arrays share."""
        return self.from_state, (self.settings, self.state())

    def copy(self) -> Self:
        """Return an independent learner with the same state."""
        return self.from_state(self.settings, self.state())

    def _row(self, x: ArrayLike) -> Rows:
        return Rows(check_vector("x", x, self.settings.dimension, self._largest), self.settings, self._gamma)

    def _events(self, X: Events) -> EventSource:
        if isinstance(X, EntityEvents | LastColumns):
            return X.checked_against(self.settings)
        return Rows(check_matrix("X", X, self.settings.dimension, self._largest), self.settings, self._gamma)

    def _checked_labels(  # noqa: PLR0917 - columns
        self,
        y: ArrayLike,
        weights: ArrayLike | None,
        former: ArrayLike | None,
        former_weights: ArrayLike | None,
        n: int,
        learned: IntArray,
        replaced: IntArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return labels, (n,), their weights, (n,) or (0,), and former labels with theirs, (n, 2) or (0, 2).

        Only the labels of the events that are learned or replaced have to be labels.
        """
        labels = check_labels("y", y, n, self.settings.loss, learned)
        importances = UNWEIGHTED if weights is None else check_weights("weights", weights, n)
        if former is None:
            return labels, importances, NO_FORMERS
        before = check_labels("former", former, n, self.settings.loss, replaced)
        known = np.ones(n) if former_weights is None else check_weights("former_weights", former_weights, n)
        return labels, importances, np.column_stack([before, known])

    def _learn(self, events: EventSource, y: FloatArray, weights: ArrayLike | None) -> FloatArray:
        """Learn the events in order; return the scores before learning."""
        n = len(events)
        importances = UNWEIGHTED if weights is None else check_weights("weights", weights, n)
        return self._stages.run(events, np.arange(n, 2 * n), y, importances)
