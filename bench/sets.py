"""The paper's classification sets, and the same in random order."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from forks.arrays import FloatArray


class Labelled(NamedTuple):
    """Vectors and labels.

    Parameters
    ----------
    X : (n, dimension) float64
    y : (n,) float64, -1 or +1
    """

    X: FloatArray
    y: FloatArray

    def permuted(self, chance: np.random.Generator) -> Labelled:
        """Return the same rows in random order."""
        order = chance.permutation(len(self.y))
        return Labelled(self.X[order], self.y[order])

    @property
    def majority(self) -> float:
        """Mistakes of one who says the more frequent label every time, a share."""
        positive = float(np.mean(self.y > 0))
        return min(positive, 1.0 - positive)


def read_set(folder: Path, name: str) -> Labelled:
    """Read a dense set, ``X`` and ``y`` in an ``.npz`` file."""
    file = folder / f"{name}.npz"
    if not file.is_file():
        raise SystemExit(f"{file}: no such file; expected is an .npz file with X (n, d) and y in -1, +1")
    with np.load(file) as arrays:
        return Labelled(arrays["X"].astype(np.float64), arrays["y"].astype(np.float64))
