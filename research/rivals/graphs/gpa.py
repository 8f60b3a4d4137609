"""GPA, the Perceptron on a graph."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from research.rivals.graphs.learner import NodeRival


class GPA(NodeRival):
    """Perceptron that adds a node's row of the kernel on each mistake: f <- f + y K_x.

    The paper's kernel is the pseudo-inverse of the Laplacian (`research.rivals.graphs.laplacian_kernel`). A
    tie, f_x = 0, counts as a mistake. f is kept on all nodes, so that a prediction costs O(1) and a mistake
    O(n). If some f of squared norm U^2 in the kernel's space has y f_x >= 1 on all labels, there are at most
    U^2 max_x K_xx mistakes.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        Kernel matrix, symmetric and positive semidefinite. A float64 array is not copied and must not change.

    References
    ----------
    Herbster and Pontil, Prediction on a Graph with a Perceptron, NIPS 2006.

    Examples
    --------
    >>> learner = GPA([[1.0, 0.5], [0.5, 1.0]])
    >>> learner.learn_one(0, -1)
    1.0
    >>> learner.predict_one(1)
    -0.5
    """

    arrays: ClassVar = {"values": (float, ("size",))}

    def __init__(self, kernel: ArrayLike) -> None:
        super().__init__(kernel)
        self.values = np.zeros(self.size)

    def _score(self, event: int) -> float:
        return float(self.values[event])

    def _learn(self, event: int, y: float, score: float, _weight: float, /) -> None:
        if y * score <= 0.0:
            self.values += y * self._kernel[event]
