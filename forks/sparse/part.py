"""The sparse part as an object: its state, and steps given together."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np

from forks.arrays import FloatArray, IntArray
from forks.sparse.loop import SparseArrays, mix_dense, run_sparse
from forks.sparse.plan import Columns, plan_of, variants_of
from forks.sparse.scores import BINNED_AFTER, BINS, LEARNED, USED, State, Work, weights_in_use
from forks.sparse.settings import BIAS_VARIANCE, SparseSettings
from forks.sparse.table import Rows, Table
from forks.state import State as Saved
from forks.state import StateReader

NO_IMPORTANCES: Final = np.empty(0)
NO_FORMERS: Final = np.empty((0, 2))
NUMBERS: Final = (
    "bias",
    "totals",
    "squared_errors",
    "shares",
    "errors",
    "final_shares",
    "final_errors",
    "edges",
)
"""Entries of the state that are arrays of float64 of a fixed shape."""


class SparsePart:
    """The sparse part: scores of events from their categories, words and the bins of their numbers.

    Its scores are columns of the event, written when the event is scored and given back with its label. A
    dense learner reads those that are `columns.seen`, the last of them, the mixture, as its offset. Its own
    score is mixed with theirs by `mix`. What a label says of the scores is judged by those that its event was
    predicted with, however late the label comes; weights learn at the scores that they have by then.

    Parameters
    ----------
    settings
        The settings.
    inputs
        Columns of the event that have hashes of its categories, then those of its words, of which 0 stands
        for none, and then its numbers.
    first_score
        The first column of the scores.
    base
        Column of log-odds that all scores start from; None for none.

    Attributes
    ----------
    settings
        As above.
    columns
        Names of the scores.

    Examples
    --------
    One category, whose value decides:

    >>> part = SparsePart(SparseSettings(fields=1), inputs=(0,), first_score=1)
    >>> part.columns.names
    ('fields', 'pairs', 'mixture', 'pairs_fading', 'constant', 'dense')
    >>> X = np.zeros((100, 7))
    >>> X[:, 0] = [5.0, 6.0] * 50
    >>> part.run(X, np.arange(200).reshape(2, 100).T.ravel(), np.array([1.0, -1.0] * 50))
    >>> bool(X[98, 1] > 2.0), bool(X[99, 1] < -2.0), bool(abs(X[99, 5]) < 0.1)
    (True, True, True)
    """

    def __init__(
        self,
        settings: SparseSettings,
        inputs: tuple[int, ...],
        first_score: int,
        base: int | None = None,
    ) -> None:
        if len(inputs) != settings.inputs:
            raise ValueError(f"inputs are {len(inputs)} columns, the settings name {settings.inputs}")
        self.settings = settings
        self.columns = Columns.of(settings)
        self._plan = plan = plan_of(settings, inputs, first_score, base)
        variants, active = len(plan.growths), len(plan.kinds)
        self._state = State(
            *Table.empty(settings.capacity, variants),
            np.repeat([[0.0, BIAS_VARIANCE]], variants, axis=0),
            np.zeros(3),
            np.zeros(variants),
            np.full(variants + 1, 1.0 / (variants + 1)),
            np.zeros(2),
            np.full(len(plan.experts), 1.0 / len(plan.experts)),
            np.zeros(2),
            np.zeros((settings.numbers, BINS - 1)),
            np.zeros((settings.numbers, BINNED_AFTER)),
            np.zeros(2, dtype=np.int64),
        )
        self._work = Work(
            np.zeros(active, dtype=np.uint64),
            np.zeros(active, dtype=np.int64),
            np.zeros(variants),
            np.zeros(variants),
            np.zeros(variants),
            np.zeros(variants),
            np.append(plan.places, plan.constant),
        )

    @property
    def arrays(self) -> SparseArrays:
        """What compiled code reads and changes: see `forks.sparse.loop`."""
        return tuple(self._plan), tuple(self._state), tuple(self._work)

    @property
    def rows(self) -> int:
        """Number of rows of the table in use: categories, words, bins and pairs that it has weights of."""
        return int(self._state.counts[USED])

    @property
    def learned(self) -> int:
        """Number of events learned."""
        return int(self._state.counts[LEARNED])

    def run(
        self,
        X: FloatArray,
        order: IntArray,
        y: FloatArray,
        importances: FloatArray = NO_IMPORTANCES,
        formers: FloatArray = NO_FORMERS,
    ) -> None:
        """Score and learn the rows of X in any order.

        Parameters
        ----------
        X : ndarray, shape (n, columns), float64
            The events. Scores are written to those that are scored, and read of those that are learned.
        order : ndarray, shape (steps,), int64
            Steps: i scores event i, n + i learns its label, 2 n + i replaces it.
        y : ndarray, shape (n,), float64
            Labels; only those that are learned are read.
        importances : ndarray, shape (n,) or (0,), float64
            Weights of the labels, all 1 if there are none.
        formers : ndarray, shape (n, 2) or (0, 2), float64
            Labels that are replaced, and their weights.
        """
        n, rows = len(X), order % len(X)
        weights = importances[rows] if len(importances) else NO_IMPORTANCES
        before = formers[rows] if len(formers) else NO_FORMERS
        run_sparse(self.arrays, X, n, order, rows, 0, len(order), y[rows], weights, before)

    def mix(
        self,
        X: FloatArray,
        order: IntArray,
        y: FloatArray,
        found: FloatArray,
        importances: FloatArray = NO_IMPORTANCES,
    ) -> None:
        """Mix the scores of the dense learner with those of events, for the steps that `run` has run.

        Parameters
        ----------
        X, order, y
            As those of `run`. The dense learner's scores are written to X.
        found : ndarray, shape (steps,), float64
            Scores of the dense learner; those of steps that score become those of the mixture.
        importances
            As those of `run`.
        """
        rows = order % len(X)
        weights = importances[rows] if len(importances) else NO_IMPORTANCES
        mix_dense(self.arrays, X, len(X), order, rows, 0, len(order), y[rows], weights, found)

    def learn(  # noqa: PLR0917 - columns
        self,
        X: FloatArray,
        order: IntArray,
        y: FloatArray,
        weights: FloatArray | None = None,
        former: FloatArray | None = None,
        former_weights: FloatArray | None = None,
    ) -> None:
        """Learn labels of rows of X, which have the scores of their predictions, by `run` and `mix`.

        Parameters
        ----------
        X, order, y
            As those of `run`. No step scores.
        weights : ndarray, shape (n,)
            Weights of the labels; None where all are 1.
        former, former_weights : ndarray, shape (n,)
            Labels that are replaced, and their weights; None for none, and where all are 1.
        """
        importances = NO_IMPORTANCES if weights is None else weights
        formers = NO_FORMERS
        if former is not None:
            known = np.ones(len(X)) if former_weights is None else former_weights
            formers = np.column_stack([former, known])
        X = np.require(X, np.float64, ["C", "W"])  # of another type, Numba would compile all once more
        self.run(X, order, y, importances, formers)
        self.mix(X, order, y, np.empty(len(order)), importances)

    def weights_of(self, x: FloatArray) -> list[tuple[tuple[int, ...], float]]:
        """Return the weights of an event that are not 0, the largest first: what takes its score where it is.

        A weight is the mean over the variants, by how much each is trusted.

        Parameters
        ----------
        x : ndarray, shape (columns,), float64
            The event.

        Returns
        -------
        list of tuple
            Of each weight, the places of what it is of among the event's categories, words and numbers, one,
            two or three, and its value.

        Examples
        --------
        >>> part = SparsePart(SparseSettings(fields=2), inputs=(0, 1), first_score=2)
        >>> X = np.zeros((1, 2 + len(part.columns.names)))
        >>> part.weights_of(X[0])
        []
        >>> part.learn(X, np.array([1]), np.ones(1))
        >>> [places for places, _ in part.weights_of(X[0])]
        [(0,), (1,), (0, 1)]
        """
        settings = self.settings
        places = [*((place,) for place in range(settings.inputs)), *settings.crossed]
        values = np.empty(len(places))
        weights_in_use(self.arrays, np.array([x], dtype=np.float64), values)
        found = [each for each in zip(places, values.tolist(), strict=True) if each[1]]
        return sorted(found, key=lambda each: -abs(each[1]))

    def state(self) -> Saved:
        """Return the whole state: copies of arrays, and plain numbers. Only rows in use are part of it."""
        state = self._state
        table = Table(state.tags, state.clocks, state.weights)
        saved: Saved = {name: getattr(state, name).copy() for name in NUMBERS}
        first = state.first[:, : self.learned] if self.learned < BINNED_AFTER else state.first[:, :0]
        rows = Rows.of(table)._asdict()
        return saved | rows | {"first": np.array(first, order="C"), "learned": self.learned}

    def restore(self, saved: Saved) -> None:
        """Replace the state by one that `state` returned.

        Raises
        ------
        ValueError
            ``saved`` lacks an entry, or has one of another type or shape than the settings ask for.
        """
        reader, state, settings = StateReader(saved), self._state, self.settings
        learned = reader.integer("learned")
        rows = Rows(
            _array(saved, "taken", np.uint8, 1),
            _array(saved, "tags", np.uint32, 1),
            _array(saved, "clocks", np.uint32, 1),
            _array(saved, "known", np.uint8, 1),
            _array(saved, "weights", np.float32, 2),
        )
        table = rows.table(settings.capacity, len(variants_of(settings)))
        kept = learned if learned < BINNED_AFTER else 0
        first = np.zeros_like(state.first)
        first[:, :kept] = reader.floats("first", settings.numbers, kept)
        found: dict[str, Any] = {name: reader.floats(name, *getattr(state, name).shape) for name in NUMBERS}
        counts = np.array([learned, len(rows.tags)])
        self._state = State(*table, **found, first=first, counts=counts)

    def copy(self) -> Self:
        """Return an independent part with the same state."""
        plan = self._plan
        base = None if plan.base < 0 else plan.base
        other = type(self)(self.settings, tuple(plan.inputs.tolist()), plan.first_score, base)
        other.restore(self.state())
        return other


def _array(saved: Saved, name: str, dtype: type, dimensions: int) -> np.ndarray[Any, Any]:
    """Return a copy of an array of rows of a saved state."""
    value = saved.get(name)
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != dimensions:
        raise ValueError(f"state[{name!r}] must be {np.dtype(dtype)} with {dimensions} dimensions")
    return np.array(value, order="C")
