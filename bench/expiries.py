"""What an event costs a worker where a stream is not the simplest one, beside one where it is.

The simplest: every label comes, once. In the others a fifth of the labels never comes, so that predictions
become outcomes as they expire; or so few predictions may wait that new ones make the oldest expire; or a
fifth of the labels comes twice, and the second ones correct; or a policy asks for some of the labels; or
videos are shown four at a time. All run in turns, over logs of the same broker, in one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from bench.deployment import Deployment, broker_process, invented
from bench.event_chunks import UNLABELLED, EventChunks
from bench.group_progress import CommittedOffsets, measure_throughput
from bench.options import Options
from pipeline.broker.temporary import temporary_broker
from pipeline.cli.logs import configure
from pipeline.config.topics import Topics
from pipeline.sources.kuairec import Events
from pipeline.sources.sender import Sender

REPETITIONS: Final = 5
EVENTS: Final = 200_000
WINDOW: Final = '[join]\nwindow = "10m"\n'
"""Many labels take seconds, and the logs hours."""
FULL: Final = "max_pending = 100\nmax_closed = 1000\n"
"""Less than what waits at any time, and what is remembered."""
CORRECTED: Final = 5
"""One label in so many comes twice, where labels are corrected."""
LABEL_DELAY: Final = 60_000
"""Milliseconds that labels take longer which somebody is asked for."""
SLATE: Final = 4
"""Videos that are shown together."""
SLATES: Final = """
[stream]
name = "slates"
entities = { user_id = "/user_id", video_id = "/video_id" }
[stream.interactions]
topic = "interactions"
event_id = "/event_id"
time = "/timestamp"
items = "/items"
item_fields = ["video_id", "video_duration"]
numbers = { video_duration = "/video_duration" }
[stream.labels]
topic = "watch-labels"
event_id = "/event_id"
time = "/timestamp"
value = "/watch_ratio"
numbers = { play_duration = "/play_duration" }
[stream.target]
name = "watch_ratio"
above = 0.75
cap = 2.0
scale = 0.75
"""
"""KuaiRec's stream with lists of videos."""
SEND_TIMEOUT: Final = 120.0
"""Seconds without an answer of the broker after which something is wrong."""

LogRecord: TypeAlias = tuple[str, bytes, bytes, int]


class Variant(NamedTuple):
    """A stream: its log, as it is made of that of the simplest stream, and its worker's settings."""

    make: Callable[[Iterable[LogRecord]], Iterable[LogRecord]]
    settings: str = WINDOW
    unlabelled: int | None = None


def run(options: Options) -> dict[str, Any]:
    """Return the medians of what an event costs, and of how many times that of the simplest stream it is."""
    configure()
    count, rounds = options.events or EVENTS, list[dict[str, dict[str, float]]]()
    with TemporaryDirectory() as name, temporary_broker() as bootstrap:
        folder = Path(name)
        options.say(f"inventing {count:,} events ...")
        events = invented(folder, count)
        for number in range(options.runs or REPETITIONS):
            costs = _round(folder, bootstrap, number, events)
            rounds.append(costs)
            said = ", ".join(f"{name} {each['cpu_us']:.1f} us" for name, each in costs.items())
            options.say(f"round {number + 1}, of the processor an event: {said}")
    result: dict[str, Any] = {"events": count, "labels_missing": f"1 of {UNLABELLED}"}
    for name in rounds[0]:
        for figure in ("cpu_us", "us"):
            result[f"{name}_{figure}"] = round(median(each[name][figure] for each in rounds), 2)
            ratios = [each[name][figure] / each["all_labels"][figure] for each in rounds]
            result[f"{name}_{figure}_ratio"] = round(median(ratios), 3)
    return result | {"rounds": rounds}


def _round(folder: Path, bootstrap: str, number: int, events: Events) -> dict[str, dict[str, float]]:
    """Return what an event of each stream costs; another one is the first in the next round."""
    deployments, sent = dict[str, Deployment](), dict[str, tuple[int, int]]()
    for name, variant in VARIANTS.items():
        each = Deployment.create(folder, bootstrap, f"{name}-{number}", more=variant.settings)
        records = EventChunks(events, variant.unlabelled).records(each.topics, 0)
        deployments[name], sent[name] = each, _send(each, variant.make(records))
    names = [*VARIANTS]
    order = names[number % len(names) :] + names[: number % len(names)]
    costs = {name: _cost(deployments[name], *sent[name]) for name in order}
    return {name: costs[name] for name in VARIANTS}


