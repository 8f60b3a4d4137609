"""Compile with Numba, and keep what was compiled on disk where a folder for it can be written.

Numba refuses to import a module whose functions it cannot cache, as with a read-only file system or another
user. Here they are compiled anew in each process instead, which takes 30 to 40 s.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])
Scalar = TypeVar("Scalar", bound=np.generic)
ZERO: Final = cast("int", np.int64(0))
"""A zero that is no literal: for a literal argument, Numba would compile a function once more."""
TRUE: Final = cast("bool", np.bool_(True))
FALSE: Final = cast("bool", np.bool_(False))
"""The same as truth values."""
MARKS: Final = (b"njit", b"intrinsic")
"""What a file has if its code is compiled: functions, or the instructions that they are made of."""


@functools.cache
def _warn() -> None:
    warnings.warn(
        "no folder for compiled code can be written: each start compiles anew. "
        "Set NUMBA_CACHE_DIR to a folder that this user may write",
        RuntimeWarning,
        stacklevel=3,
    )


@functools.cache
def _sources(package: str) -> str:
    """Return a digest of the files whose code is compiled, of a package and of this one.

    The code of a function contains that of others, also from other files, and the constants that these name.
    Numba looks at the function's own file alone, and would go on with the former code of those that have
    changed, which may have other bits. A test holds that nothing compiled comes from a file without a mark.
    """
    digest = hashlib.sha256()
    folders = {Path(__file__).parent, *map(Path, getattr(sys.modules[package], "__path__", ()))}
    for folder in sorted(folders):
        for file in sorted(folder.rglob("*.py")):
            text = file.read_bytes()
            if any(mark in text for mark in MARKS):
                digest.update(text)
    return digest.hexdigest()


def njit(*, cache: bool, allocates: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function.

    Parameters
    ----------
    cache
        Keep the compiled code on disk. Without a folder that can be written it is kept in memory, with one
        warning for the process.
    allocates
        Let the function create arrays and lists, return arrays and views of them, and call functions that
        do. For all others, references to arrays are not counted: Numba does so with atomic operations at
        each call, which take most of the time of a small function. A function with ``inline="always"`` may
        return views without this, but not to Python.
    **options
        Further options of `numba.njit`.
    """
    if not allocates:
        # Numba's maintainers recommend this option for code without allocations, but do not document it. A
        # release without it fails at the import.
        options["_nrt"] = False
    options["no_cfunc_wrapper"] = True  # no function is passed to another one or to C

    def compiled(function: Function) -> Function:
        dispatcher = numba.njit(**options)(function)
        if cache:
            try:
                dispatcher.enable_caching()
            except RuntimeError:  # no folder: Numba has no class of its own for this
                _warn()
            else:
                dispatcher._cache._cache_file._source_stamp = _sources(function.__module__.partition(".")[0])
        return cast("Function", dispatcher)

    return compiled


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a view that cannot be written to: for others, Numba would compile a function once more.

    Examples
    --------
    >>> read_only(np.zeros(1)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def cache_folder(function: Callable[..., Any]) -> Path | None:
    """Return the folder that keeps the compiled code of a function of `njit`, or None for none.

    Examples
    --------
    >>> cache_folder(njit(cache=False)(lambda: 0)) is None
    True
    """
    stats: Any = cast("Any", function).stats
    return Path(stats.cache_path) if stats.cache_path else None
