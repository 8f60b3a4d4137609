from __future__ import annotations

from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from pipeline.worker import progress
from pipeline.worker.progress import LOG_INTERVAL, Progress
from tests.support.builders import inputs, interaction, new_task, run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def test_what_was_restored_is_no_progress(clock: SimpleNamespace) -> None:
    done, _ = run(inputs([interaction(n, n) for n in range(5)], []))
    said = Progress()
    said.begin(done)
    clock.seconds += LOG_INTERVAL
    with capture_logs() as lines:
        said.report([done], {})
    assert lines == []


def test_progress_is_logged_when_it_is_due_and_not_before(clock: SimpleNamespace) -> None:
    said = Progress()
    said.begin(new_task())
    done, _ = run(inputs([interaction(n, n) for n in range(20)], []))
    clock.seconds += LOG_INTERVAL / 2
    with capture_logs() as lines:
        said.report([done], {3: 700})
        assert lines == []
        clock.seconds += LOG_INTERVAL / 2
        said.report([done], {3: 700})
        said.report([done], {3: 700})
    restoring = {"event": "restoring", "partition": 3, "records_left": 700, "log_level": "info"}
    worked = {
        "event": "progress",
        "predictions": 20,
        "outcomes": 0,
        "predictions_per_s": 2,
        "log_level": "info",
    }
    assert lines == [restoring, worked]
