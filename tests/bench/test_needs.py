from __future__ import annotations

import pytest

from bench.needs import BUSY, DAY, REPLICAS, Event, needs


def test_what_a_rate_takes_follows_from_one_event() -> None:
    event = Event(worker_cpu_us=20.0, broker_cpu_us=10.0, input_bytes=100.0, output_bytes=400.0)
    found = needs(event, 1_000_000)
    assert (BUSY, REPLICAS) == (0.5, 3)
    assert found["workers"] == 40  # 20 s of work in each second, by workers that are busy for half of it
    assert found["broker_cores"] == pytest.approx(60.0)
    assert found["brokers_in_mb_per_s"] == pytest.approx(1_500.0)
    assert found["brokers_out_mb_per_s"] == pytest.approx(1_100.0)  # two followers, and workers read inputs
    assert found["disk_tb_per_day"] == pytest.approx(1_500.0 * DAY / 1e6)
