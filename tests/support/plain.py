"""The work of a task, slow and plain: one message after the other, and lists that are searched through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import msgspec
import numpy as np

from pipeline.config.settings import Join as JoinSettings
from pipeline.config.stream import KUAIREC, Stream
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records.decoding import NO_TIMESTAMP, RejectedRecord
from pipeline.records.encoding import encode
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, Label, RawMessage, Slate
from pipeline.records.names import Fault
from pipeline.records.output_types import OutputTypes
from pipeline.task.plan import DeadLetter
from pipeline.task.record_queue import Position, RecordQueue
from tests.support.builders import Inputs, Written
from tests.support.entries import queued

Event: TypeAlias = tuple[Id, ...]
"""An event's id, and with slates those of an item."""
LookedUp: TypeAlias = tuple[list[float], dict[str, int]]
"""Features of live tables, and the offset up to which each was applied."""


@dataclass
class Waiting:
    """A prediction, and how it was closed."""

    event: Event
    record: Any
    order: int
    until: int = -1
    """Until when it is remembered as closed; -1 while it waits."""
    outcome: int = -1
    """Sequence of its newest outcome."""
    label: Label | None = None
    """Its newest label."""
    learned: float | None = None
    weight: float = 1.0
    """The weight of its newest label."""


class Plain:
    """A task that has been given all of its inputs.

    Attributes
    ----------
    written
        What it wrote.
    predictions
        All predictions, in their order.
    closed
        Those that are remembered as closed.
    stream_time, counters, model
        As those of a task.

    Parameters
    ----------
    given
        The inputs.
    join, model, policy
        As for a task.
    stream
        The definition of the stream.
    looked_up
        What live tables say of each event; None without tables.
    """

    def __init__(
        self,
        given: Inputs,
        join: JoinSettings,
        model: Model,
        policy: LabelPolicy | None = None,
        *,
        stream: Stream = KUAIREC,
        looked_up: Mapping[Any, LookedUp] | None = None,
    ) -> None:
        self.join, self.model, self.policy = join, model, policy
        self._looked_up = looked_up
        self.types, self.items = OutputTypes.of(stream), model.features.item_entities
        self.written = Written([], [], [], [])
        self.counters: Counter[str] = Counter()
        self.stream_time = NO_TIMESTAMP
        self.predictions: list[Waiting] = []
        self.early: list[tuple[Label, RawMessage]] = []
        self.closed: list[Waiting] = []
        self._slates = 0
        queues = [RecordQueue(Position(0), join.max_jump, join.max_behind) for _ in range(2)]
        for queue, entries in zip(queues, (given.labels, given.interactions), strict=True):
            queue.feed(queued(entries))
            queue.at_end = True
        while waiting := [queue for queue in queues if queue.time is not None]:
            queue = min(
                waiting, key=lambda each: cast(int, each.time)
            )  # of equal times, the labels' is first
            time = cast(int, queue.time)
            if time > self.stream_time:
                self._pass_time(time)
            self._process(queue.pop(), queue.source(), of_labels=queue is queues[0])

    @property
    def pending(self) -> list[Waiting]:
        """The predictions without an outcome."""
        return [each for each in self.predictions if each.outcome < 0]

    def _pass_time(self, time: int) -> None:
        while (first := self._first_due()) and (
            self._deadline(first) < time or len(self.pending) > self.join.max_pending
        ):
            self._expire(first, time)
        self._drop_early(time)
        self.stream_time = time
        self._forget()

    def _process(self, record: Any, source: RawMessage, *, of_labels: bool) -> None:
        self.counters["labels" if of_labels else "interactions"] += 1
        if isinstance(record, RejectedRecord):
            self._reject(source, record.fault, record.reason)
        elif isinstance(record, Slate):
            self._predict(record.items)
        elif isinstance(record, Interaction):
            self._predict([record])
        else:
            self._label(record, source)

    def _event(self, record: Interaction | Label) -> Event:
        return (record.event_id, *(record.ids[number] for number in self.items))

    def _deadline(self, prediction: Waiting) -> int:
        return cast(int, prediction.record.timestamp) + self.join.window

    def _first_due(self) -> Waiting | None:
        return min(self.pending, key=lambda each: (self._deadline(each), each.order), default=None)

    def _known(self, event: Event) -> Waiting | None:
        known = [each for each in (*self.pending, *self.closed) if each.event == event]
        return known[0] if known else None

    # Interactions.

    def _predict(self, records: Sequence[Interaction]) -> None:
        if any(self._known(self._event(record)) for record in records):
            self.counters["duplicate_interactions"] += 1
            return
        new = [self._prediction(record, position) for position, record in enumerate(records)]
        self.predictions += new
        self.counters["predictions"] += 1
        if self.items:
            self.counters["items"] += len(new)
            slates = self.types.slates
            assert slates is not None
            self.written.predictions.append(encode(slates.join([each.record for each in new])))
        else:
            self.written.predictions.append(encode(new[0].record))
        self._slates += 1
        for each in new:
            for label, source in [early for early in self.early if self._event(early[0]) == each.event]:
                self.early.remove((label, source))
                self._join(each, label, source)
        for _ in new:
            if len(self.pending) > self.join.max_pending:
                self._expire(cast(Waiting, self._first_due()), NO_TIMESTAMP)

    def _prediction(self, record: Interaction, position: int) -> Waiting:
        values = self.model.features.event.values([record], np.array([record.timestamp]))[0].tolist()
        tables = list[dict[str, int]]()
        if self._looked_up is not None:
            found, applied = self._looked_up[record.event_id]
            values, tables = values + found, [applied]
        output = self.model.predict(record, values)
        asked = None
        if self.policy is not None:
            asked = self.policy.asks(
                self._event(record) if self.items else record.event_id,
                output.score,
                output.features,
                predicted=self.counters["items"] + position if self.items else self._slates,
                asked=self.counters["asked"],
            )
            self.counters["asked"] += asked
        make: Any = self.types.prediction
        made = make(
            record.event_id,
            *record.ids,
            record.timestamp,
            output.score,
            output.probability,
            output.predicted,
            output.features,
            *tables,
            *record.carried,
            self.model.outcomes_learned,
            *((position,) if self.items else ()),
            self._slates,
            output.challengers,
            asked,
        )
        self._request(made)
        return Waiting(self._event(record), made, len(self.predictions) + position)

    def _request(self, prediction: Any) -> None:
        if prediction.asked:
            request = self.types.label_request.of(prediction, self.counters["asked"] - 1)
            self.written.requests.append(encode(request))

    # Labels.

    def _label(self, label: Label, source: RawMessage) -> None:
        known = self._known(self._event(label))
        if known and known.outcome < 0:
            self._join(known, label, source)
        elif known and self.join.corrections != "off":
            self._correct(known, label, source)
        elif known and known.label is None:
            self._reject(source, Fault.LATE, "the label came after its prediction had expired")
        elif known or any(self._event(other) == self._event(label) for other, _ in self.early):
            self.counters["duplicate_labels"] += 1
        else:
            self.counters["early"] += 1
            self.early.append((label, source))
            self._drop_early(self.stream_time)

    def _drop_early(self, time: int) -> None:
        while self.early:
            first = min(self.early, key=lambda each: each[0].timestamp)
            room = sum(source.size for _, source in self.early)
            if first[0].timestamp + self.join.early >= time and room <= self.join.early_bytes:
                return
            self.early.remove(first)
            about = "event_id and item" if self.items else "event_id"
            reason = f"no interaction with this {about} came while the label waited"
            self._reject(first[1], Fault.ORPHAN, reason)

    def _join(self, prediction: Waiting, label: Label, source: RawMessage) -> None:
        if self._matches(prediction, label, source):
            self.counters["labelled"] += 1
            self._close(prediction, label, "labelled")

    def _correct(self, prediction: Waiting, label: Label, source: RawMessage) -> None:
        if not self._matches(prediction, label, source):
            return
        former = prediction.label
        if former and (label.timestamp < former.timestamp or label.watch_ratio == former.watch_ratio):
            self.counters["duplicate_labels"] += 1
            return
        self.counters["corrected"] += 1
        self.closed.remove(prediction)
        self._close(prediction, label, "replaced" if self.join.corrections == "replace" else "corrected")

    def _matches(self, prediction: Waiting, label: Label, source: RawMessage) -> bool:
        if label.ids == prediction.record.ids:
            return True
        names = " or ".join(self.model.features.entity_names)
        self._reject(source, Fault.MISMATCHED, f"{names} differ from those of the interaction")
        return False

    # Outcomes.

    def _expire(self, prediction: Waiting, time: int) -> None:
        self.counters["crowded_out"] += self._deadline(prediction) >= time
        self.counters["expired"] += 1
        self._close(prediction, None, "expired")

    def _close(self, prediction: Waiting, label: Label | None, status: str) -> None:
        model, record = self.model, prediction.record
        known_at = self._deadline(prediction) if label is None else label.timestamp
        corrects, former, before = status in {"corrected", "replaced"}, prediction.learned, prediction.weight
        closed_at = max(known_at, self._deadline(prediction)) if corrects else known_at
        prediction.until, prediction.outcome = closed_at + self.join.window, model.outcomes_learned
        prediction.label = label
        learned: Any = model.target.missing_label(self.join.on_missing)
        if label is not None:
            learned = model.target.label(label.watch_ratio)
        value, weight = (0.0, 1.0) if label is None else (label.watch_ratio, label.weight)
        if self.policy is not None:
            if not self.policy.learns(record.asked, label is not None):
                learned = None
            self.counters["unasked"] += record.asked is False and status == "labelled"
        correct = loss = None
        if learned is not None:
            [correct] = model.target.correct_many(np.array([record.score]), np.array([value]))
            loss = model.loss(record.score, value)
        self._write_outcome(
            record,
            watch_ratio=None if label is None else value,
            weight=weight,
            label=learned,
            label_timestamp=None if label is None else label.timestamp,
            correct=correct,
            loss=loss,
            status=status,
            former=former if corrects else None,
            former_weight=before if corrects and before != 1.0 else None,
        )
        if learned is not None and status == "replaced" and former is not None:
            model.replace_example(record, record.features, former, value, former_weight=before, weight=weight)
        elif learned is not None:
            model.learn_example(record, record.features, value, weight)
        model.outcomes_learned += 1
        prediction.learned, prediction.weight = None if learned is None else value, weight
        self.closed.append(prediction)
        while len(self.closed) > self.join.max_closed:
            self.closed.remove(min(self.closed, key=lambda each: (each.until, each.outcome)))
        self._forget()

    def _write_outcome(self, record: Any, **said: Any) -> None:
        make = self.types.outcome
        names = [field.name for field in msgspec.structs.fields(make)]
        fields = said | {"prediction_sequence": record.sequence, "sequence": self.model.outcomes_learned}
        fields = {name: fields.get(name, getattr(record, name, None)) for name in names}
        self.written.outcomes.append(encode(make(**fields)))

    def _forget(self) -> None:
        self.closed = [each for each in self.closed if each.until >= self.stream_time]

    def _reject(self, source: RawMessage, fault: Fault, reason: str) -> None:
        self.counters[fault] += 1
        self.written.dead_letters.append(DeadLetter(source, fault, reason))
