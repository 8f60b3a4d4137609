"""Read what the figures of a report need from the topics of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.target_settings import RegressionSettings
from pipeline.config.tree import CHAMPION, Kafka, Registry
from pipeline.features.feature_set import FeatureSet
from pipeline.features.regression import RegressionTarget
from pipeline.features.target import Target
from pipeline.kafka.log import LogReader, decode_record
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.output_values import OutputValues
from pipeline.kafka.topics import Topics
from pipeline.kafka.types import ConsumerRecord
from pipeline.kafka.watermarks import Watermarks, last_messages
from pipeline.model.settings_text import challengers_from, target_from
from pipeline.records.dead_letter import read_dead_letter
from pipeline.records.fields import Count, Status, Timestamp
from pipeline.records.names import state_key
from pipeline.records.output_types import derived
from pipeline.task.state import CORRECTED, SettingsEpoch
from pipeline.tools.report.comparison import LabelledScores, compare_learners
from pipeline.tools.report.counts import DEAD_LETTER_FAULTS, Counts
from pipeline.tools.report.figures import Report, report, window_size, without_classes
from pipeline.tools.report.outcomes import OUTCOME, Outcomes
from pipeline.tools.report.regression import regression_figures

Progress: TypeAlias = Callable[[int, int], None]
"""Function to call with the number of offsets read so far, and the number of all offsets."""
Scores: TypeAlias = dict[str, float]
"""Scores of an event, by challenger."""

NO_MEAN: Final = 0.5
"""The baseline's probability where no entity has a running mean."""


class _Outcome(msgspec.Struct):
    """The fields of an outcome that the figures need."""

    sequence: Count
    prediction_sequence: Count
    model_version: Count
    timestamp: Timestamp
    label_timestamp: Timestamp | None
    score: float
    probability: float | None
    predicted: bool
    features: list[float]
    watch_ratio: float | None
    label: bool | None
    status: Status
    challengers: dict[str, float] | None = None


class _State(msgspec.Struct):
    """The fields of a state record that the figures need."""

    counters: dict[str, int]
    settings: dict[str, str]
    earlier: list[SettingsEpoch] = []

    @property
    def since(self) -> int:
        """Sequence of the first prediction of the current settings epoch."""
        return self.earlier[-1].predictions if self.earlier else 0


_STATES = msgspec.json.Decoder(_State)


