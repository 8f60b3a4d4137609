"""A follower beside a worker: answers derived again, their age, and what it costs the worker."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.deployment import invented
from bench.follower_age import measure_age
from bench.follower_cost import measure_cost
from bench.follower_proof import derive_again
from bench.options import Options
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure

EVENTS: Final = 200_000
"""Events of the logs that are there."""


def run(options: Options) -> dict[str, Any]:
    """Return how many answers were derived again, ages, and throughputs."""
    configure()
    count = options.events or EVENTS
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder = Path(name)
        options.say(f"inventing {count:,} events ...")
        events = invented(folder, count)
        return {
            "cores": os.cpu_count(),
            "proof": derive_again(options, folder, bootstrap, events),
            "age": measure_age(options, folder, bootstrap, events),
            "cost": measure_cost(options, folder, bootstrap, events),
            "load_average": round(os.getloadavg()[0], 1),
        }
