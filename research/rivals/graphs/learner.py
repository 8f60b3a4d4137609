"""Base of the learners of a graph's nodes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from forks.checks import check_matrix
from forks.rivals.base.learner import Rival


class NodeRival(Rival[int]):
    """A learner of nodes, which are given by their row numbers in the kernel matrix.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        Kernel matrix, symmetric and positive semidefinite. A float64 array is not copied and must not change.
    """

    def __init__(self, kernel: ArrayLike) -> None:
        self._kernel = check_matrix("kernel", kernel, len(kernel))  # type: ignore[arg-type]  # a number fails here
        self.size = len(self._kernel)

    def queries_label(self, x: Any) -> bool:
        """Return whether to query a node's label; nothing changes.

        Raises
        ------
        ValueError
            ``x`` is not the number of a node.
        """
        return self._queries(self._event("x", x))

    def _queries(self, node: int) -> bool:  # noqa: ARG002  # for subclasses
        """Return whether to query the label: always, unless a subclass decides otherwise."""
        return True

    def _event(self, name: str, x: Any) -> int:
        try:
            node = operator.index(x)
        except TypeError as error:
            raise ValueError(f"{name} must be the number of a node: {error}") from error
        if not 0 <= node < self.size:
            raise ValueError(f"{name} must be a node from 0 to {self.size - 1}, not {node}")
        return node

    def _events(self, X: Any) -> Sequence[int]:
        return [self._event("X", x) for x in X]
