"""Join merged messages, and plan what the model predicts and learns of them, in columns.

`pipeline.task.slice` looks up what the join loop has to know, and `pipeline.join.loop` says what happens, as
a log of actions. Here these become a plan, dead letters, and changes of the tables.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from pipeline.join.digests import Digests
from pipeline.join.event_rows import NO_ROW
from pipeline.join.loop import (
    NONE,
    Action,
    ActionLog,
    Message,
)
from pipeline.join.records import EarlyLabel
from pipeline.join.tables import UNDECIDED, Due, Join
from pipeline.model.model import Model
from pipeline.records.decoding import RejectedRecord
from pipeline.records.fields import Id
from pipeline.records.input_columns import InputColumns
from pipeline.records.inputs import Label
from pipeline.records.names import Fault
from pipeline.task.merging import Integers, Merged
from pipeline.task.plan import DeadLetter, Plan
from pipeline.task.prior_predictions import PriorPredictions
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.slice import Slice

MAX_MESSAGES: Final = 4096
"""Most messages that are joined together."""
_OUTCOMES: Final = (Action.LABELLED, Action.EXPIRED, Action.EVICTED)
_REFUSED: Final = (Action.REJECTED, Action.LATE, Action.MISMATCHED, Action.ORPHAN)
_COUNTERS: Final = {
    Action.PREDICTED: "predictions",
    Action.LABELLED: "labelled",
    Action.EXPIRED: "expired",
    Action.DUPLICATE_INTERACTION: "duplicate_interactions",
    Action.DUPLICATE_LABEL: "duplicate_labels",
    Action.EARLY: "early",
}
"""What is counted of each action; dead letters are counted by their fault."""


class Progress(NamedTuple):
    """How far a task has come, and what is planned of its batch."""

    predicted: int
    """Predictions planned."""
    folded: int
    """Outcomes planned."""
    first: int
    """The first prediction of the batch, the model's output for which is not known yet."""
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
    return _Consequences(taken, progress, model).of(taken.run(max_steps))


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
        closing = log.of(*_OUTCOMES)
        sources, targets = log.sources[closing], log.targets[closing]
        plan, opened = self._plan(log, closing, sources, targets)
        if any(happened[kind] for kind in _REFUSED):
            plan.dead_letters = self._dead_letters(log, counts)
        self._change_tables(log, plan, opened, sources, targets)
        return JoinedMessages(plan, merged, counts, log.stream_time)

    def _plan(
        self, log: ActionLog, closing: Integers, sources: Integers, targets: Integers
    ) -> tuple[Plan, Integers]:
        """Return the plan, and the interactions that were predicted.

        Parameters
        ----------
        log
            The actions.
        closing, sources, targets
            The places of those that close a prediction, with their labels and predictions.
        """
        progress, model, n = self.progress, self.model, self.slice.n
        predicted = log.of(Action.PREDICTED)
        opened = log.sources[predicted]
        interactions = self.slice.interactions if len(opened) == n else self.slice.interactions.select(opened)
        own = np.full(n, NONE)
        own[opened] = np.arange(len(opened))
        timestamps = self.slice.interaction_times[opened]
        ratios: list[Any] = [*self.slice.labels.field("watch_ratio")] if self.slice.m else []
        ratios += [each.label.watch_ratio for each in self.slice.early_labels]
        numbers = np.concatenate([progress.predicted + own, self.slice.entries.numbers])[targets]
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
            first=progress.predicted,
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
        return plan, opened

    def _prior(self, sources: Integers, targets: Integers, numbers: Integers) -> PriorPredictions:
        """Return those of the predictions with outcomes that were made before the batch, in their order."""
        before = np.flatnonzero((targets >= self.slice.n) & (numbers < self.progress.first))
        entries, labels = targets[before] - self.slice.n, sources[before]
        rows = self.slice.entries.rows[entries]
        inside, labelled = rows != NO_ROW, (labels >= 0) & (labels < self.slice.m)
        parts = [
            np.flatnonzero(inside & labelled),
            np.flatnonzero(inside & ~labelled),
            np.flatnonzero(~inside),
        ]
        of_labels, unlabelled, spilled = parts
        ids = [
            self.slice.labels.ids(column, labels[of_labels])
            for column in range(len(self.slice.labels.texts.begins))
        ]
        prior = _prior_in_memory(rows[of_labels], ids, self.slice.join)
        if len(unlabelled):
            found = self.slice.join.ids_of(rows[unlabelled])
            prior.extend(
                _prior_in_memory(rows[unlabelled], [*map(list, zip(*found, strict=True))], self.slice.join)
            )
        if len(spilled):
            prior.extend(PriorPredictions.of(map(self.slice.read_spilled, entries[spilled].tolist())))
        if len(unlabelled) or len(spilled):
            return prior.take(np.argsort(np.concatenate(parts)).tolist())
        return prior

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
                rejected = reason_of(kind, self.model.features.entity_names)
                source = self._early_label(row).source if row >= self.slice.m else self._label_source(row)
            counts[rejected.fault] += 1
            found.append(DeadLetter(source, rejected.fault, rejected.reason))
        return found

    def _label_source(self, row: int) -> Any:
        return self.slice.queues[1].source_at(int(self.slice.places[1][row]))

    def _early_label(self, source: int) -> EarlyLabel:
        return self.slice.early_labels[source - self.slice.m]

    def _change_tables(
        self, log: ActionLog, plan: Plan, opened: Integers, sources: Integers, targets: Integers
    ) -> None:
        """Let the tables follow: what waits, what is closed, and which labels are early."""
        join, n = self.slice.join, self.slice.n
        closed = self._closed_events(sources, targets, plan.folded, log.stream_time)
        entries = targets[targets >= n] - n
        rows = self.slice.entries.rows[entries]
        join.drop_rows(rows[rows != NO_ROW])
        if join.spilled and (rows == NO_ROW).any():
            join.spilled.remove_rows(self.slice.entries.spilled[entries[rows == NO_ROW]])
        left = np.ones(n, dtype=np.bool_)
        left[targets[targets < n]] = False
        waits = np.flatnonzero(left[opened])
        rows, ids = opened[waits], self.slice.interactions.texts
        whole = len(rows) == n
        join.open_rows(
            self.slice.digests[0] if whole else self.slice.digests[0][rows],
            plan.first + waits,
            np.array(plan.timestamps, dtype=np.int64)[waits],
            np.array(plan.versions, dtype=np.int64)[waits],
            ids if whole else ids.select(rows),
        )
        join.forget(log.stream_time)
        join.closed.append(*closed)
        if len(join.closed) > join.max_closed:
            join.forget(log.stream_time)
        came = log.sources[log.of(Action.EARLY)]
        if len(came) or len(self.slice.early_rows):
            self._change_early_labels(log, came)

    def _change_early_labels(self, log: ActionLog, came: Integers) -> None:
        """Let the labels that wait follow, given those that came."""
        table, m = self.slice.join.early_labels, self.slice.m
        gone = log.sources[log.of(Action.LABELLED, Action.MISMATCHED, Action.ORPHAN)]
        if (old := gone[gone >= m] - m).size:
            table.remove(self.slice.early_rows[old])
        if len(came := came[~np.isin(came, gone)]):
            table.add(self.slice.digests[1][came], [self._new_early_label(row) for row in came.tolist()])

    def _closed_events(
        self, sources: Integers, targets: Integers, first: int, stream_time: int
    ) -> tuple[Digests, Integers, Integers]:
        """Return digest, number and last moment of the closed events that are still to be remembered."""
        join, by_label = self.slice.join, sources != NONE
        numbers = 2 * np.arange(first, first + len(targets)) + ~by_label
        by_label &= sources < self.slice.m  # the label of an event has its digest
        if by_label.all():
            digests, closed_at = self.slice.digests[1][sources], self.slice.label_times[sources]
        else:
            digests, closed_at = np.empty((len(targets), 2), np.uint64), np.empty(len(targets), np.int64)
            labels, others = sources[by_label], np.flatnonzero(~by_label)
            digests[by_label], closed_at[by_label] = (
                self.slice.digests[1][labels],
                self.slice.label_times[labels],
            )
            digests[others], closed_at[others] = self._closed_otherwise(sources[others], targets[others])
        until = closed_at + join.window
        kept = until >= stream_time
        if kept.all():
            return digests, numbers, until
        return digests[kept], numbers[kept], until[kept]

    def _closed_otherwise(self, sources: Integers, targets: Integers) -> tuple[Digests, Integers]:
        """Return digest and moment of events that are closed as they expire, or by a label that waited."""
        n, own = self.slice.n, targets < self.slice.n
        digests, closed_at = np.empty((len(targets), 2), np.uint64), np.empty(len(targets), np.int64)
        digests[own], closed_at[own] = (
            self.slice.digests[0][targets[own]],
            self.slice.interaction_times[targets[own]],
        )
        closed_at[own] += self.slice.join.window
        entries = targets[~own] - n
        rows, spilled, numbers, waiting = self.slice.entries
        due = Due(waiting.deadlines[entries], numbers[entries], rows[entries], spilled[entries])
        digests[~own], closed_at[~own] = self.slice.join.digests_of(due), due.deadlines
        labelled = np.flatnonzero(sources != NONE)
        early = [
            self.slice.early_labels[source - self.slice.m].label.timestamp
            for source in sources[labelled].tolist()
        ]
        closed_at[labelled] = early
        return digests, closed_at

    def _new_early_label(self, row: int) -> EarlyLabel:
        place = int(self.slice.places[1][row])
        label = self.slice.queues[1].record_at(place)
        assert isinstance(label, Label)
        return EarlyLabel(label, self.slice.queues[1].source_at(place))


