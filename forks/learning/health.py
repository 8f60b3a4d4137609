"""The health of a learner: figures that tell whether its sketch is in order, and change nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forks.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Health:
    """What a learner looks like inside, see `forks.Forks.health`.

    Attributes
    ----------
    stage
        1 until the budget is full, then 2.
    updates
        Number of events learned.
    stored_points
        Number of stored points.
    singular_values
        Singular values of the truncated decomposition of the sketch, the largest first; empty in stage 1.
    map_changes
        Changes of the feature map since stage 2 began.
    evictions
        Stored points that were evicted for newer ones.
    updates_since_map_change
        Number of events learned since the map changed last.
    changes_since_refresh
        Changes of the map since the decomposition was last computed anew from the sketch, and not from the
        one before.

    Examples
    --------
    >>> health = Health(stage=2, updates=100, stored_points=50, singular_values=(4.0, 1.0))
    >>> health.rank, health.condition
    (2, 4.0)
    """

    stage: int
    updates: int
    stored_points: int
    singular_values: tuple[float, ...] = ()
    map_changes: int = 0
    evictions: int = 0
    updates_since_map_change: int = 0
    changes_since_refresh: int = 0

    @property
    def rank(self) -> int:
        """Number of singular values that are not negligible beside the largest one.

        Examples
        --------
        >>> Health(2, 100, 50, (4.0, 1.0, 1e-20)).rank
        2
        """
        values = self.singular_values
        negligible = max(values, default=0.0) * max(1, len(values)) * float(np.finfo(np.float64).eps)
        return sum(value > negligible for value in values)

    @property
    def condition(self) -> float | None:
        """Largest singular value over the smallest that is not negligible; None without any.

        Examples
        --------
        >>> Health(2, 100, 50, (4.0, 1.0, 1e-20)).condition
        4.0
        """
        return self.singular_values[0] / self.singular_values[self.rank - 1] if self.rank else None


def singular_values_of(eigenvalues: FloatArray) -> tuple[float, ...]:
    """Return the singular values of a symmetric matrix with these eigenvalues, the largest first."""
    return tuple(np.sort(np.abs(eigenvalues))[::-1].tolist())
