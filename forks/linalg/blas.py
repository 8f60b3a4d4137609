"""Calls of LAPACK on one thread, for the small matrices of a change of the map."""

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
_BLAS = _CONTROLLER.select(user_api="blas")
_LIMIT = RLock()
"""Lock held while the number of BLAS threads, which is global to the process, is changed."""


def blas_libraries() -> list[str]:
    """Return the BLAS libraries that NumPy and SciPy bring, with version and kind of processor.

    OpenBLAS has kernels for each kind of processor, with other bits, and chooses one when it is loaded, or
    takes that of `OPENBLAS_CORETYPE`.

    Returns
    -------
    list of str
        Each library once, such as `openblas 0.3.30 Haswell`, sorted.
    """
    return sorted(
        {
            " ".join(filter(None, map(library.get, ("internal_api", "version", "architecture"))))
            for library in _BLAS.info()
        }
    )


def limit_to_one_thread() -> None:
    """Limit BLAS to one thread from here on, in a process that calls it only with this limit.

    Functions of `on_one_thread` then need not set the limit, and take it back, at each call.
    """
    with _LIMIT:
        _BLAS.limit(limits=1)


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS limited to one thread while it runs, in any Python thread.

    For matrices of a hundred rows, several BLAS threads are slower, much slower if other work needs the
    processors, and give other bits. Calls from several Python threads run one after the other. A limit of
    threadpoolctl that another thread sets meanwhile overrides this one.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _LIMIT:
            if all(library.num_threads == 1 for library in _BLAS.lib_controllers):
                return function(*args, **kwargs)  # a limit takes longer to set than an event to learn
            with _BLAS.limit(limits=1):
                return function(*args, **kwargs)

    return limited
