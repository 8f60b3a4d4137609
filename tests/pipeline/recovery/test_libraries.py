"""Which arithmetic outputs were computed with: noted in the state record, compared, and said."""

from __future__ import annotations

from collections.abc import Iterator

import llvmlite
import msgspec
import numba
import pytest
from structlog.testing import capture_logs

import forks
from pipeline.recovery import libraries
from pipeline.recovery.libraries import (
    Derivable,
    OtherLibraries,
    derivable_from,
    libraries_here,
    note_libraries,
    note_older_snapshot,
    other_libraries,
    warn_of_other_libraries,
)
from pipeline.task.state import MAX_LIBRARY_EPOCHS, Libraries, LibraryEpoch, SnapshotReference, State
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
    return {**libraries_here(), "numba": f"0.{number}"}


def snapshot(outcomes_learned: int) -> SnapshotReference:
    return SnapshotReference(
        [outcomes_learned],
        f"{outcomes_learned:064x}",
        slot=0,
        outcomes_learned=outcomes_learned,
        outcome_offset=outcomes_learned,
    )


OLD = {"numba": "0.64.0", "llvmlite": "0.46.0", "numpy": "2.4.6", "scipy": "1.17.1", "blas": "openblas"}
"""What versions before the numbers noted."""


def test_the_arithmetic_and_its_compilers_are_noted() -> None:
    here = libraries_here()
    assert here == {
        "arithmetic": str(forks.ARITHMETIC),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
    }
    msgspec.convert(msgspec.to_builtins(Libraries(dict(here))), Libraries)  # it may be decoded again


@pytest.mark.parametrize("noted", [msgspec.UNSET, Libraries({}), Libraries(OLD)])
def test_a_record_without_a_number_is_of_the_arithmetic_before(
    noted: Libraries | msgspec.UnsetType,
) -> None:
    record = state(10, noted)
    [other] = other_libraries(record)
    assert (other.predictions_until, other.outcomes_until, other.other_arithmetic) == (10, 5, True)
    assert other.libraries.startswith(f"arithmetic 1 (here {forks.ARITHMETIC})")
    assert derivable_from(record) == Derivable(10, 5)
    later = msgspec.structs.replace(note_libraries(record), predictions=30, outcomes=20)
    assert derivable_from(later) == Derivable(10, 5)
    with capture_logs() as lines:
        warn_of_other_libraries(record)
        warn_of_other_libraries(later)
    [line] = lines
    assert line["log_level"] == "warning"
    assert (line["partition"], line["predictions_before"], line["outcomes_before"]) == (0, 10, 5)


def test_all_is_derivable_where_only_the_compilers_differ() -> None:
    record = state(10, Libraries(versions(1)))
    assert derivable_from(record) == Derivable(0, 0)
    assert not other_libraries(record)[0].other_arithmetic


def test_a_worker_of_another_arithmetic_that_has_only_learned_ends_what_is_derivable() -> None:
    here = dict(libraries_here())
    record = state(30, Libraries(here, [LibraryEpoch(here, 20, 8), LibraryEpoch(OLD, 20, 12)]))
    [other] = other_libraries(record)
    assert (other.predictions_from, other.predictions_until, other.outcomes_until) == (20, 20, 12)
    assert derivable_from(record) == Derivable(20, 12)


def test_an_older_snapshot_than_the_one_named_begins_another_epoch_where_it_learns_anew() -> None:
    named, before = snapshot(10), snapshot(4)
    taken_up = note_libraries(state(20, Libraries(OLD)))
    later = msgspec.structs.replace(taken_up, predictions=50, outcomes=30)
    for record, found, first in (
        (later, named, Derivable(20, 10)),  # the one named
        (later, before, Derivable(50, 30)),  # outcomes 4 to 9 are learned again, with other bits
        (later, None, Derivable(50, 30)),
        (later, snapshot(12), Derivable(20, 10)),  # it has learned all that was learned otherwise
        (taken_up, before, Derivable(20, 10)),  # nothing was written since
        (note_libraries(state(0)), None, Derivable(0, 0)),
    ):
        noted = note_older_snapshot(msgspec.structs.replace(record, snapshot=found), named)
        assert derivable_from(noted) == first
        assert noted.libraries
        assert noted.libraries.versions == libraries_here()


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
        OtherLibraries(0, 10, 1, "numba 0.1 (here 0.2)", False),
        OtherLibraries(20, 30, 3, "numba 0.3 (here 0.2)", False),
    ]


def test_the_oldest_changes_become_one_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    record = state(0)
    for number in range(1, MAX_LIBRARY_EPOCHS + 4):
        monkeypatch.setattr(libraries, "libraries_here", lambda number=number: versions(number))
        record = msgspec.structs.replace(note_libraries(record), predictions=10 * number, outcomes=number)
    assert record.libraries
    earlier = record.libraries.earlier
    assert len(earlier) == MAX_LIBRARY_EPOCHS
    same = {"arithmetic": libraries_here()["arithmetic"]}
    assert earlier[:2] == [LibraryEpoch(same, 30, 3), LibraryEpoch(versions(4), 40, 4)]
    assert derivable_from(record) == Derivable(0, 0)


def test_one_of_them_keeps_its_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    record = note_libraries(state(5, Libraries(OLD)))
    for number in range(1, MAX_LIBRARY_EPOCHS + 2):
        monkeypatch.setattr(libraries, "libraries_here", lambda number=number: versions(number))
        record = msgspec.structs.replace(note_libraries(record), predictions=10 * number, outcomes=number)
    assert record.libraries
    assert record.libraries.earlier[0].versions == {"arithmetic": "mixed"}
    assert derivable_from(record) == Derivable(10, 1)


def test_one_warning_names_each_difference() -> None:
    here = libraries_here()
    other = {**versions(1), "llvmlite": "0.2", "numpy": "0.3"}
    with capture_logs() as lines:
        for _ in range(2):
            warn_of_other_libraries(state(10, Libraries(other)))
    [line] = lines
    assert line["log_level"] == "warning"
    assert line["libraries"] == f"numba 0.1 (here {here['numba']}), llvmlite 0.2 (here {here['llvmlite']})"
    assert "docs/upgrading.md" in line["meaning"]


@pytest.mark.parametrize("predictions", [0, 10])
def test_there_is_none_where_nothing_differs_or_was_predicted(predictions: int) -> None:
    with capture_logs() as lines:
        noted = Libraries(dict(libraries_here())) if predictions else msgspec.UNSET
        warn_of_other_libraries(state(predictions, noted))
    assert lines == []