def reason_of(kind: Action, entities: Sequence[str], *, of_item: bool = False) -> RejectedRecord:
    """Return why a label cannot be used.

    Parameters
    ----------
    kind
        What happened to it.
    entities
        The names of the stream's entities.
    of_item
        Whether labels are of items of slates.
    """
    if kind is Action.LATE:
        return RejectedRecord(Fault.LATE, "the label came after its prediction had expired")
    if kind is Action.MISMATCHED:
        names = " or ".join(entities)
        return RejectedRecord(Fault.MISMATCHED, f"{names} differ from those of the interaction")
    assert kind is Action.ORPHAN
    about = "event_id and item" if of_item else "event_id"
    return RejectedRecord(Fault.ORPHAN, f"no interaction with this {about} came while the label waited")


def _spread(column: list[Any], sources: Integers, missing: Any) -> list[Any]:
    """Return a column of labels as one of outcomes."""
    if len(sources) == len(column) and (sources == np.arange(len(sources))).all():
        return column
    return [column[source] if source != NONE else missing for source in sources.tolist()]


def _entity_ids(columns: InputColumns, entities: int) -> tuple[list[Id], ...]:
    return tuple(columns.ids(1 + entity) if len(columns) else [] for entity in range(entities))


def _prior_in_memory(rows: Integers, ids: list[list[Id]], join: Join) -> PriorPredictions:
    """Return predictions of rows, given the ids of their events and of each entity."""
    if not len(rows):
        return PriorPredictions()
    pending = join.pending
    numbers, asked = pending.numbers[rows], pending["asked"][rows].tolist()
    return PriorPredictions(
        array("q", numbers.tobytes()),
        ids[0],
        tuple(ids[1:]),
        (pending.deadlines[rows] - join.window).tolist(),
        bytearray(join.scored.of(rows).tobytes()),
        [None if each == UNDECIDED else bool(each) for each in asked],
        join.challengers_of(numbers),
    )


_NO_QUEUE: Final = RecordQueue(Position(0), 0)
"""An input without messages."""
