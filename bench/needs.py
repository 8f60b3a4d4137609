"""What so many events a second take, from what one event was measured to take."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

REPLICAS: Final = 3
BUSY: Final = 0.5
"""Share of each core that is used; the rest is for peaks and for catching up."""
DAY: Final = 86_400


@dataclass(frozen=True)
class Event:
    """Figures of one event: an interaction and a label, a prediction and an outcome.

    Parameters
    ----------
    worker_cpu_us : microseconds of the processors in the worker's process
    broker_cpu_us : the same in the broker's process
    input_bytes : of interaction and label on the broker's disk
    output_bytes : of prediction and outcome, and of state records and snapshots
    """

    worker_cpu_us: float
    broker_cpu_us: float
    input_bytes: float
    output_bytes: float


def needs(event: Event, rate: int) -> dict[str, float]:
    """Return what so many events a second take, with each core `BUSY`, in `REPLICAS` copies.

    A worker is taken to have one core: its threads are more, but one of them does nearly all. Followers fetch
    what leaders got, and workers fetch inputs once. A follower is taken to work as much as a leader, which is
    more than it does.
    """
    written = rate * (event.input_bytes + event.output_bytes)
    return {
        "workers": ceil(rate * event.worker_cpu_us / (1e6 * BUSY)),
        "broker_cores": REPLICAS * rate * event.broker_cpu_us / (1e6 * BUSY),
        "brokers_in_mb_per_s": REPLICAS * written / 1e6,
        "brokers_out_mb_per_s": ((REPLICAS - 1) * written + rate * event.input_bytes) / 1e6,
        "disk_tb_per_day": REPLICAS * written * DAY / 1e12,
    }
