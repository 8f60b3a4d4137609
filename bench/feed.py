"""Plays that happen now: sent at a steady rate, each with its label a little later.

An event's id is the moment at which it was sent, in microseconds since 1970, so that whoever reads what came
of it knows how long that took. It runs in a process of its own, to disturb nobody's clock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Final, NamedTuple

from confluent_kafka import Producer

from pipeline.config.settings import Kafka
from pipeline.config.topics import Topics
from pipeline.kafka.access.new_client import client_settings
from pipeline.records.encoding import encode
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.sources.kuairec import Events

LABEL_DELAY: Final = 1.0
"""Seconds from an interaction to its label."""
FLUSH: Final = 30.0
"""Seconds within which the broker has to acknowledge what was sent last."""


class Play(NamedTuple):
    """What is sent of an event, but for its time and the id made from it."""

    user_id: int
    video_id: int
    video_duration: float
    play_duration: float
    watch_ratio: float


class _Due(NamedTuple):
    """A label that is to be sent at a moment of the monotonic clock."""

    moment: float
    event_id: int
    play: Play


def plays(events: Events, count: int) -> list[Play]:
    """Take so many plays from invented ones, the last of them."""
    return [Play(*row) for row in events.frame.select(Play._fields).tail(count).iter_rows()]


def feeding(kafka: Kafka, to_send: Sequence[Play], rate: int) -> BaseProcess:
    """Start to send plays, so many a second; the process ends when the last label is sent."""
    process = get_context("spawn").Process(target=feed, args=(kafka, to_send, rate), daemon=True)
    process.start()
    return process


def feed(kafka: Kafka, to_send: Sequence[Play], rate: int) -> None:
    """Send plays and their labels, each when it is due, to the input topics of one partition."""
    settings = {"linger.ms": 0, "enable.idempotence": True, "partitioner": "murmur2_random"}
    producer = Producer(client_settings(kafka) | settings)
    producer.list_topics(timeout=FLUSH)  # connected before the first play is due
    interactions, labels = Topics(kafka.prefix).inputs
    begin, event_id = time.monotonic(), 0
    owed: deque[_Due] = deque()

    def send_label() -> None:
        moment, event_id, play = owed.popleft()
        _wait(moment)
        now = time.time_ns() // 1_000_000
        label = WatchLabel(event_id, play.user_id, play.video_id, now, play.play_duration, play.watch_ratio)
        producer.produce(labels, encode(label), str(play.user_id), timestamp=now)

    for number, play in enumerate(to_send):
        due = begin + number / rate
        while owed and owed[0].moment <= due:
            send_label()
        _wait(due)
        producer.poll(0)  # takes the reports of what was delivered, which fill the queue otherwise
        event_id = max(event_id + 1, time.time_ns() // 1000)
        interaction = KuaiRecInteraction(
            event_id, play.user_id, play.video_id, event_id // 1000, play.video_duration
        )
        producer.produce(
            interactions, encode(interaction), str(play.user_id), timestamp=interaction.timestamp
        )
        owed.append(_Due(due + LABEL_DELAY, event_id, play))
    while owed:
        send_label()
    if producer.flush(FLUSH):
        raise RuntimeError(f"the broker did not take everything within {FLUSH:.0f} s")


def _wait(moment: float) -> None:
    """Sleep until a moment is less than a millisecond away: shorter sleeps cost more than they are worth."""
    if (left := moment - time.monotonic()) > 0.001:
        time.sleep(left)