def _send(deployment: Deployment, records: Iterable[LogRecord]) -> tuple[int, int]:
    """Write the records, and return how many there are, and how many predictions they need."""
    sender, predictions = Sender(deployment.config.kafka, SEND_TIMEOUT), 0
    for topic, key, value, timestamp in records:
        sender.send(topic, key, value, timestamp)
        if topic == deployment.topics.interactions:
            predictions += len(orjson.loads(value).get("items", " "))
        if sender.sent % 2_000 == 0:
            sender.poll()
    sender.flush()
    return sender.sent, predictions


def _cost(deployment: Deployment, messages: int, predictions: int) -> dict[str, float]:
    """Return the time that a prediction takes with all that comes of it, and that of the processor."""
    kafka = deployment.config.kafka
    with deployment.worker() as process:
        committed = CommittedOffsets(kafka, kafka.group)
        found = measure_throughput(committed, messages // 2, [process], broker_process())
    pairs = messages / 2 / predictions
    return {"us": 1e6 * pairs / found.events_per_s, "cpu_us": pairs * found.cpu_us}


def _corrected(records: Iterable[LogRecord]) -> Iterator[LogRecord]:
    """Yield the records, and behind some labels another one with another value."""
    for number, (topic, key, value, timestamp) in enumerate(records):
        yield topic, key, value, timestamp
        if number % CORRECTED == 0 and topic.endswith(Topics().labels):
            label = orjson.loads(value)
            other = {"timestamp": timestamp + 1, "watch_ratio": label["watch_ratio"] + 0.5}
            yield topic, key, orjson.dumps(label | other), timestamp + 1


def _later(records: Iterable[LogRecord]) -> Iterator[LogRecord]:
    """Let labels come later, as those do which somebody is asked for."""
    for topic, key, value, timestamp in records:
        if topic.endswith(Topics().labels):
            label, time = orjson.loads(value), timestamp + LABEL_DELAY
            yield topic, key, orjson.dumps(label | {"timestamp": time}), time
        else:
            yield topic, key, value, timestamp


def _slates(records: Iterable[LogRecord]) -> Iterator[LogRecord]:
    """Show the videos of some interactions that follow one another together."""
    slates, labels = dict[int, dict[str, Any]](), list[LogRecord]()
    topic, shown = "", set[tuple[int, int]]()
    for name, _, value, timestamp in records:
        event = orjson.loads(value)
        number, video = event["event_id"] // SLATE, event["video_id"]
        if not name.endswith(Topics().labels):
            topic, item = name, {each: event.pop(each) for each in ("video_id", "video_duration")}
            slate = slates.setdefault(number, event | {"event_id": number, "items": []})
            if (number, video) not in shown:
                shown.add((number, video))
                slate["items"].append(item)
        elif (number, video) in shown:
            label = event | {"event_id": number, "user_id": slates[number]["user_id"]}
            labels.append((name, str(label["user_id"]).encode(), orjson.dumps(label), timestamp))
    for slate in slates.values():
        yield topic, str(slate["user_id"]).encode(), orjson.dumps(slate), slate["timestamp"]
    yield from labels


POLICY: Final = WINDOW + '[labels]\npolicy = "{}"\nrate = 0.2\n'
VARIANTS: Final = {
    "all_labels": Variant(iter),
    "missing": Variant(iter, unlabelled=UNLABELLED),
    "full": Variant(iter, WINDOW + FULL, UNLABELLED),
    "corrections": Variant(_corrected, WINDOW + 'corrections = "replace"\n'),
    "random": Variant(iter, POLICY.format("random")),
    "margin": Variant(_later, POLICY.format("margin")),
    "margin_quick_labels": Variant(iter, POLICY.format("margin")),
    "adaptive": Variant(_later, POLICY.format("adaptive")),
    "slates": Variant(_slates, WINDOW + SLATES),
}
"""The streams by their names."""
