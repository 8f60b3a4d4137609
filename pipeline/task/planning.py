"""Join merged messages, and plan what the model predicts and learns of them, in columns.

`pipeline.task.slice` looks up what the join loop has to know, and `pipeline.join.loop` says what happens, as
a log of actions. Here these become a plan, dead letters, and changes of the tables.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from math import isnan
from typing import Any, Final, NamedTuple

import numpy as np

from pipeline.features.feature_set import FeatureSet
from pipeline.join.event_rows import NO_ROW
from pipeline.join.loop import (
    NONE,
    Action,
    ActionLog,
    Message,
)
from pipeline.join.prediction_rows import UNDECIDED, PredictionRows
from pipeline.join.records import EarlyLabel
from pipeline.join.tables import Join
from pipeline.model.model import Model
from pipeline.records.decoding import RejectedRecord
from pipeline.records.fields import Id
from pipeline.records.input_columns import InputColumns
from pipeline.records.names import Fault
from pipeline.records.slates import item_number
from pipeline.task.merging import Integers, Merged
from pipeline.task.plan import Correction, DeadLetter, Plan
from pipeline.task.prior_predictions import PriorPredictions
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.slice import Slice
from pipeline.task.state import ITEMS
from pipeline.task.table_changes import TableChanges

MAX_MESSAGES: Final = 4096
"""Most messages that are joined together."""
_OUTCOMES: Final = (Action.LABELLED, Action.EXPIRED, Action.EVICTED, Action.CORRECTED)
_REFUSED: Final = (Action.REJECTED, Action.LATE, Action.MISMATCHED, Action.ORPHAN)
_COUNTERS: Final = {
    Action.PREDICTED: "predictions",
    Action.LABELLED: "labelled",
    Action.EXPIRED: "expired",
    Action.DUPLICATE_INTERACTION: "duplicate_interactions",
    Action.DUPLICATE_LABEL: "duplicate_labels",
    Action.EARLY: "early",
    Action.CORRECTED: "corrected",
}
"""What is counted of each action; dead letters are counted by their fault."""


class Progress(NamedTuple):
    """How far a task has come, and what is planned of its batch."""

    predicted: int
    """Predictions planned: the sequence of the next one."""
    folded: int
    """Outcomes planned."""
    first: int
    """The number of the first prediction of the batch, for which the model's output is not known yet."""
    outcome: int
    """The first outcome of the batch, for which it is not known yet whether it is learned."""
    max_outcomes: int
    """Outcomes of which it is known what other partitions share right before them."""
    stream_time: int
    """In milliseconds."""
    missing_label: bool | float | None
    """What a prediction that expires teaches."""


class JoinedMessages(NamedTuple):
    """What became of merged messages."""

    plan: Plan
    merged: Merged
    """Those that were processed."""
    counts: Counter[str]
    stream_time: int
    """After them, in milliseconds."""


def join_queued(  # noqa: PLR0917 - what is read, and what is known
    interactions: RecordQueue,
    labels: RecordQueue,
    merged: Merged,
    join: Join,
    model: Model,
    progress: Progress,
    max_steps: int,
) -> JoinedMessages:
    """Join merged messages. The tables are changed, and the queues are not.

    Parameters
    ----------
    interactions, labels
        The queues of the inputs.
    merged
        Their next messages.
    join
        The tables.
    model
        Its features and its target; nothing changes in it.
    progress
        How far the task has come.
    max_steps
        Most messages, predictions that expire and labels that are orphans because time passes.
    """
    taken = Slice(interactions, labels, merged, join, progress.stream_time, model.features.entities)
    return _Consequences(taken, progress, model).of(taken.run(max_steps, progress.max_outcomes))


def pass_time(join: Join, model: Model, progress: Progress, time: int, max_steps: int) -> JoinedMessages:
    """Do the same without a message, as time passes up to a moment, in milliseconds."""
    queue = _NO_QUEUE
    merged = Merged(
        np.array([Message.TIME], dtype=np.uint8), np.zeros(1, dtype=np.int64), np.array([time]), 0, 0
    )
    return join_queued(queue, queue, merged, join, model, progress, max_steps)


