"""Which arithmetic the outputs were computed with: the last bits of scores depend on it.

Each state record has the number of this program's arithmetic, `forks.ARITHMETIC`, and the versions of the
compiler of its loops. Where a worker goes on with others, the outputs so far may not be derived again bit for
bit, so the record also says up to where those before were in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

import msgspec
import structlog

from forks import ARITHMETIC
from pipeline.task.state import MAX_LIBRARY_EPOCHS, Libraries, LibraryEpoch, SnapshotReference, State

COMPILERS: Final = ("numba", "llvmlite")
"""The packages that compile the arithmetic."""
NAME: Final = "arithmetic"
"""Name of the number of the arithmetic among the versions."""
ARITHMETIC_HERE: Final = str(ARITHMETIC)
"""The arithmetic of this process."""
BEFORE_NUMBERS: Final = "1"
"""The arithmetic of records that name none: that of LAPACK, BLAS and the C library."""

MIXED: Final = MappingProxyType({NAME: "mixed"})
"""The versions of outputs whose model had learned in several arithmetics."""

_log = structlog.get_logger()


class OtherLibraries(msgspec.Struct, frozen=True):
    """A part of a partition's outputs that was computed otherwise than this process computes."""

    predictions_from: int
    """Sequence of its first prediction."""
    predictions_until: int
    """Sequence after that of the last; it may have made none, and have learned outcomes all the same."""
    outcomes_until: int
    """Sequence after that of its last outcome."""
    libraries: str
    """The versions that differ, and those of this process."""
    other_arithmetic: bool
    """Whether the arithmetic was another, so that its predictions cannot be derived again bit for bit."""


@cache
def libraries_here() -> Mapping[str, str]:
    """Return the arithmetic of this process, and the versions of the packages that compile it, by name."""
    return MappingProxyType({NAME: ARITHMETIC_HERE} | {name: version(name) for name in COMPILERS})


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
        first, second, *others = earlier
        arithmetics = {_arithmetic_of(each.versions) for each in (first, second)}
        versions = {NAME: arithmetics.pop()} if len(arithmetics) == 1 else dict(MIXED)
        earlier = [LibraryEpoch(versions, second.predictions, second.outcomes), *others]
    return msgspec.structs.replace(state, libraries=Libraries(here, earlier))


def note_older_snapshot(state: State, named: SnapshotReference | None) -> State:
    """Return a state record whose outputs from now on are those of the model of its snapshot.

    From an older snapshot, outcomes that were learned with another arithmetic are learned again. The model
    then has other last bits than the one so far, so that another epoch begins.

    Parameters
    ----------
    state
        The record, with the snapshot that could be used.
    named
        The snapshot that it named before.
    """
    first, outcomes_learned = derivable_from(state), state.snapshot.outcomes_learned if state.snapshot else 0
    if (
        state.snapshot == named
        or outcomes_learned >= first.outcomes
        or first.predictions == state.predictions
    ):
        return state
    noted = Libraries(dict(MIXED), state.libraries.earlier if state.libraries else [])
    return note_libraries(msgspec.structs.replace(state, libraries=noted))


def other_libraries(state: State) -> list[OtherLibraries]:
    """Return the parts of the outputs that were computed with other libraries than this process has."""
    noted = state.libraries or Libraries({})
    last = LibraryEpoch(noted.versions, state.predictions, state.outcomes)
    return list(_others([*noted.earlier, last]))


def _others(epochs: list[LibraryEpoch]) -> Iterator[OtherLibraries]:
    begin = 0, 0
    for epoch in epochs:
        end = epoch.predictions, epoch.outcomes
        if end > begin and (differing := differing_libraries(epoch.versions)):
            yield OtherLibraries(begin[0], *end, differing, _is_other_arithmetic(epoch.versions))
        begin = end


class Derivable(msgspec.Struct, frozen=True):
    """From where on outputs were computed with the arithmetic of this process."""

    predictions: int
    """Sequence of the first prediction."""
    outcomes: int
    """Sequence of the first outcome."""


def derivable_from(state: State) -> Derivable:
    """Return from where on this process can derive the outputs again bit for bit; 0 and 0 for all of them."""
    others = [each for each in other_libraries(state) if each.other_arithmetic]
    if not others:
        return Derivable(0, 0)
    return Derivable(others[-1].predictions_until, others[-1].outcomes_until)


def differing_libraries(versions: Mapping[str, str]) -> str:
    """Return as text which of some versions are not those of this process.

    Examples
    --------
    >>> here = libraries_here()
    >>> differing_libraries(here)
    ''
    >>> differing_libraries({**here, "numba": "0.1"}) == f"numba 0.1 (here {here['numba']})"
    True
    >>> differing_libraries({"numpy": "1.2"}) == f"arithmetic 1 (here {here['arithmetic']})"
    True
    """
    noted = {NAME: BEFORE_NUMBERS, **versions}
    return ", ".join(
        f"{name} {noted[name]} (here {text})"
        for name, text in libraries_here().items()
        if noted.get(name, text) != text
    )


def arithmetic_of(state: State) -> str:
    """Return the arithmetic of a state record's newest outputs."""
    return _arithmetic_of(state.libraries.versions if state.libraries else {})


def _arithmetic_of(versions: Mapping[str, str]) -> str:
    return versions.get(NAME, BEFORE_NUMBERS)


def _is_other_arithmetic(versions: Mapping[str, str]) -> bool:
    return _arithmetic_of(versions) != ARITHMETIC_HERE


def warn_of_other_libraries(state: State) -> None:
    """Log a warning if the outputs so far were computed with other libraries than this process has."""
    versions = state.libraries.versions if state.libraries else {}
    if not state.predictions or not (found := differing_libraries(versions)):
        return
    if _is_other_arithmetic(versions):
        _log.warning(
            "outputs have other last bits from here on: the arithmetic is another",
            partition=state.partition,
            outcomes_before=state.outcomes,
            predictions_before=state.predictions,
            libraries=found,
            meaning="the state is kept; audits derive again what is written from here on; "
            "see docs/upgrading.md",
        )
    else:
        _warn(found)


@cache  # partitions mostly have the same
def _warn(found: str) -> None:
    _log.warning(
        "libraries differ from those of the outputs so far: scores may differ in their last bits",
        libraries=found,
        meaning="audits may find differences in what was written before; see docs/upgrading.md",
    )
