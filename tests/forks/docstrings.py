"""Which public names of a package lack a docstring."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Yield all modules of a package."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def undocumented(module: ModuleType) -> list[str]:
    """Return the public functions and classes of a module that have no docstring."""
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or callable(thing))
        and getattr(thing, "__module__", None) == module.__name__
        and not (vars(thing) if inspect.isclass(thing) else {"__doc__": thing.__doc__}).get("__doc__")
    ]
