"""Messages a second of a worker where a fifth of the labels never comes, beside one where all come.

A prediction without a label becomes an outcome when it expires. A third worker may let so few predictions
wait that new ones make the oldest expire. All run in turns, over logs of the same broker, in one partition.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.deployment import Deployment, broker_process, invented
from bench.event_chunks import UNLABELLED, EventChunks
from bench.group_progress import CommittedOffsets, measure_throughput
from bench.options import Options
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.sources.kuairec import Events
from pipeline.sources.sender import Sender

REPETITIONS: Final = 5
EVENTS: Final = 200_000
WINDOW: Final = '[join]\nwindow = "10m"\n'
"""Many labels take seconds, and the logs hours."""
FULL: Final = "max_pending = 100\nmax_closed = 1000\n"
"""Less than what waits at any time, and what is remembered."""
SEND_TIMEOUT: Final = 120.0
"""Seconds without an answer of the broker after which something is wrong."""


def run(options: Options) -> dict[str, Any]:
    """Return the medians of messages a second, and of their ratios to those where all labels come."""
    configure()
    count, rounds = options.events or EVENTS, list[dict[str, float]]()
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder = Path(name)
        options.say(f"inventing {count:,} events ...")
        events = invented(folder, count)
        for number in range(options.runs or REPETITIONS):
            rates = _round(folder, bootstrap, number, events)
            rounds.append(rates)
            said = ", ".join(f"{name} {rate:,.0f} messages/s" for name, rate in rates.items())
            options.say(f"round {number + 1}: {said}")
    result: dict[str, Any] = {"events": count, "labels_missing": f"1 of {UNLABELLED}"}
    for name in rounds[0]:
        result[f"{name}_messages_per_s"] = round(median(each[name] for each in rounds))
        result[f"{name}_ratio"] = round(median(each[name] / each["all_labels"] for each in rounds), 3)
    return result | {"rounds": rounds}


def _round(folder: Path, bootstrap: str, number: int, events: Events) -> dict[str, float]:
    """Return messages a second of each, in another order in the next round."""
    logs = {
        "all_labels": (EventChunks(events, unlabelled=None), WINDOW),
        "missing": (EventChunks(events), WINDOW),
        "full": (EventChunks(events), WINDOW + FULL),
    }
    deployments = {
        name: Deployment.create(folder, bootstrap, f"{name}-{number}", more=more)
        for name, (_, more) in logs.items()
    }
    for name, (chunk, _) in logs.items():
        _send(deployments[name], chunk)
    order = [*logs] if number % 2 else [*logs][::-1]
    rates = {name: _rate(deployments[name], logs[name][0].messages) for name in order}
    return {name: rates[name] for name in logs}


def _send(deployment: Deployment, chunk: EventChunks) -> None:
    sender = Sender(deployment.config.kafka, SEND_TIMEOUT)
    for topic, key, value, timestamp in chunk.records(deployment.topics, 0):
        sender.send(topic, key, value, timestamp)
        if sender.sent % 2_000 == 0:
            sender.poll()
    sender.flush()


def _rate(deployment: Deployment, messages: int) -> float:
    kafka = deployment.config.kafka
    with deployment.worker() as process:
        committed = CommittedOffsets(kafka, kafka.group)
        return 2.0 * measure_throughput(committed, messages // 2, [process], broker_process()).events_per_s
