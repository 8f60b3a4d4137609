"""OKSG, which queries a label with a probability that falls with the certainty of the score."""

from __future__ import annotations

from typing import ClassVar

from numpy.typing import ArrayLike

from forks.randomness import Purpose, fractions
from forks.rivals.base.learner import positive
from research.rivals.graphs.okl import OKL


class OKSG(OKL):
    """Variant of `OKL` that queries a label with probability h / (h + max(0, |f_x| - tau_x / 2)).

    tau_x = (K_xx - k_x'(K + b I)^-1 k_x) / b, Eq. (3), is the uncertainty of a node: the label of a node with
    a small score beside it is always queried, others more rarely the larger the score. Line 7 of the
    algorithm has tau where Definition 1, Theorem 2 and section 5.2 have half of it (their a_t is 1 here, as
    in `OKL`); this class follows the theorem.

    If the label is not queried, nothing is learned. A label that is given to `learn_one` is learned as in
    `OKL` and counted in `queries`, whatever `queries_label` returned. Each node has one random number, drawn
    from the seed when the learner is made: in the paper a node comes once, and one that comes again is
    queried as soon as its probability exceeds this number. `queries_label` costs O(m^2) after m mistakes.
    Theorem 2 bounds the expected number of mistakes.

    Parameters
    ----------
    kernel, ridge
        Parameters of `OKL`.
    h
        Eagerness to ask, > 0: the larger, the more labels are queried. The paper uses 0.01 on Cora and
        Coauthor.
    seed
        Seed of the nodes' random numbers.

    References
    ----------
    Yang and Li, Algorithm 2, Eq. (3) and Theorem 2.

    Examples
    --------
    >>> learner = OKSG([[1.0, 0.5], [0.5, 1.0]], ridge=1.0)
    >>> learner.queries_label(0)
    True
    >>> learner.learn_one(0, -1)
    1.0
    >>> learner.queries
    1
    """

    numbers: ClassVar = {"queries": int}

    def __init__(self, kernel: ArrayLike, *, ridge: float = 2.0, h: float = 0.01, seed: int = 0) -> None:
        super().__init__(kernel, ridge=ridge)
        self._h = positive("h", h)
        self._uniforms = fractions(seed, Purpose.LABEL_QUERY, 0, self.size)
        self.queries = 0

    def _queries(self, node: int) -> bool:
        return bool(self._uniforms[node] < self._probability(node))

    def _probability(self, node: int) -> float:
        """Return P_t, the probability of a query."""
        _, rest = self._project(node)
        lower_bound = abs(self._score(node)) - 0.5 * rest / self._ridge
        return self._h / (self._h + max(0.0, lower_bound))

    def _learn(self, event: int, y: float, score: float, weight: float, /) -> None:
        self.queries += 1
        super()._learn(event, y, score, weight)
