"""Contenders that go through the same logs of the same broker, one after the other, for some rounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import psutil

from bench.deployment import Deployment, broker_process, invented
from bench.group_progress import CommittedOffsets, Throughput, measure_throughput
from bench.options import Options
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure

Candidate: TypeAlias = Callable[[Deployment, int, psutil.Process], Throughput]
"""Goes through so many events of a stage, with a broker's process."""


def compare_throughput(
    options: Options, candidates: Mapping[str, Candidate], count: int, repetitions: int, warm_up: int = 0
) -> dict[str, Any]:
    """Let all go through logs of one partition, in another order in the next round.

    Parameters
    ----------
    options
        Numbers of rounds and events that differ from those given.
    candidates
        By name.
    count
        Events that are measured.
    repetitions
        How many rounds.
    warm_up
        Events before them in the logs, which candidates do not count.

    Returns
    -------
    dict
        Of each program the medians over the rounds, then all rounds.
    """
    configure()
    count, found = options.events or count, []
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder, broker = Path(name), broker_process()
        options.say(f"inventing {warm_up + count:,} events ...")
        events = invented(folder, warm_up + count)
        for number in range(options.runs or repetitions):
            deployment = Deployment.create(folder, bootstrap, f"round-{number}")
            deployment.send(events)
            order = list(candidates) if number % 2 else list(candidates)[::-1]
            throughputs = {name: candidates[name](deployment, warm_up + count, broker) for name in order}
            found.append(throughputs)
            rates = ", ".join(f"{name} {one.events_per_s:,.0f} events/s" for name, one in throughputs.items())
            options.say(f"round {number + 1}: {rates}")
    result: dict[str, Any] = {
        "events": count,
        "warm_up": warm_up,
        "batch": deployment.config.worker.batch,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }
    for candidate in candidates:
        middle = Throughput.median([throughputs[candidate] for throughputs in found])
        result |= {f"{candidate}_{figure}": value for figure, value in middle.figures().items()}
    result["rounds"] = [{name: one.figures() for name, one in throughputs.items()} for throughputs in found]
    return result


def median_ratio(result: Mapping[str, Any], one: str, other: str, figure: str = "events_per_s") -> float:
    """Return the median over the rounds of the ratio of two candidates, which a machine's pace leaves alone.

    Parameters
    ----------
    result
        That of `compare_throughput`.
    one, other
        The candidates.
    figure
        Of which the ratio is.

    Examples
    --------
    >>> rounds = [{"a": {"cpu_us": 3.0}, "b": {"cpu_us": 2.0}}, {"a": {"cpu_us": 6.0}, "b": {"cpu_us": 4.0}}]
    >>> median_ratio({"rounds": rounds}, "a", "b", "cpu_us")
    1.5
    """
    ratios: list[float] = [each[one][figure] / each[other][figure] for each in result["rounds"]]
    return round(median(ratios), 3)


def pipeline(deployment: Deployment, count: int, broker: psutil.Process, warm_up: int = 0) -> Throughput:
    """Let a worker go through the logs: `forks run` with its defaults and the tables of the plays."""
    kafka = deployment.config.kafka
    with deployment.worker() as process:
        committed = CommittedOffsets(kafka, kafka.group)
        return measure_throughput(committed, count, [process], broker, warm_up=warm_up)


def with_own_outputs(inputs: Deployment, name: str, more: str = "") -> Deployment:
    """Create a deployment that reads the inputs of another one, and has outputs of its own.

    Parameters
    ----------
    inputs
        The other one.
    name
        Behind that of the other one, its name.
    more
        Further sections of its configuration, as TOML.
    """
    kafka = inputs.config.kafka
    own = f"{inputs.file.stem}-{name}"
    return Deployment.create(inputs.file.parent, kafka.bootstrap, own, input_prefix=kafka.prefix, more=more)
