"""The pure core of one partition: messages in, records out, no clock, no I/O, no Kafka.

A message goes through merge, features, prediction, join and learning in one pass, one event after
the other, so that the result does not depend on how messages fell into batches.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from pipeline.config import Join as JoinSettings
from pipeline.inlet import FIRST, Inlet, Position
from pipeline.join import EarlyLabel, Join
from pipeline.labels import WATCHED
from pipeline.model import Model
from pipeline.records import Entry, Interaction, Outcome, Poison, Prediction, Source, WatchLabel
from pipeline.state import Era, Marks, SavedLabel, SnapshotReference, State, counters


class DeadLetter(NamedTuple):
    """A message that could not be used, and why."""

    source: Source
    fault: str
    reason: str


@dataclass
class Batch:
    """What came of the messages merged, and of the time that has passed, since the last batch."""

    predictions: list[Prediction] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""

    @property
    def empty(self) -> bool:
        """Whether nothing happened."""
        return not self.steps


class Task:
    """One partition's state, moved by `advance`.

    Parameters
    ----------
    partition
        Its number.
    model
        The fold so far.
    settings
        How predictions and labels find one another.
    interactions, labels
        Where to go on in the inputs.
    """

    def __init__(
        self, partition: int, model: Model, settings: JoinSettings, interactions: Position, labels: Position
    ) -> None:
        self.partition = partition
        self.model = model
        self.interactions = Inlet(interactions, settings.max_jump)
        self.labels = Inlet(labels, settings.max_jump)
        self.join = Join(settings)
        self.stream_time = FIRST
        """The largest timestamp merged, in milliseconds."""
        self.predicted = 0
        """Predictions made: the sequence of the next one."""
        self.counters = counters()
        self.prediction_marks = Marks(0)
        self.outcome_marks = Marks(0)
        self.snapshot: SnapshotReference | None = None
        self.previous: SnapshotReference | None = None
        """The snapshot before that."""
        self.earlier: list[Era] = []
        """The eras that have ended."""
        self._teach_missing = settings.on_missing == "negative"
        self._batch = Batch()

    def advance(self, limit: int) -> Batch:
        """Merge and process messages, as far as the inputs allow, in at most `limit` steps.

        By timestamp, labels first on ties. Where an input has nothing buffered but may have more, the
        merge waits; where it is at its end, the other goes on without it.
        """
        while self._batch.steps < limit and (head := self._next_head()) is not None:
            time, inlet = head
            if self._move_time(time, limit):
                self._process(inlet.pop(), inlet)
                self._batch.steps += 1
        return self._hand_over()

    def tick(self, now: int, limit: int) -> Batch:
        """Move stream time towards `now` (milliseconds) without a message, if that is forward."""
        self._move_time(now, limit)
        return self._hand_over()

    def rewind(self) -> None:
        """Forget what was read ahead: both inputs will be fed again from their positions on."""
        self.interactions.rewind()
        self.labels.rewind()

    def _hand_over(self) -> Batch:
        batch, self._batch = self._batch, Batch()
        return batch

    def _next_head(self) -> tuple[int, Inlet] | None:
        """Merge time of the next message, and the input that it is taken from."""
        if not (self.interactions.ready and self.labels.ready):
            return None
        interaction_time, label_time = self.interactions.head_time(), self.labels.head_time()
        if label_time is not None and (interaction_time is None or label_time <= interaction_time):
            return label_time, self.labels
        return None if interaction_time is None else (interaction_time, self.interactions)

    def _process(self, entry: Entry, inlet: Inlet) -> None:
        source, record = entry
        self.counters["interactions" if inlet is self.interactions else "labels"] += 1
        if isinstance(record, Poison):
            self._bury(source, record.fault, record.reason)
            return
        if isinstance(record, Interaction):
            self._predict(record)
        else:
            self._match(record, source)

    def _move_time(self, time: int, limit: int) -> bool:
        """Close what is overdue at a time, as far as the limit allows; whether the time has come with that.

        While something is left, stream time stays: whoever goes on from a state record finds the rest again.
        """
        if time <= self.stream_time:
            return True
        batch = self._batch
        for prediction in islice(self.join.expired(time), limit - batch.steps):
            self._expire(prediction, time)
            batch.steps += 1
        for early in islice(self.join.orphans(time), limit - batch.steps):
            self._bury_orphan(early)
            batch.steps += 1
        if batch.steps == limit:
            return False
        self.stream_time = time
        self.join.forget(time)
        return True

    def _expire(self, prediction: Prediction, time: int) -> None:
        if self.join.deadline(prediction) >= time:
            self.counters["crowded_out"] += 1
        self._close(prediction, None)

    def _bury_orphan(self, early: EarlyLabel) -> None:
        self._bury(early.source, "orphan", "no interaction with this event_id came while the label waited")

    def _predict(self, interaction: Interaction) -> None:
        if self.join.knows(interaction.event_id):
            self.counters["duplicate_interactions"] += 1
            return
        judgement = self.model.judge(interaction)
        prediction = Prediction(
            event_id=interaction.event_id,
            user_id=interaction.user_id,
            video_id=interaction.video_id,
            timestamp=interaction.timestamp,
            score=judgement.score,
            probability=judgement.probability,
            predicted=judgement.predicted,
            features=judgement.features,
            model_version=self.model.folded,
            sequence=self.predicted,
        )
        self.predicted += 1
        self.counters["predictions"] += 1
        self._batch.predictions.append(prediction)
        self.join.open(prediction)
        early = self.join.take(interaction.event_id)
        if early is not None:
            self._join(early, prediction)
        for oldest in islice(self.join.expired(FIRST), 1):
            self._expire(oldest, FIRST)

    def _match(self, label: WatchLabel, source: Source) -> None:
        event_id = label.event_id
        prediction = self.join.pending.get(event_id)
        if prediction is not None:
            self._join(EarlyLabel(label, source), prediction)
        elif event_id in self.join.closed:
            if self.join.closed[event_id].status == "expired":
                self._bury(source, "late", "the label came after its prediction had expired")
            else:
                self.counters["duplicate_labels"] += 1
        elif event_id in self.join.waiting:
            self.counters["duplicate_labels"] += 1
        else:
            self.counters["early"] += 1
            self.join.hold(EarlyLabel(label, source))
            for oldest in self.join.orphans(self.stream_time):
                self._bury_orphan(oldest)

    def _join(self, early: EarlyLabel, prediction: Prediction) -> None:
        label, source = early
        if (label.user_id, label.video_id) != (prediction.user_id, prediction.video_id):
            self._bury(source, "mismatched", "user_id or video_id differ from those of the interaction")
            return
        self._close(prediction, label)

    def _close(self, prediction: Prediction, label: WatchLabel | None) -> None:
        """Write the outcome of a prediction, and learn from it."""
        watch_ratio = None if label is None else label.watch_ratio
        if watch_ratio is not None:
            watched: bool | None = watch_ratio > WATCHED
        else:
            watched = False if self._teach_missing else None
        outcome = Outcome(
            event_id=prediction.event_id,
            user_id=prediction.user_id,
            video_id=prediction.video_id,
            timestamp=prediction.timestamp,
            score=prediction.score,
            probability=prediction.probability,
            predicted=prediction.predicted,
            features=prediction.features,
            model_version=prediction.model_version,
            prediction_sequence=prediction.sequence,
            watch_ratio=watch_ratio,
            label=watched,
            label_timestamp=None if label is None else label.timestamp,
            correct=None if watched is None else watched == prediction.predicted,
            loss=None if watched is None else self.model.loss(prediction.score, watched, watch_ratio or 0.0),
            status="expired" if label is None else "labelled",
            sequence=self.model.folded,
        )
        self.model.fold(outcome)
        self.join.close(outcome)
        self.join.forget(self.stream_time)
        self.counters[outcome.status] += 1
        self._batch.outcomes.append(outcome)

    def _bury(self, source: Source, fault: str, reason: str) -> None:
        self.counters[fault] += 1
        self._batch.dead_letters.append(DeadLetter(source, fault, reason))

    def state(self, settings: dict[str, str]) -> State:
        """The state record of this moment, with the marks known so far."""
        prediction, outcome = self.join.lowest_needed(self.predicted, self.model.folded)
        return State(
            partition=self.partition,
            settings=settings,
            stream_time=self.stream_time,
            interactions=copy(self.interactions.position),
            labels=copy(self.labels.position),
            predictions=self.predicted,
            outcomes=self.model.folded,
            pending=len(self.join.pending),
            pending_from=prediction,
            outcomes_from=outcome,
            prediction_offset=self.prediction_marks.floor(prediction),
            outcome_offset=self.outcome_marks.floor(outcome),
            snapshot=self.snapshot,
            waiting=[SavedLabel.save(early) for early in self.join.waiting.values()],
            counters=dict(self.counters),
            previous=self.previous,
            earlier=self.earlier,
        )

    def note_offsets(self, batch: Batch, prediction_offset: int | None, outcome_offset: int | None) -> None:
        """Learn at which offsets the first prediction and the first outcome of a batch were written."""
        prediction, outcome = self.join.lowest_needed(self.predicted, self.model.folded)
        if prediction_offset is not None:
            self.prediction_marks.add(batch.predictions[0].sequence, prediction_offset)
            self.prediction_marks.forget(prediction)
        if outcome_offset is not None:
            self.outcome_marks.add(batch.outcomes[0].sequence, outcome_offset)
            self.outcome_marks.forget(outcome)
