"""Memory of a worker over millions of events, with limits so low that each is reached early.

What is measured is whether anything grows that no limit bounds. In every chunk of events half of the users
and videos are new, a part of the labels never comes, and a few hours of stream time hold more events than
the join may remember: entities are forgotten, predictions expire early, and closed events are dropped, all
the time. Inputs are written ahead of the worker, but not by much, and the broker keeps only a part of the
topics.

Before that, the bytes of memory are counted that a waiting prediction takes, see `bench.waiting_bytes`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, Final, NamedTuple

import numpy as np
import psutil
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.deployment import Deployment, invented
from bench.event_chunks import EventChunks
from bench.group_progress import CommittedOffsets
from bench.options import Options
from bench.waiting_bytes import bytes_of_waiting
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.kafka.access.connection import Admin
from pipeline.sources.sender import Sender

EVENTS: Final = 10_000_000
CHUNK: Final = 200_000
"""Events that are written at once."""
LIMITS: Final = """\
max_entities = 10000
[join]
max_pending = 20000
max_closed = 100000
"""
RETENTION: Final = {"retention.bytes": "500000000", "segment.bytes": "100000000"}
"""Of each topic but the checkpoints; without it, ten million events take some gigabytes."""
WARM_UP: Final = 0.25
"""Share of the events after which memory should not grow any more."""
PAUSE: Final = 2.0
"""Seconds between two samples."""
STALL_TIMEOUT: Final = 120.0
"""Seconds without progress, or without an answer of the broker, after which something is wrong."""


class Sample(NamedTuple):
    """What the worker holds at one moment."""

    messages: int
    """Input messages that are processed and committed."""
    mib: float
    """Resident memory of its process."""


def run(options: Options) -> dict[str, Any]:
    """Return bytes of waiting predictions, and resident memory: after the warm-up, at the end, its slope."""
    configure()
    count = options.events or EVENTS
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder = Path(name)
        options.say("inventing events ...")
        events = invented(folder, min(CHUNK, count))
        options.say("counting the bytes of waiting predictions ...")
        waiting = bytes_of_waiting(events)
        options.say(", ".join(f"{name} {each:,g}" for name, each in waiting.items()))
        chunks = EventChunks(events)
        number = -(-count // chunks.events)
        deployment = Deployment.create(folder, bootstrap, "memory", more=LIMITS)
        _limit_retention(deployment)
        begin = time.perf_counter()
        samples = _samples(options, deployment, chunks, number)
        seconds = time.perf_counter() - begin
    per_event = chunks.events / chunks.messages
    series = [Sample(round(sample.messages * per_event), sample.mib) for sample in samples]
    warm = [sample for sample in series if sample.messages >= WARM_UP * series[-1].messages]
    return waiting | {
        "mib_per_million_events": round(1e6 * slope(warm), 3),
        "mib_after_warm_up": warm[0].mib,
        "mib_at_the_end": warm[-1].mib,
        "mib_at_most": max(sample.mib for sample in series),
        "events": number * chunks.events,
        "seconds": round(seconds),
        "load_average": round(os.getloadavg()[0], 1),
        "series": series,
    }


def slope(samples: Sequence[Sample]) -> float:
    """Return mebibytes a message by least squares, of two samples or more."""
    messages, mib = np.array(samples, dtype=np.float64).T
    return float(np.polyfit(messages, mib, 1)[0])


def _limit_retention(deployment: Deployment) -> None:
    """Let the broker delete what is old, by size."""
    changes = [
        ConfigResource(
            ResourceType.TOPIC,
            topic,
            incremental_configs=[
                ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
                for setting, value in RETENTION.items()
            ],
        )
        for topic in deployment.topics.all
        if topic != deployment.topics.checkpoints
    ]
    client = Admin(deployment.config.kafka)
    for future in client.incremental_alter_configs(changes).values():
        future.result()


def _samples(options: Options, deployment: Deployment, chunks: EventChunks, number: int) -> list[Sample]:
    """Let a worker go through so many chunks, and look at it again and again."""
    committed = CommittedOffsets(deployment.config.kafka, deployment.config.kafka.group)
    samples: list[Sample] = []
    stop = Event()
    with deployment.worker() as process, ThreadPoolExecutor(1) as feeder:
        feeding = feeder.submit(_feed, deployment, chunks, number, stop)
        changed = time.monotonic()
        try:
            while not samples or samples[-1].messages < number * chunks.messages:
                time.sleep(PAUSE)
                now = Sample(committed.messages(), round(process.memory_info().rss / 2**20, 1))
                if now.messages > (samples[-1].messages if samples else 0):
                    changed = time.monotonic()
                    samples.append(now)
                    options.say(f"{now.messages:,} messages, {now.mib} MiB")
                if feeding.done():
                    feeding.result()
                if process.status() == psutil.STATUS_ZOMBIE or time.monotonic() - changed > STALL_TIMEOUT:
                    raise SystemExit("the worker gets no further")
        finally:
            stop.set()
    return samples


def _feed(deployment: Deployment, chunks: EventChunks, number: int, stop: Event) -> None:
    """Write chunks, each when half of the one before it is processed."""
    sender = Sender(deployment.config.kafka, STALL_TIMEOUT)
    committed = CommittedOffsets(deployment.config.kafka, deployment.config.kafka.group)
    for chunk in range(number):
        while committed.messages() < sender.sent - chunks.messages // 2:
            if stop.wait(PAUSE / 10):
                return
        for topic, key, value, timestamp in chunks.records(deployment.topics, chunk):
            sender.send(topic, key, value, timestamp)
            if sender.sent % 2_000 == 0:
                sender.poll()
        sender.flush()
