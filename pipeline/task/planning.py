"""Join merged messages, and plan what the model predicts and learns of them, in columns.

`pipeline.task.slice` looks up what the join loop has to know, and `pipeline.join.loop` says what happens, as
a log of actions. Here these become a plan, dead letters, and changes of the tables.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from pipeline.features.feature_set import FeatureSet
from pipeline.join.actions import (
    NONE,
    Action,
    ActionLog,
    Message,
)
from pipeline.join.event_rows import NO_ROW
from pipeline.join.prediction_columns import UNDECIDED, PredictionColumns
from pipeline.join.records import EarlyLabel
from pipeline.join.tables import Join
from pipeline.model.model import Model
from pipeline.records.decoding import NO_TIMESTAMP, RejectedRecord
from pipeline.records.names import Fault
from pipeline.records.places import flagged
from pipeline.records.slates import item_number
from pipeline.records.texts import Texts
from pipeline.task.columns import Corrections, Floats, OutcomeColumns
from pipeline.task.merging import Integers, Merged
from pipeline.task.plan import DeadLetter, Plan
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.slice import Slice
from pipeline.task.state import ITEMS
from pipeline.task.table_changes import TableChanges

MAX_MESSAGES: Final = 8192
"""Most messages that are joined together."""
# Looked up once: the members of an enumeration cost as much as a small array.
_ACTIONS: Final = tuple(Action)
_PREDICTED: Final = (Action.PREDICTED,)
_EVICTED: Final = int(Action.EVICTED)
_OUTCOMES: Final = (Action.LABELLED, Action.EXPIRED, Action.EVICTED, Action.CORRECTED)
_CORRECTED: Final = int(Action.CORRECTED)
_REJECTED: Final = int(Action.REJECTED)
_REFUSED_LABELS: Final = (Action.LATE, Action.MISMATCHED, Action.ORPHAN)
_REFUSED: Final = (Action.REJECTED, *_REFUSED_LABELS)
_COUNTERS: Final = {
    int(kind): name
    for kind, name in {
        Action.PREDICTED: "predictions",
        Action.LABELLED: "labelled",
        Action.EXPIRED: "expired",
        Action.DUPLICATE_INTERACTION: "duplicate_interactions",
        Action.DUPLICATE_LABEL: "duplicate_labels",
        Action.EARLY: "early",
        Action.CORRECTED: "corrected",
    }.items()
}
"""What is counted of each action; dead letters are counted by their fault."""


class Progress(NamedTuple):
    """How far a task has come, and what is planned of its batch."""

    predicted: int
    """Predictions planned: the sequence of the next one."""
    outcomes_learned: int
    """Outcomes planned."""
    first: int
    """The number of the first prediction of the batch, for which the model's output is not known yet."""
    outcome: int
    """The first outcome of the batch, for which it is not known yet whether it is learned."""
    max_outcomes: int
    """Outcomes of which it is known what other partitions share right before them."""
    stream_time: int
    """In milliseconds."""