class _Consequences:
    """What follows from the actions of a slice: a plan, dead letters, and changes of the tables."""

    def __init__(self, slice_: Slice, progress: Progress, model: Model) -> None:
        self.slice = slice_
        self.progress = progress
        self.model = model

    def of(self, log: ActionLog) -> JoinedMessages:
        """Make the plan of the actions, and change the tables as they say."""
        merged = self.slice.merged.first(log.messages)
        happened = np.bincount(log.kinds, minlength=len(Action)).tolist()
        counts = Counter({name: happened[kind] for kind, name in _COUNTERS.items() if happened[kind]})
        if crowded_out := happened[Action.EVICTED]:
            counts.update(expired=crowded_out, crowded_out=crowded_out)
        counts.update(interactions=merged.interactions, labels=merged.labels)
        if self.slice.of_slates and (items := happened[Action.PREDICTED]):
            slates = int(
                np.count_nonzero(np.isin(log.sources[log.of(Action.PREDICTED)], self.slice.first_rows))
            )
            counts.update({ITEMS: items, "predictions": slates - items})
        closing = log.of(*_OUTCOMES)
        sources, targets = log.sources[closing], log.targets[closing]
        plan, opened, own = self._plan(log, closing, sources, targets)
        if any(happened[kind] for kind in _REFUSED):
            plan.dead_letters = self._dead_letters(log, counts)
        changes = TableChanges(self.slice, log, plan, own, sources, targets)
        changes.apply(opened, len(self.model.features))
        return JoinedMessages(plan, merged, counts, log.stream_time)

    def _plan(
        self, log: ActionLog, closing: Integers, sources: Integers, targets: Integers
    ) -> tuple[Plan, Integers, Integers]:
        """Return the plan, the rows that were predicted, and the number of each row's prediction.

        Parameters
        ----------
        log
            The actions.
        closing, sources, targets
            The places of those that make an outcome, with their labels and predictions.
        """
        progress, model, n = self.progress, self.model, self.slice.n
        predicted = log.of(Action.PREDICTED)
        opened = log.sources[predicted]
        interactions = self.slice.interactions if len(opened) == n else self.slice.interactions.select(opened)
        own = self._own_numbers(opened)
        timestamps = self.slice.interaction_times[opened]
        ratios: list[Any] = [*self.slice.labels.field("watch_ratio")] if self.slice.m else []
        ratios += [each.label.watch_ratio for each in self.slice.early_labels]
        numbers = self._numbers(own, targets)
        times = [
            *self.slice.label_times.tolist(),
            *(each.label.timestamp for each in self.slice.early_labels),
        ]
        learned = [*model.target.labels(ratios)] if ratios else []
        weights = list[float]()
        if model.weighted:
            known = [*self.slice.labels.field("weight")] if self.slice.m else []
            weights = _spread(
                [*known, *(each.label.weight for each in self.slice.early_labels)], sources, 1.0
            )
        plan = Plan(
            first=progress.first,
            folded=progress.folded,
            event_ids=interactions.ids(0),
            ids=_entity_ids(interactions, model.features.entities),
            timestamps=timestamps.tolist(),
            values=model.features.event.values_of(interactions.field, timestamps),
            versions=(progress.folded + np.searchsorted(closing, predicted)).tolist(),
            carried=interactions.carried,
            labels=_spread(learned, sources, progress.missing_label),
            watch_ratios=_spread(ratios, sources, None),
            label_timestamps=_spread(times, sources, None),
            weights=weights,
            prior=self._prior(sources, targets, numbers),
            steps=log.steps,
        )
        plan.closed = array("q", numbers.tobytes())
        if self.slice.of_slates:
            plan.numbers = array("q", own[opened].tobytes())
        corrected = np.flatnonzero(log.kinds[closing] == Action.CORRECTED)
        if len(corrected):
            plan.corrections = self._corrections(corrected, targets, weights)
        return plan, opened, own

    def _own_numbers(self, opened: Integers) -> Integers:
        """Return the number of each row's prediction, of those that are predicted; shape (n,)."""
        own = np.full(self.slice.n, NONE)
        counts = self.slice.interactions.item_counts
        if not len(counts):
            own[opened] = self.progress.predicted + np.arange(len(opened))
            return own
        positions = (np.arange(self.slice.n) - np.repeat(self.slice.first_rows[:-1], counts))[opened]
        sequences = self.progress.predicted - 1 + np.cumsum(positions == 0)
        own[opened] = item_number(sequences, positions)
        return own

    def _numbers(self, own: Integers, targets: Integers) -> Integers:
        """Return the numbers of the predictions that get outcomes."""
        waiting, closed = np.concatenate([own, self.slice.entries.numbers]), self.slice.of_closed(targets)
        if not closed.any():
            return waiting[targets]
        answered = self.slice.join.answered
        assert answered is not None
        numbers = np.empty(len(targets), dtype=np.int64)
        numbers[~closed] = waiting[targets[~closed]]
        numbers[closed] = answered.integers("predictions")[self.slice.closed_rows_of(targets[closed])]
        return numbers

    def _corrections(
        self, corrected: Integers, targets: Integers, weights: Sequence[float]
    ) -> dict[int, Correction]:
        """Return what is corrected, given the places of corrections, and predictions and weights of all."""
        answered, progress = self.slice.join.answered, self.progress
        assert answered is not None
        corrections, last = dict[int, Correction](), dict[int, int]()
        events = np.flatnonzero(np.isin(targets, targets[corrected]))
        by_label = np.isin(events, corrected)
        for place, target, corrects in zip(
            events.tolist(), targets[events].tolist(), by_label.tolist(), strict=True
        ):
            if corrects and target in last:
                weight = weights[last[target]] if weights else 1.0
                corrections[place] = Correction(progress.folded + last[target], None, weight)
            elif corrects:
                [row] = self.slice.closed_rows_of(np.array([target])).tolist()
                outcome, former = int(answered.numbers[row]) // 2, float(answered["learned"][row])
                unknown = isnan(former) or outcome >= progress.outcome
                weight = float(answered["weights"][row])
                corrections[place] = Correction(outcome, None if unknown else former, weight)
            last[target] = place
        return corrections

    def _prior(self, sources: Integers, targets: Integers, numbers: Integers) -> PriorPredictions:
        """Return those of the predictions with outcomes that were made before the batch, in their order."""
        before = np.flatnonzero((targets >= self.slice.n) & (numbers < self.progress.first))
        closed = self.slice.of_closed(targets[before])
        entries, labels = targets[before] - self.slice.n, sources[before]
        rows = np.full(len(before), NO_ROW)
        rows[~closed] = self.slice.entries.rows[entries[~closed]]
        inside, labelled = rows != NO_ROW, (labels >= 0) & (labels < self.slice.m)
        parts = [
            np.flatnonzero(inside & labelled),
            np.flatnonzero(inside & ~labelled),
            np.flatnonzero(~inside & ~closed),
            np.flatnonzero(closed),
        ]
        of_labels, unlabelled, spilled, answered = parts
        pending, window = self.slice.join.pending, self.slice.join.window
        prior = _prior_in_memory(
            pending,
            rows[of_labels],
            self._label_ids(labels[of_labels]),
            *_waiting(pending, rows[of_labels], window),
        )
        if len(unlabelled):
            found = pending.ids_of(rows[unlabelled])
            ids = [*map(list, zip(*found, strict=True))]
            others = rows[unlabelled]
            prior.extend(_prior_in_memory(pending, others, ids, *_waiting(pending, others, window)))
        if len(spilled):
            prior.extend(PriorPredictions.of(map(self.slice.read_spilled, entries[spilled].tolist())))
        if len(answered):
            table = self.slice.join.answered
            assert table is not None
            others = self.slice.closed_rows_of(targets[before[answered]])
            made = table.integers("predictions")[others], table.integers("timestamps")[others]
            prior.extend(_prior_in_memory(table, others, self._label_ids(labels[answered]), *made))
        if len(unlabelled) or len(spilled) or len(answered):
            return prior.take(np.argsort(np.concatenate(parts)).tolist())
        return prior

    def _label_ids(self, labels: Integers) -> list[list[Id]]:
        """Return the ids that labels name: those of events, and those of each entity."""
        columns = range(len(self.slice.labels.texts.begins))
        return [self.slice.labels.ids(column, labels) for column in columns]

    def _dead_letters(self, log: ActionLog, counts: Counter[str]) -> list[DeadLetter]:
        """Return the messages that could not be used, and count them by their fault."""
        found = list[DeadLetter]()
        for place in log.of(*_REFUSED).tolist():
            kind, row = Action(log.kinds[place]), int(log.sources[place])
            if kind is Action.REJECTED:
                queue, at = self.slice.queues[0], row
                if row >= self.slice.merged.interactions:
                    queue, at = self.slice.queues[1], row - self.slice.merged.interactions
                rejected = queue.record_at(at)
                assert isinstance(rejected, RejectedRecord)
                source = queue.source_at(at)
            else:
                rejected = reason_of(kind, self.model.features)
                source = self._early_label(row).source if row >= self.slice.m else self._label_source(row)
            counts[rejected.fault] += 1
            found.append(DeadLetter(source, rejected.fault, rejected.reason))
        return found

    def _label_source(self, row: int) -> Any:
        return self.slice.queues[1].source_at(int(self.slice.places[1][row]))

    def _early_label(self, source: int) -> EarlyLabel:
        return self.slice.early_labels[source - self.slice.m]


