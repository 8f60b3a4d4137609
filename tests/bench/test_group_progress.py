from __future__ import annotations

from bench.group_progress import Sample, Throughput


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
