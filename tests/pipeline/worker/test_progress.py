from __future__ import annotations

from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from pipeline.config.settings import Config
from pipeline.kafka.committed import CommittedPosition
from pipeline.task.task import Task
from pipeline.worker import progress
from pipeline.worker.partition import Partition
from pipeline.worker.progress import LOG_INTERVAL, Progress
from tests.support.builders import inputs, interaction, new_task, run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def partition_with(*steps: Task | int) -> Partition:
    """A partition whose restoration has come as far as these steps."""
    partition = Partition(3, Config(), lambda _, **__: (step for step in steps))
    partition.assign(CommittedPosition(0, 0, None))
    for _ in steps:
        partition.restore()
    return partition


def test_what_was_restored_is_no_progress(clock: SimpleNamespace) -> None:
    done, _ = run(inputs([interaction(n, n) for n in range(5)], []))
    progress_log = Progress()
    progress_log.begin(done)
    clock.seconds += LOG_INTERVAL
    with capture_logs() as lines:
        progress_log.report([partition_with(done)])
    assert lines == []


def test_progress_is_logged_when_it_is_due_and_not_before(clock: SimpleNamespace) -> None:
    progress_log = Progress()
    progress_log.begin(new_task())
    done, _ = run(inputs([interaction(n, n) for n in range(20)], []))
    partitions = [partition_with(done), partition_with(700)]
    clock.seconds += LOG_INTERVAL / 2
    with capture_logs() as lines:
        progress_log.report(partitions)
        assert lines == []
        clock.seconds += LOG_INTERVAL / 2
        progress_log.report(partitions)
        progress_log.report(partitions)
    restoring = {"event": "restoring", "partition": 3, "records_left": 700, "log_level": "info"}
    worked = {
        "event": "progress",
        "predictions": 20,
        "outcomes": 0,
        "predictions_per_s": 2,
        "log_level": "info",
    }
    assert lines == [restoring, worked]
