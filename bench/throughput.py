"""Events a second of a worker, beside a loop that does nothing but Kafka and JSON.

Both read the same logs of the same broker, in one partition, one after the other, and the order changes from
round to round. An event is an interaction and a label, and each leads to a record. The worker is `forks run`
with its defaults and the tables of the plays.
"""

from __future__ import annotations

from typing import Any, Final

import psutil

from bench.bare import bare, group
from bench.deployment import Deployment
from bench.group_progress import CommittedOffsets, Throughput, measure_throughput
from bench.options import Options
from bench.throughput_comparison import compare_throughput, median_ratio, pipeline

REPETITIONS: Final = 5
EVENTS: Final = 200_000
FILL_WAIT: Final = 0.05
"""Seconds that the loop waits for a batch to fill; with logs that are there, it never does."""


def run(options: Options) -> dict[str, Any]:
    """Return events a second of both, and the ratios of these and of the processor time of an event.

    All are medians over the rounds, which are listed.
    """
    result = compare_throughput(options, {"pipeline": pipeline, "bare": _bare}, EVENTS, REPETITIONS)
    ratio = median_ratio(result, "pipeline", "bare")
    return {"ratio": ratio, "cpu_ratio": median_ratio(result, "pipeline", "bare", "cpu_us"), **result}


def _bare(deployment: Deployment, count: int, broker: psutil.Process) -> Throughput:
    kafka = deployment.config.kafka
    with bare(kafka, deployment.config.worker.batch, FILL_WAIT) as process:
        return measure_throughput(
            CommittedOffsets(kafka, group(kafka)), count, [psutil.Process(process.pid)], broker
        )
