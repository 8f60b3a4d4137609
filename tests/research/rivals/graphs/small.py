"""A graph small enough for dense oracles."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from forks.arrays import FloatArray
from research.rivals.graphs import laplacian_kernel, normalised

NODES = 30


def ring_of_two_halves() -> csr_array[np.float64, tuple[int, int]]:
    """Return a ring, with chords between nodes of the same half."""
    chance = np.random.default_rng(3)
    ring = np.eye(NODES, k=1) + np.eye(NODES, k=NODES - 1)
    halves = np.arange(NODES) < NODES // 2
    chords = (chance.random((NODES, NODES)) < 0.2) & (halves[:, None] == halves)
    upper = np.triu(np.maximum(ring, chords), 1)
    return csr_array(upper + upper.T)


KERNEL: FloatArray = normalised(laplacian_kernel(ring_of_two_halves(), ridge=0.1))


def stream(seed: int, events: int) -> tuple[list[int], list[float]]:
    """Return nodes in random order, and their halves' labels, a tenth of them turned around."""
    chance = np.random.default_rng(seed)
    nodes = chance.integers(0, NODES, events)
    labels = np.where((nodes < NODES // 2) ^ (chance.random(events) < 0.1), 1.0, -1.0)
    return nodes.tolist(), labels.tolist()
