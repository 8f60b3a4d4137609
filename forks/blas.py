"""LAPACK on one thread, for the matrices of a change of the map."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy.linalg  # noqa: F401 -- the controller below finds the BLAS libraries that are loaded by then
import scipy.linalg  # noqa: F401 -- as above: SciPy brings one of its own
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_LIBRARIES = ThreadpoolController()


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS kept to one thread while it runs.

    Several threads make matrices of a hundred rows slower, by far where other work wants the processors
    too, and their results have other bits.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _LIBRARIES.limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