def reason_of(kind: Action, features: FeatureSet) -> RejectedRecord:
    """Return why a label cannot be used, given what happened to it."""
    if kind is Action.LATE:
        return RejectedRecord(Fault.LATE, "the label came after its prediction had expired")
    if kind is Action.MISMATCHED:
        names = " or ".join(features.entity_names)
        return RejectedRecord(Fault.MISMATCHED, f"{names} differ from those of the interaction")
    assert kind is Action.ORPHAN
    about = "event_id and item" if features.item_entities else "event_id"
    return RejectedRecord(Fault.ORPHAN, f"no interaction with this {about} came while the label waited")


def _spread(column: list[Any], sources: Integers, missing: Any) -> list[Any]:
    """Return a column of labels as one of outcomes."""
    if len(sources) == len(column) and (sources == np.arange(len(sources))).all():
        return column
    return [column[source] if source != NONE else missing for source in sources.tolist()]


def _entity_ids(columns: InputColumns, entities: int) -> tuple[list[Id], ...]:
    return tuple(columns.ids(1 + entity) if len(columns) else [] for entity in range(entities))


def _prior_in_memory(
    table: PredictionRows, rows: Integers, ids: list[list[Id]], numbers: Integers, timestamps: Integers
) -> PriorPredictions:
    """Return predictions of rows, given the ids of their events and of each entity, numbers and times."""
    if not len(rows):
        return PriorPredictions()
    outputs = table.outputs(rows)
    return PriorPredictions(
        array("q", numbers.tobytes()),
        ids[0],
        tuple(ids[1:]),
        timestamps.tolist(),
        table.integers("versions")[rows].tolist(),
        bytearray(outputs.scored.tobytes()),
        [None if each == UNDECIDED else bool(each) for each in outputs.asked.tolist()],
        [*outputs.challengers],
    )


def _waiting(pending: PredictionRows, rows: Integers, window: int) -> tuple[Integers, Integers]:
    """Return the numbers and the times of predictions that wait."""
    return pending.numbers[rows], pending.deadlines[rows] - window


_NO_QUEUE: Final = RecordQueue(Position(0), 0)
"""An input without messages."""