def join_queued(  # noqa: PLR0917 - what is read, and what is known
    interactions: RecordQueue,
    labels: RecordQueue,
    merged: Merged,
    join: Join,
    model: Model,
    progress: Progress,
    max_steps: int,
) -> Plan:
    """Join merged messages, and return what follows. The tables are changed, and the queues are not.

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


def pass_time(join: Join, model: Model, progress: Progress, time: int, max_steps: int) -> Plan:
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

    def of(self, log: ActionLog) -> Plan:
        """Make the plan of the actions, and change the tables as they say."""
        merged = self.slice.merged.first(log.messages)
        happened = np.bincount(log.kinds, minlength=len(_ACTIONS)).tolist()
        counts = {name: happened[kind] for kind, name in _COUNTERS.items() if happened[kind]}
        if evicted := happened[_EVICTED]:
            counts |= {"expired": counts.get("expired", 0) + evicted, "crowded_out": evicted}
        counts |= {"interactions": merged.interactions, "labels": merged.labels}
        predicted = log.of(*_PREDICTED)
        opened = log.sources[predicted]
        if self.slice.of_slates and len(opened):
            slates = int(np.count_nonzero(np.isin(opened, self.slice.first_rows)))
            counts |= {ITEMS: len(opened), "predictions": slates}
        plan = Plan(
            self.progress.first,
            self.progress.outcomes_learned,
            log.stream_time,
            counts=counts,
            steps=log.steps,
        )
        closing = log.of(*_OUTCOMES)
        sources, targets = log.sources[closing], log.targets[closing]
        own = self._own_numbers(opened)
        if len(opened):
            versions = self.progress.outcomes_learned + np.searchsorted(closing, predicted)
            plan.predictions.append(self._predictions(opened, own, versions))
        if len(closing):
            outcomes = self._outcomes(sources, self._numbers(own, targets))
            plan.outcomes.append(outcomes)
            plan.prior += self._prior(sources, targets, outcomes.numbers)
            if happened[_CORRECTED]:
                corrected = flagged(log.kinds[closing] == _CORRECTED)
                plan.corrections = self._corrections(corrected, targets, outcomes.weights)
        if any(happened[kind] for kind in _REFUSED):
            plan.dead_letters = self._dead_letters(log, counts)
        TableChanges(self.slice, log, plan, own, sources, targets).apply(opened)
        return plan

    def _predictions(self, opened: Integers, own: Integers, versions: Integers) -> PredictionColumns:
        """Return the predictions to be made.

        Parameters
        ----------
        opened
            The rows that are predicted.
        own
            The number of each row's prediction, shape (n,).
        versions
            How many outcomes there are before each prediction.
        """
        every, features = self.slice.interactions, self.model.features
        interactions = every if len(opened) == self.slice.n else every.select(opened)
        timestamps = self.slice.interaction_times[opened]
        return PredictionColumns(
            own[opened],
            interactions.texts,
            timestamps,
            versions,
            np.empty(len(opened)),
            np.empty((len(opened), len(features))),
            np.full(len(opened), UNDECIDED, dtype=np.int8),
            values=features.event.values_of(interactions.field, timestamps),
            carried=interactions.carried,
        )

    def _outcomes(self, sources: Integers, numbers: Integers) -> OutcomeColumns:
        """Return the outcomes, given their labels and the numbers of their predictions."""
        early = self.slice.early_labels
        weights = None
        if self.model.weighted:
            weights = self._column("weight", [each.label.weight for each in early], 1.0)[sources]
        moments = [each.label.timestamp for each in early]
        return OutcomeColumns(
            self.progress.outcomes_learned,
            numbers,
            self._column("watch_ratio", [each.label.watch_ratio for each in early], np.nan)[sources],
            np.concatenate([self.slice.label_times, [*moments, NO_TIMESTAMP]])[sources],
            weights,
            bool(self.model.features.item_entities),
        )

    def _column(self, name: str, early: list[float], missing: float) -> Floats:
        """Return a column of labels, then of those that waited, then, where `NONE` is, what is missing."""
        labels = self.slice.labels
        column = labels.array(name) if self.slice.m else np.empty(0)
        return np.concatenate([column, [*early, missing]])

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
        waiting, answered = np.concatenate([own, self.slice.entries.numbers]), self.slice.join.answered
        if answered is None:
            return waiting[targets]
        closed = self.slice.of_closed(targets)
        numbers = np.empty(len(targets), dtype=np.int64)
        numbers[~closed] = waiting[targets[~closed]]
        numbers[closed] = answered.integers("predictions")[self.slice.closed_rows_of(targets[closed])]
        return numbers

    def _corrections(self, rows: Integers, targets: Integers, weights: Floats | None) -> Corrections:
        """Return what is corrected, given the rows of corrections, and predictions and weights of all."""
        answered, progress = self.slice.join.answered, self.progress
        assert answered is not None
        before = _same_before(targets)[rows]
        corrected, formers = progress.outcomes_learned + before, np.full(len(rows), np.nan)
        weighed = np.ones(len(rows)) if weights is None else weights[before]
        closed = flagged(before == NONE)
        places = self.slice.closed_rows_of(targets[rows[closed]])
        corrected[closed] = answered.numbers[places] // 2
        formers[closed], weighed[closed] = answered["learned"][places], answered["weights"][places]
        formers[corrected >= progress.outcome] = np.nan
        return Corrections(rows, corrected, formers, weighed)

    def _prior(self, sources: Integers, targets: Integers, numbers: Integers) -> list[PredictionColumns]:
        """Return those of the predictions with outcomes that were made before the batch, in their order."""
        before = flagged((targets >= self.slice.n) & (numbers < self.progress.first))
        if not len(before):
            return []
        pending, window, found = self.slice.join.pending, self.slice.join.window, list[PredictionColumns]()
        entries, labels = targets[before] - self.slice.n, sources[before]
        closed = self.slice.of_closed(targets[before])
        rows = np.full(len(before), NO_ROW)
        rows[~closed] = self.slice.entries.rows[entries[~closed]]
        inside, labelled = rows != NO_ROW, (labels >= 0) & (labels < self.slice.m)
        parts = [
            flagged(inside & labelled),
            flagged(inside & ~labelled),
            flagged(~inside & ~closed),
            flagged(closed),
        ]
        of_labels, unlabelled, spilled, answered = parts
        for part, ids in (
            (of_labels, self.slice.label_ids.select(labels[of_labels])),
            (unlabelled, None),
        ):
            if len(part):
                others = rows[part]
                named = Texts.of_id_rows([*map(tuple, pending.ids_of(others))]) if ids is None else ids
                times = pending.deadlines[others] - window
                found.append(pending.predictions(others, pending.numbers[others], named, times))
        if len(spilled):
            found.append(PredictionColumns.of([*map(self.slice.read_spilled, entries[spilled].tolist())]))
        if len(answered):
            table = self.slice.join.answered
            assert table is not None
            others = self.slice.closed_rows_of(targets[before[answered]])
            made = table.integers("predictions")[others], table.integers("timestamps")[others]
            named = self.slice.label_ids.select(labels[answered])
            found.append(table.predictions(others, made[0], named, made[1]))
        if len(found) > 1:
            order = np.argsort(np.concatenate(parts))
            return [PredictionColumns.concat(found).select(order)]
        return found

    def _dead_letters(self, log: ActionLog, counts: dict[str, int]) -> list[DeadLetter]:
        """Return the messages that could not be used, and count them by their fault."""
        found, m, interactions = list[DeadLetter](), self.slice.m, self.slice.merged.interactions
        refused = log.of(*_REFUSED)
        places = self.slice.places[1].tolist()
        reasons = {kind: reason_of(_ACTIONS[kind], self.model.features) for kind in _REFUSED_LABELS}
        for kind, row in zip(log.kinds[refused].tolist(), log.sources[refused].tolist(), strict=True):
            if kind == _REJECTED:
                queue, at = self.slice.queues[0], row
                if row >= interactions:
                    queue, at = self.slice.queues[1], row - interactions
                rejected = queue.record_at(at)
                assert isinstance(rejected, RejectedRecord)
                source = queue.source_at(at)
            else:
                rejected = reasons[kind]
                early = row >= m
                source = (
                    self._early_label(row).source if early else self.slice.queues[1].source_at(places[row])
                )
            fault = rejected.fault.value
            counts[fault] = counts.get(fault, 0) + 1
            found.append(DeadLetter(source, rejected.fault, rejected.reason))
        return found

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


def _same_before(targets: Integers) -> Integers:
    """Return for each place the last one before it with the same target, `NONE` where there is none.

    >>> _same_before(np.array([7, 5, 7, 7])).tolist()
    [-1, -1, 0, 2]
    """
    order = np.argsort(targets, kind="stable")
    same = targets[order[1:]] == targets[order[:-1]]
    before = np.full(len(targets), NONE)
    before[order[1:][same]] = order[:-1][same]
    return before


_NO_QUEUE: Final = RecordQueue(Position(0), 0, 0)
"""An input without messages."""
