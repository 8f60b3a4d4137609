"""FORKS: fast second-order online kernel learning with incremental sketches."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from forks import rounds
from forks.arrays import FloatArray
from forks.carry_over import carry_over, transfer
from forks.checks import check_label, check_labels, check_matrix, check_vector
from forks.feature_map import FeatureMap, map_points
from forks.kernels import gaussian_matrix
from forks.kogd import Expansion
from forks.losses import loss_slope, loss_value
from forks.newton import NewtonState
from forks.settings import ForksSettings
from forks.sketched_kernel import SketchedKernel
from forks.state import State, StateReader

# The first events of a stream are not typical of it, so a bounded learner changes its map faster then.
WARM_UP_CYCLES = 20
WARM_UP_SPEED = 10


class Forks:
    """A second-order online kernel learner whose time and memory need not grow with the stream.

    Stage 1 stores the points that had a loss and learns by kernelized gradient descent. When the
    budget is full, the stored points' kernel matrix is sketched, and an explicit feature map made of
    the sketch takes over: Online Newton Step learns on its features. Once a cycle the newest point
    enters the sketch and the map changes.

    Learners with the same settings that learned the same events in the same order have the same bits,
    whether the events came one by one or in batches, and whether or not one of them was saved with
    `state` and restored with `from_state` on the way. (This holds on one kind of processor with one
    number of BLAS threads: the change of the map, once a cycle, calls LAPACK. Nothing else does.)

    Parameters
    ----------
    settings : a preset of `ForksSettings`, with what differs

    References
    ----------
    FORKS: Fast Second-Order Online Kernel Learning using Incremental Sketching, Algorithm 1.

    Examples
    --------
    >>> learner = Forks(ForksSettings.practical(2))
    >>> round(learner.learn_one([1.0, 0.5], 1), 4)  # the logistic loss of a score of 0
    0.6931
    >>> learner.predict_one([1.0, 0.5]) > 0
    True
    """

    def __init__(self, settings: ForksSettings) -> None:
        self.settings = settings
        self._rule = rounds.Rule.of(settings)
        self._updates = 0
        self._since_change = 0
        self._kernel: SketchedKernel | None = None
        start, stop = settings.kernel_columns
        self._hypothesis = rounds.Hypothesis(
            mean=np.zeros(settings.dimension),
            squares=np.zeros(settings.dimension),
            newton=NewtonState.prior(settings.features, settings.alpha),
            feature_map=FeatureMap(np.empty((0, stop - start)), np.empty((0, settings.rank))),
            expansion=Expansion.empty(stop - start),
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
        return float(self._scores(check_vector("x", x, self.settings.dimension))[0])

    def predict_many(self, X: ArrayLike) -> FloatArray:
        """Return the scores of the rows of ``X`` (n, dimension), with the same bits as one by one."""
        return self._scores(check_matrix("X", X, self.settings.dimension))

    def learn_one(self, x: ArrayLike, y: float) -> float:
        """Learn the label ``y`` of ``x``, (dimension,), and return the loss of the score before.

        Raises
        ------
        ValueError
            ``x`` is not as `predict_one` takes it, or ``y`` is no label for the loss. Then nothing
            has changed.
        """
        X = check_vector("x", x, self.settings.dimension)
        label = check_label("y", y, self.settings.loss)
        score = self._learn(X, np.array([label]))[0]
        return float(loss_value(self._rule.loss, score, label))

    def learn_many(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """Learn the rows of ``X`` (n, dimension) in turn; return the loss of each one's score before."""
        matrix = check_matrix("X", X, self.settings.dimension)
        labels = check_labels("y", y, len(matrix), self.settings.loss)
        losses: FloatArray = rounds.loss_values(self._learn(matrix, labels), labels, self._rule)
        return losses

    def predict_and_learn_many(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """Predict and then learn each row of ``X`` (n, dimension) in turn; return the scores, (n,)."""
        matrix = check_matrix("X", X, self.settings.dimension)
        return self._learn(matrix, check_labels("y", y, len(matrix), self.settings.loss))

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
        learner._hypothesis = learner._hypothesis._replace(
            mean=reader.floats("mean", settings.dimension),
            squares=reader.floats("squares", settings.dimension),
            newton=NewtonState(
                reader.floats("weights", settings.features),
                reader.floats("inverse_hessian", settings.features, settings.features),
            ),
        )
        if reader.integer("stage") == 1:
            points = reader.floats("points", None, learner._hypothesis.expansion.points.shape[1])
            expansion = Expansion(points, reader.floats("coefficients", len(points)))
            learner._hypothesis = learner._hypothesis._replace(expansion=expansion)
        else:
            learner._kernel = SketchedKernel.from_state(settings, reader)
            learner._hypothesis = learner._hypothesis._replace(feature_map=learner._kernel.feature_map)
        return learner

    def clone(self) -> Self:
        """Return an independent learner that knows the same."""
        return self.from_state(self.settings, self.state())

    def _scores(self, X: FloatArray) -> FloatArray:
        out: FloatArray = rounds.scores(X, self._rule, self._updates, self._hypothesis)
        return out

    def _learn(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Learn the rows in turn; return the scores that they had before."""
        out = np.empty(len(X))
        start = 0
        while start < len(X):
            stop = min(len(X), start + self._rounds_alike())
            out[start:stop] = self._learn_alike(X[start:stop], y[start:stop])
            start = stop
        return out

    def _rounds_alike(self) -> int:
        """Return how many rounds from here on are regular ones, or 1 if the next is of another kind."""
        if self._kernel is None:
            return 1
        return max(1, self._cycle() - self._since_change)

    def _cycle(self) -> int:
        """Return the events from one change of the map to the next, at this point of the stream."""
        cycle = self.settings.cycle
        if self.settings.bounded and self._updates < WARM_UP_CYCLES * cycle:
            return max(1, cycle // WARM_UP_SPEED)
        return cycle

    def _change_due(self) -> bool:
        if self._kernel is None:
            return len(self._hypothesis.expansion.points) >= self.settings.budget
        return self._since_change >= self._cycle()

    def _learn_alike(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Learn rows of one kind, as many as `_rounds_alike` allows."""
        if self._change_due():
            before = self._scores(X)
            self._change_map(X[0])
            self._learn_regular(X, y)
            return before
        if self._kernel is None:
            return self._learn_stage_one(X, y)
        return self._learn_regular(X, y)

    def _learn_regular(self, X: FloatArray, y: FloatArray) -> FloatArray:
        out: FloatArray = rounds.learn(X, y, self._rule, self._updates, self._hypothesis)
        self._updates += len(X)
        self._since_change += len(X)
        return out

    def _learn_stage_one(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Learn one row by KOGD; a linear part beside it takes its Newton step on the sum's slope."""
        settings = self.settings
        point = rounds.kernel_point(X[0], self._rule, self._updates, self._hypothesis)
        scores = self._learn_regular(X, y)
        expansion = self._hypothesis.expansion.descend(
            point,
            loss_slope(self._rule.loss, scores[0], y[0]),
            store=loss_value(self._rule.loss, scores[0], y[0]) > 0.0,
            step=settings.step,
            decay=settings.decay,
        )
        self._hypothesis = self._hypothesis._replace(expansion=expansion)
        return scores

    def _change_map(self, x: FloatArray) -> None:
        """Make the first map, or change it with ``x`` as the newest stored point; carry over or reset."""
        before = self._hypothesis
        if self._kernel is None:
            self._kernel = SketchedKernel.of(before.expansion.points, self.settings)
        else:
            self._kernel.change(rounds.kernel_point(x, self._rule, self._updates, before))
        if self.settings.carry_over:
            newton = self._carried_over(before, self._kernel)
        else:
            newton = NewtonState.prior(self.settings.features, self.settings.alpha)
        self._hypothesis = before._replace(
            newton=newton,
            feature_map=self._kernel.feature_map,
            expansion=Expansion.empty(before.expansion.points.shape[1]),
        )
        self._since_change = 0

    def _carried_over(self, before: rounds.Hypothesis, kernel: SketchedKernel) -> NewtonState:
        """Return what Newton's state becomes, so that the values at the stored points hardly change."""
        gamma = self._rule.gamma
        new = map_points(kernel.points, kernel.feature_map, gamma)
        if len(before.feature_map.landmarks):
            old = map_points(kernel.points, before.feature_map, gamma)
            return carry_over(before.newton, transfer(old, new), self.settings.alpha)
        # Stage 1's function becomes weights; nothing was learned of how sure they are.
        points, coefficients = before.expansion
        values = gaussian_matrix(points, points, gamma) @ coefficients
        weights = before.newton.weights.copy()
        weights[self.settings.linear_features :] = transfer(values[:, None], new)[:, 0]
        return before.newton._replace(weights=weights)
