"""Which libraries the outputs were computed with: the last bits of scores depend on their versions.

Their versions stand in each state record. Where a worker goes on with others, the outputs so far may not be
derived again bit for bit, so the record also says up to where those before were in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

import msgspec
import structlog

from pipeline.task.state import MAX_LIBRARY_EPOCHS, Libraries, LibraryEpoch, State

PACKAGES: Final = ("numba", "llvmlite", "numpy", "scipy")
"""The packages that compile the arithmetic, or are it."""
NOT_NOTED: Final = "libraries that were not noted"

_log = structlog.get_logger()


class OtherLibraries(msgspec.Struct, frozen=True):
    """A part of a partition's outputs that was computed with other libraries than this process has."""

    predictions_from: int
    """Sequence of its first prediction."""
    predictions_until: int
    """Sequence after that of the last."""
    libraries: str
    """The versions that differ, and those of this process."""


@cache
def libraries_here() -> Mapping[str, str]:
    """Return the versions of the libraries of this process, by name."""
    versions = {name: version(name) for name in PACKAGES}
    return MappingProxyType(versions)


def note_libraries(state: State) -> State:
    """Return a state record whose outputs from now on are computed with the libraries of this process."""
    here, noted = dict(libraries_here()), state.libraries
    if not noted:
        noted = Libraries({})
    if noted.versions == here:
        return state
    earlier = noted.earlier
    if state.predictions:
        earlier = [*earlier, LibraryEpoch(noted.versions, state.predictions, state.outcomes)]
    if len(earlier) > MAX_LIBRARY_EPOCHS:  # the two oldest become one
        _, second, *others = earlier
        earlier = [LibraryEpoch({}, second.predictions, second.outcomes), *others]
    return msgspec.structs.replace(state, libraries=Libraries(here, earlier))


def other_libraries(state: State) -> list[OtherLibraries]:
    """Return the parts of the outputs that were computed with other libraries than this process has."""
    noted = state.libraries or Libraries({})
    last = LibraryEpoch(noted.versions, state.predictions, state.outcomes)
    return list(_others([*noted.earlier, last]))


def _others(epochs: list[LibraryEpoch]) -> Iterator[OtherLibraries]:
    begin = 0
    for epoch in epochs:
        if epoch.versions != libraries_here() and epoch.predictions > begin:
            yield OtherLibraries(begin, epoch.predictions, differing_libraries(epoch.versions) or NOT_NOTED)
        begin = epoch.predictions


def differing_libraries(versions: Mapping[str, str]) -> str:
    """Return as text which of some versions are not those of this process.

    Examples
    --------
    >>> here = libraries_here()
    >>> differing_libraries(here), differing_libraries({})
    ('', '')
    >>> differing_libraries({**here, "numpy": "1.2"}) == f"numpy 1.2 (here {here['numpy']})"
    True
    """
    here = libraries_here()
    return ", ".join(
        f"{name} {text} (here {here.get(name, 'unknown')})"
        for name, text in versions.items()
        if here.get(name) != text
    )


def warn_of_other_libraries(state: State) -> None:
    """Log a warning if the outputs so far were computed with other libraries than this process has."""
    if state.libraries and (found := differing_libraries(state.libraries.versions)):
        _warn(found)


@cache  # partitions mostly have the same
def _warn(found: str) -> None:
    _log.warning(
        "libraries differ from those of the outputs so far: scores may differ in their last bits",
        libraries=found,
        meaning="audits may find differences in what was written before; see docs/upgrading.md",
    )
