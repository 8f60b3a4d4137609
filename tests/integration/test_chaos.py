from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.report import Options
from tests.chaos.run import run
from tests.chaos.schedule import BROKER_RATES, WORKER_RATES


@pytest.mark.chaos
@pytest.mark.slow
def test_faults_of_every_kind_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """A short `make chaos`: workers and broker are killed, stopped and started again under way."""
    options = Options(
        seed=7, minutes=0.4, events=6_000, partitions=3, workers=2, challengers=True, policy=True
    )
    report = run(options, tmp_path, print)
    assert report.problems == []
    assert all(report.faults[fault] >= 1 for fault in WORKER_RATES | BROKER_RATES)
    assert report.rebalances >= 1
    assert report.recoveries
    assert (report.found.predictions, report.found.outcomes) == (6_003, 6_003)
