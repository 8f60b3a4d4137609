"""Input records that a hostile or broken producer writes, and what a running worker makes of them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from pipeline.records.names import EXCEPTION_HEADER, MESSAGE_HEADER
from tests.integration.harness import (
    TIMEOUT,
    Message,
    Pipeline,
    Written,
    input_producer,
    interactions_of,
    invented_events,
    labels_of,
    until,
)
from tests.security.refusal import Refusal

PREFIX: Final = "hostile-"
EVENTS: Final = 50
DAY: Final = 86_400_000

Spoil: TypeAlias = Callable[[Message], Message]
"""Makes a hostile record of a good one."""


def changed(message: Message, **change: object) -> Message:
    """Replace fields of a record; None takes a field away."""
    value = json.loads(message.value or b"") | change
    kept = {name: content for name, content in value.items() if content is not None}
    return message._replace(value=json.dumps(kept).encode())


def _raw(value: bytes | None) -> Spoil:
    return lambda message: message._replace(value=value)


def _field(**change: object) -> Spoil:
    return lambda message: changed(message, **change)


def _with_number(name: str, number: str) -> Spoil:
    """Write a number that Python's encoder would not."""
    return lambda message: changed(message, **{name: "HERE"})._replace(
        value=(changed(message, **{name: "HERE"}).value or b"").replace(b'"HERE"', number.encode())
    )


def _later(days: int) -> Spoil:
    def spoil(message: Message) -> Message:
        timestamp: int = json.loads(message.value or b"")["timestamp"]
        return changed(message, timestamp=timestamp + days * DAY)

    return spoil


def _next_year(message: Message) -> Message:
    return changed(message, timestamp=round(time.time() * 1000) + 365 * DAY)


BOTH: Final[dict[str, Spoil]] = {
    "not JSON": _raw(b"watch this"),
    "truncated": lambda message: message._replace(value=(message.value or b"")[:-9]),
    "not UTF-8": _raw(b'{"event_id":"\xff\xfe"}'),
    "empty": _raw(b""),
    "white space": _raw(b" \n "),
    "tombstone": _raw(None),
    "another type": _raw(b"[1,2,3]"),
    "nested 50,000 deep": _raw(b'{"a":' * 50_000),
    "two in one": lambda message: message._replace(
        value=(message.value or b"") + b"\n" + (message.value or b"")
    ),
    "500 kB of nonsense": _raw(b"x" * 500_000),
    "no event_id": _field(event_id=None),
    "event_id is true": _field(event_id=True),
    "empty event_id": _field(event_id=""),
    "event_id of 100,000 characters": _field(event_id="x" * 100_000),
    "user_id of 30 digits": _with_number("user_id", "9" * 30),
    "timestamp in words": _field(timestamp="yesterday"),
    "negative timestamp": _field(timestamp=-1),
    "timestamp a year ahead of the clock": _next_year,
    "timestamp 300 days ahead of the stream": _later(300),
    "key of another user": lambda message: message._replace(key=b"somebody"),
    "no key": lambda message: message._replace(key=None),
}
INTERACTION: Final = BOTH | {
    "negative duration": _field(video_duration=-5),
    "duration in words": _field(video_duration="long"),
    "duration of 1e999": _with_number("video_duration", "1e999"),
}
LABEL: Final = BOTH | {
    "watch_ratio is NaN": _with_number("watch_ratio", "NaN"),
    "negative watch_ratio": _field(watch_ratio=-0.5),
    "no watch_ratio": _field(watch_ratio=None),
    "negative play_duration": _field(play_duration=-1),
}


def refusals(bootstrap: str, folder: Path, replication: int = 3) -> Iterator[Refusal]:
    """Send each hostile record to a running worker, and wait for its dead letter.

    The message is the reason in the dead letter, and the exit code is the worker's after SIGTERM.
    """
    pipeline = Pipeline(bootstrap, PREFIX, folder, replication=replication)
    events = invented_events(folder, EVENTS).sort("timestamp")
    last = events.tail(1)
    pipeline.produce_events(events.head(-1))
    found: list[tuple[str, float]] = []
    producer = input_producer(bootstrap)
    with (
        pipeline.worker() as worker,
        pipeline.follow(pipeline.topics.predictions) as predictions,
        pipeline.follow(pipeline.topics.dead_letters) as dead_letters,
    ):
        until(lambda: predictions.reached(len(events) - 1), "predictions", worker)
        for name, messages, faults in (
            ("interaction", interactions_of(pipeline.topics, last), INTERACTION),
            ("label", labels_of(pipeline.topics, last), LABEL),
        ):
            good = next(messages)
            for what, spoil in faults.items():
                begin = time.monotonic()
                topic, key, value, timestamp = spoil(good)
                producer.produce(topic, value, key, timestamp=timestamp)
                assert producer.flush(TIMEOUT) == 0
                until(partial(dead_letters.reached, len(found) + 1), what, worker)
                found.append((f"{name}: {what}", time.monotonic() - begin))
        pipeline.produce_events(last)
        until(lambda: predictions.reached(len(events)), "the last prediction", worker)
    assert worker.poll() == 0
    written = pipeline.read(pipeline.topics.dead_letters)
    for (case, seconds), dead_letter in zip(found, written, strict=True):
        yield Refusal(case, 0, seconds, _reason(dead_letter))


def _reason(dead_letter: Written) -> str:
    """Return fault and reason, without what differs from run to run."""
    headers: dict[str, Any] = {name: value.decode() for name, value in dead_letter.headers}
    reason = f"dead letter, {headers[EXCEPTION_HEADER]}: {headers[MESSAGE_HEADER]}"
    return re.sub(r"\b\d{13}\b", "N", reason)
