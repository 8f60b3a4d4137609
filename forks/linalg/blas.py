"""LAPACK on one thread, for the matrices of a change of the map."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import ParamSpec, TypeVar

import numpy.linalg  # noqa: F401 -- the controller below finds the BLAS libraries that are loaded by then
import scipy.linalg  # noqa: F401 -- as above: SciPy brings one of its own
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_CONTROLLER = ThreadpoolController()
_LIMIT = RLock()
"""Held by whoever has set the number of threads, which is the whole process's, until it is as it was."""


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS kept to one thread while it runs, in whichever thread that is.

    Several threads make matrices of a hundred rows slower, by far where other work wants the processors
    too, and their results have other bits. Functions of this kind that several threads call take turns. Where
    another thread is in a limit of threadpoolctl's own meanwhile, that one counts.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _LIMIT, _CONTROLLER.limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
