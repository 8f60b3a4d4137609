"""A run from its topics: only what the figures need, so that a long one fits into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
import numpy as np
from confluent_kafka import Message

from pipeline.config.tree import CHAMPION, Kafka
from pipeline.features.statistics import FEATURES
from pipeline.features.target import TARGET
from pipeline.kafka.log import LogReader, decode_record
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.topics import Topics
from pipeline.kafka.watermarks import Watermarks, last_messages
from pipeline.model.settings_text import challengers_from
from pipeline.records.dead_letter import read_dead_letter
from pipeline.records.fields import Count, Features, Status, Timestamp
from pipeline.records.names import state_key
from pipeline.task.state import SettingsEpoch
from pipeline.tools.report.comparison import LabelledScores, contest
from pipeline.tools.report.counts import DEAD_LETTER_FAULTS, Counts
from pipeline.tools.report.figures import OUTCOME, Outcomes, Report, report

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many of all offsets have been read."""
Scores: TypeAlias = dict[str, float]
"""By challenger."""

USER_MEAN, VIDEO_MEAN = FEATURES.index("user_label_mean"), FEATURES.index("video_label_mean")


class _Outcome(msgspec.Struct):
    """What is needed of an outcome."""

    sequence: Count
    prediction_sequence: Count
    model_version: Count
    timestamp: Timestamp
    label_timestamp: Timestamp | None
    score: float
    probability: float | None
    predicted: bool
    features: Features
    watch_ratio: float | None
    label: bool | None
    status: Status
    challengers: dict[str, float] | None = None


class _State(msgspec.Struct):
    """What is needed of a state record."""

    counters: dict[str, int]
    settings: dict[str, str]
    earlier: list[SettingsEpoch] = []

    @property
    def since(self) -> int:
        """The first prediction that the learners of now made, by its sequence."""
        return self.earlier[-1].predictions if self.earlier else 0


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
    watermarks = Watermarks(
        kafka, (topics.predictions, topics.outcomes, topics.dead_letters, topics.checkpoints)
    )
    ranges = watermarks.ranges()
    partitions = [place.partition for place in watermarks.partitions if place.topic == topics.checkpoints]
    meter = _Meter(
        sum(len(offsets) for place, offsets in ranges.items() if place.topic != topics.checkpoints), progress
    )
    outcomes, counts, said = [], [], []
    learners: dict[str, str] = {}
    with LogReader(kafka) as log:
        for partition in partitions:
            checkpoints = PartitionId(topics.checkpoints, partition)
            before = _state(log, checkpoints, ranges[checkpoints])
            found = Counter(predictions=sum(map(len, meter.slices(log, topics.predictions, partition))))
            rows, scores = _outcomes(meter.slices(log, topics.outcomes, partition))
            labelled = int(np.count_nonzero(rows["labelled"]))
            found.update(labelled=labelled, expired=len(rows) - labelled)
            for messages in meter.slices(log, topics.dead_letters, partition):
                found.update(map(_case, messages))
            after = _state(log, checkpoints, watermarks.ranges()[checkpoints])
            outcomes.append(rows)
            counts.append(Counts(found, before.counters, after.counters))
            said.append(_labelled_scores(rows, scores, after))
            learners |= after.settings
    return msgspec.structs.replace(
        report(outcomes, counts, window), contest=contest(said, _with_log_odds(learners))
    )


class _Meter:
    """Reads, and tells how far it is."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def slices(self, log: LogReader, topic: str, partition: int) -> Iterator[list[Message]]:
        """The messages of a partition from beginning to end."""
        for messages in log.read(topic, partition):
            if not messages:
                return
            self._done += len(messages)
            if self._progress is not None:
                self._progress(min(self._done, self._total), self._total)
            yield messages


def _state(log: LogReader, place: PartitionId, offsets: range) -> _State:
    """A partition's last state record; one of nothing if none was committed yet."""
    key = state_key(place.partition).encode()
    found = last_messages(log, place, offsets, 1, lambda message: message.key() == key)
    return decode_record(_STATES, found[0]) if found else _State({}, {})


def _outcomes(slices: Iterator[list[Message]]) -> tuple[Outcomes, list[Scores | None]]:
    """The rows of outcomes, and what challengers said of each."""
    parts, scores = [], []
    for messages in slices:
        records = [decode_record(_OUTCOMES, message) for message in messages]
        parts.append(np.array(list(map(_row, records)), OUTCOME))
        scores += [record.challengers for record in records]
    return np.concatenate([np.empty(0, OUTCOME), *parts]), scores


def _labelled_scores(rows: Outcomes, scores: list[Scores | None], state: _State) -> LabelledScores:
    """What the learners of now said; a name stood for another one before."""
    names = challengers_from(state.settings)
    compared = rows["labelled"] & (rows["prediction_sequence"] >= state.since)
    chosen = [scores[place] or {} for place in np.flatnonzero(compared)] if names else []
    columns = {name: np.array([said.get(name, np.nan) for said in chosen]) for name in names}
    return LabelledScores(rows["watched"][compared], {CHAMPION: rows["score"][compared]} | columns)


def _with_log_odds(settings: dict[str, str]) -> frozenset[str]:
    """The learners whose scores are log-odds."""
    losses = {CHAMPION: settings.get("learner.loss", "")}
    losses |= {name: str(each.loss) for name, each in challengers_from(settings).items()}
    return frozenset(name for name, loss in losses.items() if loss == "logistic")


def _row(outcome: _Outcome) -> tuple[float | bool, ...]:
    """The outcome in the order of `OUTCOME`."""
    return (
        outcome.sequence,
        outcome.prediction_sequence,
        outcome.model_version,
        outcome.timestamp,
        outcome.timestamp if outcome.label_timestamp is None else outcome.label_timestamp,
        outcome.score,
        outcome.features[USER_MEAN],
        outcome.features[VIDEO_MEAN],
        -1 if outcome.label is None else outcome.label,
        TARGET.is_positive(outcome.watch_ratio or 0.0),
        outcome.status == "labelled",
        outcome.predicted,
        outcome.probability is not None,
    )


def _case(message: Message) -> str:
    fault = read_dead_letter(message).fault
    return fault if fault in DEAD_LETTER_FAULTS else "unknown"
