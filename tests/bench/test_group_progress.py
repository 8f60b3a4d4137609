from __future__ import annotations

import psutil
import pytest

from bench.group_progress import CommittedOffsets, Sample, Throughput, measure_throughput


def test_an_event_is_two_messages() -> None:
    throughput = Throughput.between(Sample(1.0, 500, 0.25, 0.5), Sample(3.0, 2_500, 0.75, 0.75))
    assert throughput == Throughput(events_per_s=500.0, seconds=2.0, cpu_us=500.0, broker_cpu_us=250.0)


def test_the_median_is_taken_of_each_figure() -> None:
    courses = [
        Throughput(1.0, 30.0, 5.0, 8.0),
        Throughput(2.0, 10.0, 4.0, 9.0),
        Throughput(3.0, 20.0, 6.0, 7.0),
    ]
    assert Throughput.median(courses) == Throughput(2.0, 20.0, 5.0, 8.0)


class Committed(CommittedOffsets):
    """What a group has committed, at one look after the other."""

    def __init__(self, *messages: int) -> None:
        self._messages = iter(messages)

    def messages(self) -> int:
        return next(self._messages)


@pytest.mark.parametrize(("warm_up", "events"), [(0, 5_500), (2_000, 3_500)])
def test_what_comes_first_is_not_counted(warm_up: int, events: int) -> None:
    committed = Committed(0, 1_000, 4_000, 5_000, 12_000)
    found = measure_throughput(committed, 6_000, [], psutil.Process(), warm_up=warm_up)
    assert found.events_per_s * found.seconds == pytest.approx(events)
