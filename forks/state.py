"""The saved form of a learner: a flat mapping of arrays and plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from forks.arrays import FloatArray, IntArray

State: TypeAlias = dict[str, np.ndarray[Any, Any] | int | float]


class StateReader:
    """Reader that checks the entries of a saved state and returns them as contiguous copies.

    Parameters
    ----------
    state
        State as returned by `forks.Forks.state`.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._state = state

    def integer(self, name: str) -> int:
        """Return the integer >= 0 at ``name``."""
        value = self._entry(name)
        if not isinstance(value, int | np.integer) or value < 0:
            raise ValueError(f"state[{name!r}] must be an integer >= 0, not {value!r}")
        return int(value)

    def number(self, name: str) -> float:
        """Return the finite number at ``name``."""
        value = self._entry(name)
        if not isinstance(value, int | float | np.integer | np.floating) or not np.isfinite(value):
            raise ValueError(f"state[{name!r}] must be a finite number, not {value!r}")
        return float(value)

    def floats(self, name: str, *shape: int | None) -> FloatArray:
        """Return the float64 array at ``name``, of this shape, where None stands for any length."""
        return self._array(name, np.dtype(np.float64), shape)

    def integers(self, name: str, *shape: int | None) -> IntArray:
        """Return the int64 array at ``name``, of this shape, where None stands for any length."""
        return self._array(name, np.dtype(np.int64), shape)

    def _entry(self, name: str) -> Any:
        if name not in self._state:
            raise ValueError(f"state has no entry {name!r}: it was not made by Forks.state, or is incomplete")
        return self._state[name]

    def _array(self, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> np.ndarray[Any, Any]:
        value = self._entry(name)
        asked = f"{dtype} of shape ({', '.join('any' if n is None else str(n) for n in shape)})"
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            raise ValueError(f"state[{name!r}] must be {asked}, not {getattr(value, 'dtype', type(value))}")
        if value.ndim != len(shape) or any(
            n is not None and n != m for n, m in zip(shape, value.shape, strict=True)
        ):
            raise ValueError(f"state[{name!r}] has shape {value.shape}; these settings ask for {asked}")
        return np.array(value, order="C")
