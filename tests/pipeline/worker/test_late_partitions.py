from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from pipeline.task.aligned_inbox import AlignedInbox
from pipeline.task.inbox import Inbox
from pipeline.task.sharing import SharingSettings
from pipeline.worker import late_partitions
from pipeline.worker.late_partitions import LatePartitions
from tests.pipeline.worker.test_throttle import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(late_partitions, "time", clock)
    return clock


def test_who_is_behind_is_waited_for_and_then_named(clock: Clock) -> None:
    inbox = AlignedInbox(1, SharingSettings(3, 20, align=1_000), {}, {}, stream_time=5_000)
    waits, waiting = LatePartitions(1, max_wait=3_000), []
    with capture_logs() as logs:
        for seconds in (0.0, 2.9, 0.2, 0.0):
            clock.now += seconds
            waits.check(inbox)
            waiting.append((waits.waiting, inbox.ready, len(logs)))
    assert waiting == [(True, False, 0), (True, False, 0), (False, True, 1), (False, True, 1)]
    assert (logs[0]["partition"], logs[0]["missing"]) == (1, [0, 2])


def test_each_wait_begins_anew(clock: Clock) -> None:
    inbox = AlignedInbox(0, SharingSettings(2, 20, align=1_000), {}, {}, stream_time=5_000)
    waits, waiting = LatePartitions(0, max_wait=3_000), []
    with capture_logs() as logs:
        for given in (inbox, Inbox(0, {}), inbox, inbox):  # the second one waits for nobody
            waits.check(given)
            waiting.append(waits.waiting)
            clock.now += 2.0
    assert waiting == [True, False, True, True]
    assert not logs
