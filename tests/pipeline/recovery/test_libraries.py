"""Which libraries outputs were computed with: noted in the state record, compared, and said."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from structlog.testing import capture_logs
from threadpoolctl import threadpool_info

from pipeline.recovery import libraries
from pipeline.recovery.libraries import (
    NOT_NOTED,
    OtherLibraries,
    libraries_here,
    note_libraries,
    other_libraries,
    warn_of_other_libraries,
)
from pipeline.task.state import MAX_LIBRARY_EPOCHS, Libraries, LibraryEpoch, State
from tests.support.builders import new_task


@pytest.fixture(autouse=True)
def nothing_warned_of() -> Iterator[None]:
    libraries._warn.cache_clear()
    yield
    libraries._warn.cache_clear()


def state(predictions: int, noted: Libraries | msgspec.UnsetType = msgspec.UNSET) -> State:
    empty = new_task().state({})
    return msgspec.structs.replace(empty, predictions=predictions, outcomes=predictions // 2, libraries=noted)


def versions(number: int) -> dict[str, str]:
    return {**libraries_here(), "numpy": f"0.{number}"}


def test_versions_are_those_of_this_process() -> None:
    here = libraries_here()
    assert list(here) == ["numba", "llvmlite", "numpy", "scipy", "blas"]
    assert here["numpy"] == np.__version__
    loaded = [library for library in threadpool_info() if library["user_api"] == "blas"]
    assert loaded
    for library in loaded:
        assert library["version"] in here["blas"]
        assert library.get("architecture", "") in here["blas"]
    msgspec.convert(msgspec.to_builtins(Libraries(dict(here))), Libraries)  # it may be decoded again


def test_a_record_that_noted_none_begins_an_epoch_of_unknown_ones() -> None:
    noted = note_libraries(state(10)).libraries
    assert noted == Libraries(dict(libraries_here()), [LibraryEpoch({}, 10, 5)])
    assert note_libraries(state(0)).libraries == Libraries(dict(libraries_here()))


def test_a_record_of_the_same_libraries_stays_as_it_is() -> None:
    record = note_libraries(state(10))
    assert note_libraries(msgspec.structs.replace(record, predictions=20)).libraries == record.libraries


def test_each_change_is_noted_with_the_outputs_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    record = state(0)
    for number in range(1, 4):
        monkeypatch.setattr(libraries, "libraries_here", lambda number=number: versions(number))
        record = msgspec.structs.replace(note_libraries(record), predictions=10 * number, outcomes=number)
    assert record.libraries == Libraries(
        versions(3), [LibraryEpoch(versions(1), 10, 1), LibraryEpoch(versions(2), 20, 2)]
    )
    monkeypatch.setattr(libraries, "libraries_here", lambda: versions(2))
    assert other_libraries(record) == [
        OtherLibraries(0, 10, "numpy 0.1 (here 0.2)"),
        OtherLibraries(20, 30, "numpy 0.3 (here 0.2)"),
    ]


def test_the_oldest_changes_become_one_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    record = state(0)
    for number in range(1, MAX_LIBRARY_EPOCHS + 4):
        monkeypatch.setattr(libraries, "libraries_here", lambda number=number: versions(number))
        record = msgspec.structs.replace(note_libraries(record), predictions=10 * number, outcomes=number)
    assert record.libraries
    earlier = record.libraries.earlier
    assert len(earlier) == MAX_LIBRARY_EPOCHS
    assert earlier[:2] == [LibraryEpoch({}, 30, 3), LibraryEpoch(versions(4), 40, 4)]
    assert other_libraries(record)[0] == OtherLibraries(0, 30, NOT_NOTED)


def test_one_warning_names_each_difference() -> None:
    other = {**versions(1), "blas": "openblas 0.1 Z80"}
    here = libraries_here()
    with capture_logs() as lines:
        for _ in range(2):
            warn_of_other_libraries(state(10, Libraries(other)))
    [line] = lines
    assert line["log_level"] == "warning"
    assert line["libraries"] == (
        f"numpy 0.1 (here {here['numpy']}), blas openblas 0.1 Z80 (here {here['blas']})"
    )
    assert "docs/upgrading.md" in line["meaning"]


@pytest.mark.parametrize("noted", [msgspec.UNSET, Libraries({}), "here"])
def test_there_is_none_where_nothing_differs_or_is_known(noted: Libraries | msgspec.UnsetType | str) -> None:
    with capture_logs() as lines:
        warn_of_other_libraries(
            state(10, Libraries(dict(libraries_here())) if isinstance(noted, str) else noted)
        )
    assert lines == []
