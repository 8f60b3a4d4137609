"""In place of an unusable snapshot the one before it is used, else all outcomes are learned again."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TypeAlias

import msgspec
import pytest
from structlog.testing import capture_logs

from pipeline.model.snapshot import SNAPSHOT_VERSION, pack
from pipeline.task.batch import Batch
from pipeline.task.task import Task
from tests.support.builders import inputs, interaction, label, new_task
from tests.support.consumer import Delivery, Step
from tests.support.output_log import OutputLog

PREVIOUS, LATEST = 1, 2
"""Of three snapshots, those that the state record names."""


@pytest.fixture
def written() -> tuple[Task, OutputLog]:
    """A task, and the log that it wrote: each snapshot is older than the outcomes after it."""
    task, log = new_task(), OutputLog()
    interactions = [interaction(n, 10 * n, n % 4, n % 5) for n in range(80)]
    delivery = Delivery(
        task, inputs(interactions, [label(n, 10 * n + 25, n % 3, n % 4, n % 5) for n in range(80)])
    )
    for number in range(8):
        delivery.deliver(Step(20, 20, False, 10))
        log.commit(task, task.advance(20), snapshot=number in {1, 3, 5})
    assert task.snapshot is not None
    assert task.previous is not None
    assert 0 < task.previous.outcomes_learned < task.snapshot.outcomes_learned < task.model.outcomes_learned
    assert (task.previous.chunks, task.snapshot.chunks) == ([PREVIOUS], [LATEST])
    assert task.previous.slot != task.snapshot.slot
    return task, log


def damage(log: OutputLog, index: int) -> str:
    """Change a bit; the SHA-256 in the state record is another then."""
    data = log.snapshots[index]
    log.snapshots[index] = data[:-1] + bytes([data[-1] ^ 1])
    return "do not have the SHA-256"


def compact_away(log: OutputLog, index: int) -> str:
    """Leave the state record without the message that it names."""
    change(log, index, chunks=[index + 100])
    return f"has no record at offset {index + 100}"


def write_as_another_version(log: OutputLog, index: int) -> str:
    """Have bytes that are whole, but of a program to come."""
    now, then = (b'"version":%d' % version for version in (SNAPSHOT_VERSION, SNAPSHOT_VERSION + 1))
    assert log.snapshots[index].count(now) == 1
    log.snapshots[index] = log.snapshots[index].replace(now, then)
    change(log, index, sha256=sha256(log.snapshots[index]).hexdigest())
    return f"has version {SNAPSHOT_VERSION + 1}"


def change(log: OutputLog, index: int, **changes: object) -> None:
    """Change what the state record holds of a snapshot."""
    assert log.state is not None
    name = "snapshot" if index == LATEST else "previous"
    reference = msgspec.structs.replace(getattr(log.state, name), **changes)
    log.state = msgspec.structs.replace(log.state, **{name: reference})


faults = pytest.mark.parametrize("fault", [damage, compact_away, write_as_another_version])
Fault: TypeAlias = Callable[[OutputLog, int], str]


@faults
def test_the_snapshot_before_is_used_in_place_of_one_that_cannot_be(
    written: tuple[Task, OutputLog], fault: Fault
) -> None:
    task, log = written
    reason = fault(log, LATEST)
    with capture_logs() as lines:
        again = log.restore()
    assert pack(again.model) == pack(task.model)
    assert (again.snapshot, again.previous) == (task.previous, None)
    [line] = lines
    assert (line["log_level"], line["event"]) == ("warning", "snapshot unusable, trying the one before it")
    assert reason in line["reason"]


@faults
def test_without_a_usable_snapshot_all_outcomes_are_learned_again(
    written: tuple[Task, OutputLog], fault: Fault
) -> None:
    task, log = written
    fault(log, LATEST)
    reason = fault(log, PREVIOUS)
    with capture_logs() as lines:
        again = log.restore()
    assert pack(again.model) == pack(task.model)
    assert (again.snapshot, again.previous) == (None, None)
    assert [line["event"].partition(", ")[2] for line in lines] == [
        "trying the one before it",
        "learning all outcomes again instead",
    ]
    assert reason in lines[-1]["reason"]


def test_a_snapshot_written_after_that_leaves_the_usable_one_in_its_slot(
    written: tuple[Task, OutputLog],
) -> None:
    task, log = written
    damage(log, LATEST)
    again = log.restore()
    log.commit(again, Batch(), snapshot=True)
    assert again.snapshot is not None
    assert again.previous is not None
    assert (again.previous.chunks, again.snapshot.slot) == ([PREVIOUS], 1 - again.previous.slot)
    damage(log, LATEST + 1)
    assert pack(log.restore().model) == pack(task.model)


def test_nothing_is_logged_where_the_previous_snapshot_is_not_needed(written: tuple[Task, OutputLog]) -> None:
    task, log = written
    damage(log, PREVIOUS)
    with capture_logs() as lines:
        again = log.restore()
    assert (again.snapshot, again.previous, lines) == (task.snapshot, task.previous, [])
