"""Memory of a worker with millions of predictions that wait for their label, and how long a restart takes.

Labels of `LABELLED` events come soon, all others much later. When all events are predicted the worker is
killed, another one restores, and the late labels of the first events come. Their predictions are in the spill
file, of which the broker's topics are the only copy at that moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import psutil

from bench.deployment import Deployment, invented
from bench.event_chunks import EventChunks
from bench.group_progress import CommittedOffsets
from bench.options import Options
from bench.recovery_worker import lines_of, moment
from bench.waiting_bytes import IN_MEMORY, bytes_in_memory
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.config.settings import Config
from pipeline.log.reader import LogReader
from pipeline.sources.sender import Sender

EVENTS: Final = 11_000_000
"""Of these, more than ten million wait in the end."""
CHUNK: Final = 200_000
"""Events that are written at once."""
LABELLED: Final = 10
"""One event in so many has its label soon, if it has one."""
AHEAD: Final = 400_000
"""Messages that are written ahead of the worker."""
PAUSE: Final = 1.0
"""Seconds between two looks at the worker."""
STALL_TIMEOUT: Final = 300.0
"""Seconds without progress after which something is wrong."""
MIB: Final = 2**20

Message = tuple[str, bytes, bytes, int]


def run(options: Options) -> dict[str, Any]:
    """Return bytes of memory for a waiting prediction by tier, resident memory, and seconds to restore."""
    configure()
    count = options.events or EVENTS
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder = Path(name)
        options.say("inventing events ...")
        chunks = EventChunks(invented(folder, min(CHUNK, count)))
        number = -(-count // chunks.events)
        limits = f'[join]\nwindow = "365d"\nmax_pending = {2 * count}\nspill_folder = "{folder}"\n'
        deployment = Deployment.create(folder, bootstrap, "waiting", more=limits)
        result = _fill(options, deployment, chunks, number)
        result |= _restore(options, deployment, chunks, int(result["messages"]))
        result["bytes_each_in_memory"] = round(_bytes_in_memory(deployment))
    return result | {"load_average": round(os.getloadavg()[0], 1)}


def _early_labels(records: Iterable[Message], labels: str, *, kept: bool) -> Iterator[Message]:
    """Pass on interactions, and of the labels those that come soon; or only the others."""
    for number, record in enumerate(records):
        if (number % LABELLED == 0) == kept if record[0] == labels else kept:
            yield record


def _fill(options: Options, deployment: Deployment, chunks: EventChunks, number: int) -> dict[str, Any]:
    """Let a worker predict everything; return its memory, and the slope of it once the file is used."""
    samples: list[tuple[int, float]] = []
    committed = CommittedOffsets(deployment.config.kafka, deployment.config.kafka.group)
    begin = time.perf_counter()
    with deployment.worker() as process, ThreadPoolExecutor(1) as feeder:
        feeding = feeder.submit(_feed, deployment, chunks, number)

        def look() -> bool:
            samples.append((committed.messages(), process.memory_info().rss))
            options.say(f"{samples[-1][0]:,} messages, {samples[-1][1] / MIB:,.0f} MiB")
            return feeding.done() and samples[-1][0] >= feeding.result()

        _until(look, process)
        seconds, file = time.perf_counter() - begin, _file_bytes(process, deployment)
        sent = feeding.result()
    events = number * chunks.events
    waiting = events - (sent - events)
    messages, rss = np.array(samples, dtype=np.float64).T
    late = messages >= 0.1 * messages[-1]
    per_message = float(np.polyfit(messages[late], rss[late], 1)[0])
    return {
        "waiting": waiting,
        "messages": sent,
        "events_per_s": round(events / seconds),
        "mib_with_all_waiting": round(samples[-1][1] / MIB),
        "mib_at_most": round(max(rss) / MIB),
        "bytes_each_spilled": round(per_message * sent / waiting),
        "bytes_each_in_file": round(file / waiting),
    }


def _feed(deployment: Deployment, chunks: EventChunks, number: int) -> int:
    """Write chunks, not far ahead of the worker; return the number of messages."""
    sender = Sender(deployment.config.kafka, STALL_TIMEOUT)
    committed = CommittedOffsets(deployment.config.kafka, deployment.config.kafka.group)
    for chunk in range(number):
        while committed.messages() < sender.sent - AHEAD:
            time.sleep(PAUSE / 10)
        _send(
            sender,
            _early_labels(chunks.records(deployment.topics, chunk), deployment.topics.labels, kept=True),
        )
    return sender.sent


def _send(sender: Sender, records: Iterable[Message]) -> None:
    for topic, key, value, timestamp in records:
        sender.send(topic, key, value, timestamp)
        if sender.sent % 2_000 == 0:
            sender.poll()
    sender.flush()


def _restore(options: Options, deployment: Deployment, chunks: EventChunks, messages: int) -> dict[str, Any]:
    """Restore, and then let the late labels of the first chunk come."""
    committed = CommittedOffsets(deployment.config.kafka, deployment.config.kafka.group)
    with deployment.worker() as process:
        options.say("restoring ...")
        largest = 0

        def restored() -> bool:
            nonlocal largest
            largest = max(largest, process.memory_info().rss)
            return bool(lines_of(deployment.log, "restored"))

        _until(restored, process)
        seconds = moment(deployment.log, "restored") - moment(deployment.log, "assigned")
        spent, mib = process.cpu_times().user, process.memory_info().rss / MIB
        sender = Sender(deployment.config.kafka, STALL_TIMEOUT)
        late = list(_early_labels(chunks.records(deployment.topics, 0), deployment.topics.labels, kept=False))
        begin = time.perf_counter()
        _send(sender, late)
        _until(lambda: committed.messages() >= messages + len(late), process, pause=PAUSE / 20)
        joined = time.perf_counter() - begin
        spent = process.cpu_times().user - spent
    return {
        "restore_s": round(seconds, 1),
        "mib_restored": round(mib),
        "mib_at_most_while_restoring": round(largest / MIB),
        "late_labels": len(late),
        "late_labels_per_s": round(len(late) / joined),
        "late_label_user_us": round(1e6 * spent / len(late), 1),
    }


def _bytes_in_memory(deployment: Deployment) -> float:
    """Return the bytes of a prediction that waits in memory, counted without those of the process."""
    config: Config = deployment.config
    with LogReader(config.kafka) as log:
        slices = log.read(deployment.topics.predictions, 0)
        texts = list[bytes]()
        while len(texts) < IN_MEMORY and (messages := next(slices)):
            texts += [message.value() or b"" for message in messages]
    return bytes_in_memory(config.join, texts)


def _file_bytes(process: psutil.Process, deployment: Deployment) -> int:
    """Return what the worker's files without a name take on disk."""
    total, folder = 0, str(deployment.file.parent)
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        target = str(descriptor.readlink())
        if target.startswith(folder) and target.endswith("(deleted)"):
            total += descriptor.stat().st_blocks * 512
    return total


def _until(reached: Callable[[], bool], process: psutil.Process, pause: float = PAUSE) -> None:
    end = time.monotonic() + 10 * STALL_TIMEOUT
    while not reached():
        if process.status() == psutil.STATUS_ZOMBIE or time.monotonic() > end:
            raise SystemExit("the worker gets no further")
        time.sleep(pause)
