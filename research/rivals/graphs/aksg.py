"""AKSG, which learns a label that it is unsure of even where it guessed it."""

from __future__ import annotations

from research.rivals.graphs.oksg import OKSG


class AKSG(OKSG):  # its base has __init__; numpydoc ignore=PR02
    """`OKSG` that learns every label that it asks for with probability 1, mistaken or not.

    Yang and Li, Algorithm 3 and section 5.2. Of nodes that the coin decides on it learns from mistakes only,
    as `OKSG`. (The algorithm's else branch does not say that the label is asked for; the section does, and
    the update needs it.) With a large ``h`` it is kernel ridge regression on all labels.

    An event costs O(m^2) with m labels learned before, which are more than mistakes.

    Parameters
    ----------
    kernel, ridge, h, seed
        Parameters of `OKSG`.

    Examples
    --------
    >>> learner = AKSG([[1.0, 0.9], [0.9, 1.0]], ridge=1.0)
    >>> learner.learn_many([0, 0], [1, 1]).tolist()  # the second time it asks by its coin
    [1.0, 0.5]
    >>> learner.learn_one(1, 1) < 1.0
    True
    >>> len(learner.nodes), learner.queries
    (1, 3)
    """

    def _triggers_update(self, node: int, y: float, score: float) -> bool:
        return super()._triggers_update(node, y, score) or self._probability(node) >= 1.0