def summarize(
    kafka: Kafka,
    *,
    stream: Stream = KUAIREC,
    registry: Registry | None = None,
    window: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Sum up what a run has written so far.

    Committed records are read from the beginning of each topic, with no effect on the run.

    Parameters
    ----------
    kafka
        Connection of the topics, and their prefix.
    stream
        Definition of the stream, which names the fields of outcomes.
    registry
        Has the schemas of outputs that are not plain JSON; None where there are none.
    window
        Labelled events in a window of the report; by default a hundredth of all.
    progress
        Function to call now and then with the offsets read so far and all offsets to read.

    Returns
    -------
    Report
        Figures of the run.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        A topic does not exist.
    StateError
        A topic holds a record that no worker has written.
    """
    topics = Topics(kafka.prefix, stream=stream, registry=registry or Registry())
    regression = isinstance(stream.target, RegressionSettings)
    numbers: dict[tuple[str, ...], dict[str, Any]] = {
        ("predicted",): {"predicted": float},
        ("label",): {"label": float | None},
    }
    outcome = derived(_Outcome, numbers if regression else {}, {"watch_ratio": stream.target.name})
    decoder = msgspec.json.Decoder(outcome)
    places = FeatureSet.of(stream).places("value_mean" if regression else "label_mean")
    watermarks = Watermarks(
        kafka, (topics.predictions, topics.outcomes, topics.dead_letters, topics.checkpoints)
    )
    ranges = watermarks.ranges()
    partitions = [each.partition for each in watermarks.partitions if each.topic == topics.checkpoints]
    meter = _Meter(
        sum(len(offsets) for each, offsets in ranges.items() if each.topic != topics.checkpoints), progress
    )
    outcomes, counts, labelled_scores = [], [], []
    settings: dict[str, str] = {}
    with LogReader(kafka, values=OutputValues(topics)) as log:
        for partition in partitions:
            checkpoints = PartitionId(topics.checkpoints, partition)
            before = _state(log, checkpoints, ranges[checkpoints])
            found = Counter(predictions=sum(map(len, meter.slices(log, topics.predictions, partition))))
            target = target_from(before.settings)
            slices = meter.slices(log, topics.outcomes, partition)
            rows, scores = _outcomes(slices, decoder, target, places, found)
            for messages in meter.slices(log, topics.dead_letters, partition):
                found.update(map(_fault, messages))
            after = _state(log, checkpoints, watermarks.ranges()[checkpoints])
            outcomes.append(rows)
            counts.append(Counts(found, before.counters, after.counters))
            labelled_scores.append(_labelled_scores(rows, scores, after))
            settings |= after.settings
    found_report = report(outcomes, counts, window)
    if isinstance(stream.target, RegressionSettings):
        figures = regression_figures(
            outcomes,
            stream.target.offset,
            labelled_scores,
            stream.target.scale,
            window or window_size(found_report.labelled),
        )
        return without_classes(found_report, figures)
    comparison = compare_learners(labelled_scores, _with_log_odds(settings))
    return msgspec.structs.replace(found_report, comparison=comparison)


class _Meter:
    """Reader of topics that reports its progress."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def slices(self, log: LogReader, topic: str, partition: int) -> Iterator[Sequence[ConsumerRecord]]:
        """Yield the messages of a partition from beginning to end, in slices."""
        for messages in log.read(topic, partition):
            if not messages:
                return
            self._done += len(messages)
            if self._progress is not None:
                self._progress(min(self._done, self._total), self._total)
            yield messages


def _state(log: LogReader, partition: PartitionId, offsets: range) -> _State:
    """Read the last state record of a partition; an empty one if none was committed yet."""
    key = state_key(partition.partition).encode()
    found = last_messages(log, partition, offsets, 1, lambda message: message.key() == key)
    return decode_record(_STATES, found[0]) if found else _State({}, {})


def _outcomes(
    slices: Iterator[Sequence[ConsumerRecord]],
    decoder: msgspec.json.Decoder[_Outcome],
    target: Target,
    places: list[int],
    counted: Counter[str],
) -> tuple[Outcomes, list[Scores | None]]:
    """Decode and count outcomes; return their rows, and the scores of the challengers for each."""
    parts, scores = [], []
    for messages in slices:
        records = [decode_record(decoder, message) for message in messages]
        statuses = Counter(record.status for record in records)
        counted.update(labelled=statuses["labelled"], expired=statuses["expired"])
        counted[CORRECTED] += statuses["corrected"] + statuses["replaced"]
        parts.append(np.array([_row(record, target, places) for record in records], OUTCOME))
        scores += [record.challengers for record in records]
    return np.concatenate([np.empty(0, OUTCOME), *parts]), scores


def _labelled_scores(rows: Outcomes, scores: list[Scores | None], state: _State) -> LabelledScores:
    """Return the scores of the current settings epoch: before, a name may be that of another learner."""
    names = challengers_from(state.settings)
    compared = rows["labelled"] & (rows["prediction_sequence"] >= state.since)
    chosen = [scores[row] or {} for row in np.flatnonzero(compared)] if names else []
    columns = {CHAMPION: rows["score"][compared]}
    columns |= {name: np.array([by_name.get(name, np.nan) for by_name in chosen]) for name in names}
    return LabelledScores(rows["watched"][compared], columns, rows["value"][compared])


def _with_log_odds(settings: dict[str, str]) -> frozenset[str]:
    """Return the names of the learners whose scores are log-odds."""
    losses = {CHAMPION: settings.get("learner.loss", "")}
    losses |= {name: str(each.loss) for name, each in challengers_from(settings).items()}
    return frozenset(name for name, loss in losses.items() if loss == "logistic")


def _row(outcome: _Outcome, target: Target, places: list[int]) -> tuple[float | bool, ...]:
    """Return the columns of `OUTCOME`, in their order, given the places of the entities' label means."""
    value = outcome.watch_ratio or 0.0
    return (
        outcome.sequence,
        outcome.prediction_sequence,
        outcome.model_version,
        outcome.timestamp,
        outcome.timestamp if outcome.label_timestamp is None else outcome.label_timestamp,
        outcome.score,
        outcome.predicted,
        *_means(outcome, target, places),
        target.label(value) if isinstance(target, RegressionTarget) else value,
        outcome.label is not None,
        target.is_positive(value),
        outcome.status == "labelled",
        outcome.probability is not None,
    )


def _means(outcome: _Outcome, target: Target, places: list[int]) -> tuple[float, float]:
    """Return the running means of two entities, or what stands for one that there is not."""
    means = [outcome.features[place] for place in places[:2]]
    if isinstance(target, RegressionTarget):
        first, second = [*(target.value_of(mean) for mean in means), math.nan, math.nan][:2]
    else:
        first, second = (means if len(means) > 1 else 2 * means) or (NO_MEAN, NO_MEAN)
    return first, second


def _fault(message: ConsumerRecord) -> str:
    fault = read_dead_letter(message).fault
    return fault if fault in DEAD_LETTER_FAULTS else "unknown"
