"""FORKS for events that have categories and words beside numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from forks.arrays import FloatArray, IntArray
from forks.checks import LARGEST, check_labels, check_order
from forks.learner import Forks
from forks.settings import ForksSettings
from forks.sparse import Columns, SparsePart, SparseSettings, category
from forks.sparse.settings import LARGEST_LABEL
from forks.state import State

LINEAR_ALPHA: Final = 30.0
"""Prior precision of the linear part, which corrects a score that is near the truth already."""
_DENSE: Final = "dense."
_SPARSE: Final = "sparse."


class WideForks:
    """A learner of events with categories, words and numbers: `Forks` on top of `forks.sparse.SparsePart`.

    The sparse part has a weight for each category, word and pair of categories. FORKS sees its scores and the
    numbers, and the scores of all are mixed, a constant among them: the mixture is not far from the best.

    Events are rows, made by `rows`. A row keeps the scores of its prediction, and its label is learned from
    these, however late it comes. A row that was not predicted is when it is learned.

    Parameters
    ----------
    sparse
        Settings of the sparse part: how many categories, words and numbers there are, and the loss.
    dense
        Settings of FORKS, for `columns` columns and perhaps more, which are further numbers. None for those
        of `practical`.

    Attributes
    ----------
    sparse
        The sparse part.
    dense
        FORKS itself, on the scores and the numbers.

    Examples
    --------
    Which pairs of categories are positive is learned, whatever there is beside them:

    >>> rng = np.random.default_rng(0)
    >>> pairs = [(f"site {i % 3}", f"advert {j}") for i, j in rng.integers(0, 4, (2000, 2))]
    >>> y = [1 if (site, advert) < ("site 1", "advert 2") else -1 for site, advert in pairs]
    >>> learner = WideForks(SparseSettings(fields=2, numbers=1))
    >>> learner.columns(learner.sparse.settings), learner.defaults(learner.sparse.settings)["linear_alpha"]
    (5, 30.0)
    >>> X = learner.rows(pairs, numbers=rng.normal(size=(2000, 1)))
    >>> scores = learner.predict_and_learn_many(X, y)
    >>> bool((np.sign(scores[-200:]) == y[-200:]).all())
    True
    >>> [row] = learner.rows([("site 0", "never seen")], numbers=[[0.0]])
    >>> learner.predict_one(row) > 0
    True
    >>> learner.learn_one(row, 1)
    >>> copy = WideForks.from_state(learner.settings, learner.state())
    >>> bool((copy.predict_many(X) == learner.copy().predict_many(X)).all())
    True

    Labels may come late: step i scores event i, and step n + i learns its label.

    >>> scores = learner.run(X[:2], y[:2], [0, 1, 2])
    >>> learner.learn_many(X[1:2], y[1:2])
    """

    def __init__(self, sparse: SparseSettings, dense: ForksSettings | None = None) -> None:
        dense = dense or ForksSettings.practical(self.columns(sparse), **self.defaults(sparse))
        scores = Columns.of(sparse)
        first, self._more = sparse.inputs, dense.dimension - self.columns(sparse)
        if dense.loss != sparse.loss or self._more < 0:
            raise ValueError(
                f"FORKS has the loss {dense.loss!r} and {dense.dimension} columns, the sparse part needs "
                f"{sparse.loss!r} and {self.columns(sparse)}"
            )
        self._inputs, self._end = first, first + len(scores.names)
        self._dense_columns = np.array(
            [
                *range(first, first + scores.seen),
                *range(sparse.fields + sparse.words, first),
                *range(self._end, self._end + self._more),
            ]
        )
        self.sparse = SparsePart(sparse, tuple(range(first)), first)
        self.dense = Forks(dense)

    @staticmethod
    def columns(sparse: SparseSettings) -> int:
        """Return how many columns FORKS sees: scores and numbers.

        Examples
        --------
        >>> WideForks.columns(SparseSettings(fields=2, numbers=3))  # and four scores
        7
        """
        return Columns.of(sparse).seen + sparse.numbers

    @staticmethod
    def defaults(sparse: SparseSettings) -> dict[str, Any]:
        """Return what differs from `ForksSettings.practical`: it adds to the score of the sparse part.

        Examples
        --------
        >>> WideForks.defaults(SparseSettings(fields=2))
        {'loss': 'logistic', 'offset_column': 2, 'linear_alpha': 30.0}
        """
        offset = Columns.of(sparse).seen - 1
        return {"loss": sparse.loss, "offset_column": offset, "linear_alpha": LINEAR_ALPHA}

    @property
    def settings(self) -> tuple[SparseSettings, ForksSettings]:
        """The settings of the sparse part, and those of FORKS."""
        return self.sparse.settings, self.dense.settings

    def rows(
        self,
        categories: Sequence[Sequence[object]],
        words: Sequence[Iterable[float]] = (),
        numbers: ArrayLike = (),
    ) -> FloatArray:
        """Return events as rows.

        Parameters
        ----------
        categories : n sequences
            Of each event, its categories: any values, which their text tells apart.
        words : n sequences
            Of each event, hashes of its words: see `forks.sparse.word_hashes`. The first ones count that the
            settings have room for. Nothing where events have no words.
        numbers : ndarray, shape (n, numbers), float64
            Numbers, those of the sparse part first. Nothing where events have none.

        Returns
        -------
        ndarray, shape (n, columns), float64
            Inputs, scores of the parts, which are NaN, and further numbers.

        Raises
        ------
        ValueError
            There are other categories or numbers than the settings say.
        """
        settings, n = self.sparse.settings, len(categories)
        X = np.zeros((n, self._end + self._more))
        X[:, self._inputs : self._end] = np.nan  # not predicted yet
        for row, values in enumerate(categories):
            if len(values) != settings.fields:
                raise ValueError(f"categories[{row}] are {len(values)}, the settings have {settings.fields}")
            X[row, : settings.fields] = [category(value) for value in values]
        for row, hashes in enumerate(words):
            found = [*dict.fromkeys(hashes)][: settings.words]
            X[row, settings.fields : settings.fields + len(found)] = found
        given, expected = np.asarray(numbers, dtype=np.float64), settings.numbers + self._more
        if given.size != n * expected:
            raise ValueError(f"numbers have shape {given.shape}, not ({n}, {expected})")
        given = given.reshape(n, expected)
        X[:, settings.fields + settings.words : self._inputs] = given[:, : settings.numbers]
        X[:, self._end :] = given[:, settings.numbers :]
        return X

    def run(self, X: FloatArray, y: ArrayLike, order: ArrayLike) -> FloatArray:
        """Score and learn events in any order, with the same bits as one by one.

        Parameters
        ----------
        X : ndarray, shape (n, columns), float64
            Rows. Scores of the parts are written to them.
        y : ndarray, shape (n,)
            Labels; the label of an event that is not learned may be any number.
        order : ndarray, shape (steps,), integers
            Steps: i scores event i with the current state, n + i learns it. No event is scored twice.

        Returns
        -------
        ndarray, shape (n,), float64
            Scores; NaN for an event without a score step.

        Raises
        ------
        ValueError
            The events, a step or a label to learn is not accepted. The learner has not changed.
        """
        self._check(X)
        n = len(X)
        steps = check_order("order", order, n)
        learned = steps[steps >= n] % n
        labels = check_labels("y", y, n, self.dense.settings.loss, learned)
        if (np.abs(labels[learned]) > LARGEST_LABEL).any():
            raise ValueError(f"y must be within +-{LARGEST_LABEL:g}")
        if len({*steps[steps < n].tolist()}) < (steps < n).sum():
            raise ValueError("order scores an event twice")
        steps = self._with_scores(X, steps)
        self.sparse.run(X, steps, labels)
        seen = X[:, self._dense_columns]
        seen[np.isnan(X[:, self._inputs])] = 0.0  # rows without a step
        found = self.dense.run(seen, labels, steps)[steps % n]
        self.sparse.mix(X, steps, labels, found)
        mixed = np.full(n, np.nan)
        mixed[steps[steps < n]] = found[steps < n]
        return mixed

    def predict_many(self, X: FloatArray) -> FloatArray:
        """Return the scores, (n,), of rows of ``X`` (n, columns), without changing the learner.

        The scores of the parts are written to the rows.
        """
        return self.run(X, np.zeros(len(X)), np.arange(len(X)))

    def predict_one(self, x: FloatArray) -> float:
        """Return the score of a row: log-odds, or with squared loss the predicted number."""
        return float(self.predict_many(x[np.newaxis])[0])

    def learn_many(self, X: FloatArray, y: ArrayLike) -> None:
        """Learn the rows of ``X`` (n, columns) in order."""
        self.run(X, y, np.arange(len(X), 2 * len(X)))

    def learn_one(self, x: FloatArray, y: float) -> None:
        """Learn the label of a row."""
        self.learn_many(x[np.newaxis], [y])

    def predict_and_learn_many(self, X: FloatArray, y: ArrayLike) -> FloatArray:
        """Predict and then learn each row of ``X`` (n, columns) in order; return the scores, (n,)."""
        return self.run(X, y, np.arange(2 * len(X)).reshape(2, len(X)).T.ravel())

    def state(self) -> State:
        """Return the whole state: copies of arrays, and plain numbers."""
        sparse = {_SPARSE + name: value for name, value in self.sparse.state().items()}
        return sparse | {_DENSE + name: value for name, value in self.dense.state().items()}

    @classmethod
    def from_state(cls, settings: tuple[SparseSettings, ForksSettings], state: State) -> Self:
        """Return a learner restored from `settings` and `state`; it continues with the same bits.

        Raises
        ------
        ValueError
            ``state`` lacks an entry, or has one of another type or shape than ``settings`` ask for.
        """
        learner = cls(*settings)
        parts = (
            {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
            for prefix in (_SPARSE, _DENSE)
        )
        learner.sparse.restore(next(parts))
        learner.dense = Forks.from_state(settings[1], next(parts))
        return learner

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle settings and state."""
        return self.from_state, (self.settings, self.state())

    def copy(self) -> Self:
        """Return an independent learner with the same state."""
        return self.from_state(self.settings, self.state())

    def _with_scores(self, X: FloatArray, order: IntArray) -> IntArray:
        """Return the steps, each of a row without scores that is learned with one before that scores it."""
        n, first = len(X), self._inputs
        if not np.isnan(X[:, first]).any():
            return order
        scored, steps = ~np.isnan(X[:, first]), list[int]()
        for step in order.tolist():
            if not scored[step % n] and step >= n:
                steps.append(step - n)
            scored[step % n] = True
            steps.append(step)
        return np.array(steps, dtype=np.int64)

    def _check(self, X: FloatArray) -> None:
        """Refuse rows that `rows` did not make."""
        columns = self._end + self._more
        if X.dtype != np.float64 or X.ndim != 2 or X.shape[1] != columns or not X.flags.c_contiguous:
            raise ValueError(f"X has shape {X.shape} and type {X.dtype}: make rows with rows()")
        for part in (X[:, : self._inputs], X[:, self._end :]):
            if not (np.abs(part) <= LARGEST).all():
                raise ValueError(f"numbers must be finite and within +-{LARGEST:g}")
