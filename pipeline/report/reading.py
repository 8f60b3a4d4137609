"""A run from its topics: only what the figures need, so that a long one fits into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
import numpy as np
from confluent_kafka import Message

from pipeline.config import Kafka
from pipeline.extents import Extents, last
from pipeline.letter import read_letter
from pipeline.log import Log, decoded
from pipeline.offsets import Place
from pipeline.records import Count, Features, Status, Timestamp
from pipeline.report.counts import BURIED, Counts
from pipeline.report.figures import OUTCOME, Outcomes, Report, report
from pipeline.statistics import FEATURES
from pipeline.topics import Topics

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many of all offsets have been read."""

USER_MEAN, VIDEO_MEAN = FEATURES.index("user_label_mean"), FEATURES.index("video_label_mean")


class _Outcome(msgspec.Struct):
    """What is needed of an outcome."""

    sequence: Count
    model_version: Count
    timestamp: Timestamp
    label_timestamp: Timestamp | None
    score: float
    probability: float | None
    predicted: bool
    features: Features
    label: bool | None
    status: Status


class _State(msgspec.Struct):
    """What is needed of a state record."""

    counters: dict[str, int]


_OUTCOMES = msgspec.json.Decoder(_Outcome)
_STATES = msgspec.json.Decoder(_State)


def summarize(kafka: Kafka, *, window: int | None = None, progress: Progress | None = None) -> Report:
    """Sum up what a run has written so far.

    The topics are read from their beginnings, only what is committed, and with no effect on the run.

    Parameters
    ----------
    kafka
        Where the topics are, and their prefix.
    window
        Labelled events in a window of the report; by default a hundredth of all.
    progress
        Called now and then with the offsets read and all offsets to read.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        A topic does not exist.
    StateError
        A topic holds a record that no worker has written.
    """
    topics = Topics(kafka.prefix)
    extents = Extents(kafka, (topics.predictions, topics.outcomes, topics.dead_letters, topics.checkpoints))
    ranges = extents.ranges()
    partitions = [place.partition for place in extents.places if place.topic == topics.checkpoints]
    meter = _Meter(
        sum(len(offsets) for place, offsets in ranges.items() if place.topic != topics.checkpoints), progress
    )
    outcomes, counts = [], []
    with Log(kafka) as log:
        for partition in partitions:
            checkpoints = Place(topics.checkpoints, partition)
            before = _counters(log, checkpoints, ranges[checkpoints])
            found = Counter(predictions=sum(map(len, meter.slices(log, topics.predictions, partition))))
            rows = _outcomes(meter.slices(log, topics.outcomes, partition))
            labelled = int(np.count_nonzero(rows["labelled"]))
            found.update(labelled=labelled, expired=len(rows) - labelled)
            for messages in meter.slices(log, topics.dead_letters, partition):
                found.update(map(_case, messages))
            after = _counters(log, checkpoints, extents.ranges()[checkpoints])
            outcomes.append(rows)
            counts.append(Counts(found, before, after))
    return report(outcomes, counts, window)


class _Meter:
    """Reads, and tells how far it is."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def slices(self, log: Log, topic: str, partition: int) -> Iterator[list[Message]]:
        """The messages of a partition from beginning to end."""
        for messages in log.read(topic, partition):
            if not messages:
                return
            self._done += len(messages)
            if self._progress is not None:
                self._progress(min(self._done, self._total), self._total)
            yield messages


def _counters(log: Log, place: Place, offsets: range) -> dict[str, int]:
    """The counters of a partition's last state record; none if nothing was committed yet."""
    key = f"{place.partition}/state".encode()
    found = last(log, place, offsets, 1, lambda message: message.key() == key)
    return decoded(_STATES, found[0]).counters if found else {}


def _outcomes(slices: Iterator[list[Message]]) -> Outcomes:
    parts = [
        np.array([_row(decoded(_OUTCOMES, message)) for message in messages], OUTCOME) for messages in slices
    ]
    return np.concatenate([np.empty(0, OUTCOME), *parts])


def _row(outcome: _Outcome) -> tuple[float | bool, ...]:
    """The outcome in the order of `OUTCOME`."""
    return (
        outcome.sequence,
        outcome.model_version,
        outcome.timestamp,
        outcome.timestamp if outcome.label_timestamp is None else outcome.label_timestamp,
        outcome.score,
        outcome.features[USER_MEAN],
        outcome.features[VIDEO_MEAN],
        -1 if outcome.label is None else outcome.label,
        outcome.status == "labelled",
        outcome.predicted,
        outcome.probability is not None,
    )


def _case(message: Message) -> str:
    fault = read_letter(message).fault
    return fault if fault in BURIED else "unknown"
