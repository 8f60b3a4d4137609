"""OKL, kernel ridge regression on the mistaken nodes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forks.arrays import FloatArray, IntArray
from forks.compiled.products import dot, vecmat
from forks.rivals.base.learner import positive
from research.rivals.graphs.learner import NodeRival


class OKL(NodeRival):
    """Kernel ridge regression on the labels of earlier mistakes: f_x = k_x'(K + b I)^-1 y.

    The inverse is updated recursively. A tie, f_x = 0, counts as a mistake. The paper weighs events by a_t,
    for which it gives no values; here they are 1, as in its limits of tau. An event costs O(m) and a mistake
    O(m^2) time and memory, after m mistakes.

    It is second-order: in features whose inner products are the kernel, weights are (b I + sum phi phi')^-1
    sum y phi over the mistakes.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        Kernel matrix, symmetric and positive semidefinite; its diagonal is 1 in the paper
        (`research.rivals.graphs.normalised`). A float64 array is not copied and must not change.
    ridge
        Regularisation b, > 0; the paper asks for more than 1 and tries 1 to 10.

    References
    ----------
    Yang and Li, Algorithm 1 and section 4.1.

    Examples
    --------
    >>> learner = OKL([[1.0, 0.5], [0.5, 1.0]], ridge=1.0)
    >>> learner.learn_one(0, -1)
    1.0
    >>> learner.predict_one(1)
    -0.25
    """

    arrays: ClassVar = {
        "nodes": (int, (None,)),
        "coefficients": (float, (None,)),
        "inverse": (float, (None, None)),
    }

    def __init__(self, kernel: ArrayLike, *, ridge: float = 2.0) -> None:
        super().__init__(kernel)
        self._ridge = positive("ridge", ridge)
        self.nodes: IntArray = np.empty(0, dtype=np.int64)
        self.coefficients: FloatArray = np.empty(0)
        self.inverse: FloatArray = np.empty((0, 0))

    def _rebuild_derived(self) -> None:
        count = len(self.nodes)
        if self.coefficients.shape != (count,) or self.inverse.shape != (count, count):
            raise ValueError(f"state['coefficients'] and state['inverse'] must be of {count} nodes")
        if count and not 0 <= self.nodes.min() <= self.nodes.max() < self.size:
            raise ValueError(f"state['nodes'] must be from 0 to {self.size - 1}")

    def _score(self, event: int) -> float:
        return float(dot(self.coefficients, self._similarities(event)))

    def _learn(self, event: int, y: float, score: float, _weight: float, /) -> None:
        if self._triggers_update(event, y, score):
            self._add(event, y, score)

    def _triggers_update(self, node: int, y: float, score: float) -> bool:  # noqa: ARG002  # AKSG uses the node
        return y * score <= 0.0

    def _add(self, node: int, y: float, score: float) -> None:
        projection, rest = self._project(node)
        border = np.append(projection, -1.0)
        gamma = 1.0 / (rest + self._ridge)
        # (K + b I)^-1 [y, y_t] follows from its value before and the score, so that y need not be kept.
        self.coefficients = np.append(self.coefficients, 0.0) + gamma * (score - y) * border
        self.inverse = np.pad(self.inverse, (0, 1)) + gamma * np.outer(border, border)
        self.nodes = np.append(self.nodes, node)

    def _project(self, node: int) -> tuple[FloatArray, float]:
        """Return d = (K + b I)^-1 k_x, (m,), and the rest K_xx - k_x'd."""
        similarities = self._similarities(node)
        projection = np.empty_like(similarities)
        vecmat(similarities, self.inverse, projection)
        return projection, float(self._kernel[node, node] - dot(similarities, projection))

    def _similarities(self, node: int) -> FloatArray:
        similarities: FloatArray = self._kernel[node, self.nodes]
        return similarities
