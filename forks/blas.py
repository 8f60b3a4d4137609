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

_LIBRARIES = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS kept to one thread while it runs.

    Several threads make matrices of a hundred rows slower, by far where other work wants the processors
    too, and their results have other bits.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        before = [library.num_threads for library in _LIBRARIES]
        for library in _LIBRARIES:
            library.set_num_threads(1)
        try:
            return function(*args, **kwargs)
        finally:
            for library, threads in zip(_LIBRARIES, before, strict=True):
                library.set_num_threads(threads)

    return limited
