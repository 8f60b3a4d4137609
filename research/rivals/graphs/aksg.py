"""AKSG, which also learns from correct predictions of which it is uncertain."""

from __future__ import annotations

from research.rivals.graphs.oksg import OKSG


class AKSG(OKSG):  # its base has __init__; numpydoc ignore=PR02
    """Variant of `OKSG` that learns every label that it queries with probability 1, mistaken or not.

    Where the query is drawn at random, it learns only from mistakes, as `OKSG` does. (The algorithm's else
    branch does not say that the label is queried; section 5.2 does, and the update needs it.) With a large
    ``h`` it is kernel ridge regression on all labels.

    An event costs O(m^2) after m learned labels, which are more than the mistakes.

    Parameters
    ----------
    kernel, ridge, h, seed
        Parameters of `OKSG`.

    References
    ----------
    Yang and Li, Algorithm 3 and section 5.2.

    Examples
    --------
    >>> learner = AKSG([[1.0, 0.9], [0.9, 1.0]], ridge=1.0)
    >>> learner.learn_many([0, 0], [1, 1]).tolist()  # the second query is drawn at random
    [1.0, 0.5]
    >>> learner.learn_one(1, 1) < 1.0
    True
    >>> len(learner.nodes), learner.queries
    (1, 3)
    """

    def _triggers_update(self, node: int, y: float, score: float) -> bool:
        return super()._triggers_update(node, y, score) or self._probability(node) >= 1.0
