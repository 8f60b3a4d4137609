"""The pure core of one partition: messages in, columns out, without clock, I/O or Kafka.

The order of predictions and training examples depends on ids and times alone. So the messages of a batch are
merged and joined first, and then the model runs all of them at once, with the same bits as one by one
(`pipeline.task.batch`). The result does not depend on how messages fell into batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import UNSET, UnsetType

from pipeline.config.settings import Join as JoinSettings
from pipeline.join.spill import SpilledPredictions
from pipeline.join.tables import Join
from pipeline.model.comparison import Comparison
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records.decoding import LABEL_DECODER, NO_TIMESTAMP, InputDecoder
from pipeline.records.inputs import Label
from pipeline.records.names import Fault
from pipeline.records.places import flagged
from pipeline.records.slates import STRIDE
from pipeline.task.aligned_inbox import AlignedInbox
from pipeline.task.batch import Batch, run_plan
from pipeline.task.columns import OutcomeColumns
from pipeline.task.inbox import Inbox
from pipeline.task.live_tables import LiveTable, LiveTables
from pipeline.task.merging import INTERACTION, Merged, merge_queued
from pipeline.task.plan import DeadLetter, Plan
from pipeline.task.planning import MAX_MESSAGES, Progress, join_queued, pass_time
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.sharing import Outbox, SharingSettings
from pipeline.task.state import (
    Libraries,
    OffsetIndex,
    SavedLabel,
    SettingsEpoch,
    SnapshotReference,
    State,
    counters,
)


class Task:
    """One partition's state, moved by `advance`.

    Parameters
    ----------
    partition
        Its number.
    model
        Model with the outcomes learned so far.
    settings
        How predictions and labels find one another.
    interactions, labels
        Committed positions in the inputs.
    policy
        Decides which labels are asked for; None where all are learned as they come.
    sharing
        Settings of the outbox for the other partitions; None where nothing is shared.
    spilled
        Takes waiting predictions that have no room in memory; None to hold all in memory.
    tables
        The live tables, in the order of the stream's definition.
    """

    def __init__(
        self,
        partition: int,
        model: Model,
        settings: JoinSettings,
        interactions: Position,
        labels: Position,
        *,
        policy: LabelPolicy | None = None,
        sharing: SharingSettings | None = None,
        spilled: SpilledPredictions | None = None,
        tables: Sequence[LiveTable] = (),
    ) -> None:
        self.partition = partition
        self.model = model
        self.policy = policy
        max_jump, max_behind = settings.max_jump, settings.max_behind
        self.interactions = RecordQueue(interactions, max_jump, max_behind)
        self.labels = RecordQueue(labels, max_jump, max_behind)
        self.tables = LiveTables(tables)
        slates = model.features.item_entities
        self.join = Join(settings, spilled, slates)
        self.stream_time = NO_TIMESTAMP
        """The largest timestamp merged, in milliseconds."""
        self.predicted = 0
        """Predictions made: the sequence of the next one."""
        self.counters = counters(
            corrections=settings.corrections != "off", tables=bool(self.tables), slates=bool(slates)
        )
        self.prediction_offsets = OffsetIndex(0)
        self.outcome_offsets = OffsetIndex(0)
        self.snapshot: SnapshotReference | None = None
        self.previous: SnapshotReference | None = None
        """The snapshot before that."""
        self.earlier: list[SettingsEpoch] = []
        """The epochs of settings that have ended."""
        self.libraries: Libraries | UnsetType = UNSET
        """The libraries that the outputs were computed with; not set where nobody notes them."""
        self.outbox = Outbox(partition, sharing, since=0) if sharing else None
        """Collects what the other partitions are to learn; None where nothing is shared."""
        self.inbox = _inbox(partition, sharing)
        """Holds what the other partitions shared, until it is learned."""
        self.comparison = Comparison(model) if model.challengers else None
        """Counts of champion and challengers; None where there are no challengers."""
        self._missing_label = model.target.missing_label(settings.on_missing)
        self._plan = Plan(0, 0, NO_TIMESTAMP)
        self._stride = STRIDE if slates else 1
        """How far the numbers of two predictions are from one another: see `pipeline.records.slates`."""

    def advance(self, limit: int) -> Batch:
        """Merge and process messages, as far as the inputs allow, in at most `limit` steps.

        By timestamp, on ties tables first, then labels. Where an input or a table has nothing buffered but
        may have more, the merge waits; where it is at its end, the others go on without it. Nothing is
        processed either while the inbox waits for shares of other partitions. A table's record does not move
        stream time.
        """
        plan = self._begin_batch()
        while plan.steps < limit and self.inbox.ready and (queue := self._next_queue()) is not None:
            if isinstance(queue, LiveTable):
                self._apply(queue)
            else:
                assert queue.time is not None
                self._join_messages(queue.time, limit - plan.steps)
        return self._finish_batch()

    def punctuate(self, now: int, limit: int) -> Batch:
        """Move stream time towards `now` (milliseconds) without a message, if that is forward."""
        self._begin_batch()
        if now > self.stream_time:
            self._take(pass_time(self.join, self.model, self._progress, now, limit))
        return self._finish_batch()

    def rewind(self) -> None:
        """Drop buffered messages: inputs and tables will be fed again from their positions on."""
        self.interactions.rewind()
        self.labels.rewind()
        self.tables.rewind()

    def _begin_batch(self) -> Plan:
        self._plan = Plan(self.predicted * self._stride, self.model.outcomes_learned, self.stream_time)
        return self._plan

    def _finish_batch(self) -> Batch:
        batch = run_plan(
            self._plan,
            self.model,
            self.join,
            self.counters,
            self._missing_label,
            outbox=self.outbox,
            policy=self.policy,
        )
        if self.comparison is not None:
            self._compare(batch.outcomes, self.comparison)
        return batch

    def _compare(self, outcomes: OutcomeColumns, comparison: Comparison) -> None:
        """Count the labelled outcomes whose predictions the current learners made."""
        since = self.earlier[-1].predictions if self.earlier else 0
        rows = flagged(~outcomes.expired & (outcomes.prediction_sequences >= since))
        scores = [outcomes.challengers[row] for row in rows.tolist()] if outcomes.challengers else []
        comparison.add(
            outcomes.scores[rows],
            [{} if each is None else each.by_name() for each in scores],
            outcomes.values[rows].tolist(),
        )

    def _next_queue(self) -> RecordQueue | LiveTable | None:
        """Return the input or the table with the next message; None to wait for more."""
        if not self.tables:
            return self._next_input()
        if not (self.tables.ready and self.interactions.ready and self.labels.ready):
            return None
        table, queue = self.tables.next, self._next_input()
        if table is None or queue is None:
            return table or queue
        time, table_time = queue.time, table.queue.time
        assert time is not None
        assert table_time is not None
        return table if table_time <= time else queue

    def _next_input(self) -> RecordQueue | None:
        """Return the input with the next message, as if there were no tables."""
        next_interaction, next_label = self.interactions.time, self.labels.time
        if next_interaction is None:
            if next_label is None or not self.interactions.at_end:
                return None
            return self.labels
        if next_label is None:
            return self.interactions if self.labels.at_end else None
        return self.labels if next_label <= next_interaction else self.interactions

    def _join_messages(self, time: int, max_steps: int) -> None:
        """Join the next messages, the first of this time, up to a table's record or another window."""
        ends = [self.inbox.next_window, *(table.queue.time for table in self.tables.tables)]
        end = min((time for time in ends if time is not None), default=None)
        merged = merge_queued(self.interactions, self.labels, min(MAX_MESSAGES, max_steps), end)
        if self._stride > 1:
            merged = merged.first(_fitting(merged, self.interactions, max_steps))
        if not len(merged.kinds):  # another window begins before the next message
            self._take(pass_time(self.join, self.model, self._progress, time, max_steps))
            return
        plan = join_queued(
            self.interactions, self.labels, merged, self.join, self.model, self._progress, max_steps
        )
        if self.tables:
            for predictions in plan.predictions:
                self.tables.fill(predictions)
        self.interactions.skip(plan.counts["interactions"])
        self.labels.skip(plan.counts["labels"])
        self._take(plan)

    def _take(self, plan: Plan) -> None:
        """Append what was joined."""
        for name, count in plan.counts.items():
            self.counters[name] += count
        self.predicted += plan.counts.get("predictions", 0)
        for number in range(sum(map(len, plan.outcomes))):
            if not (shares := self.inbox.drain()):
                break
            plan.received[number] = shares
        self._plan.extend(plan)
        self.stream_time = plan.stream_time
        self.inbox.move(self.stream_time)
        if self.outbox is not None:
            self.outbox.move(self.stream_time, self._plan.next_outcome)

    @property
    def _progress(self) -> Progress:
        plan = self._plan
        return Progress(
            self.predicted,
            plan.next_outcome,
            plan.first,
            plan.outcomes_learned,
            self.inbox.max_outcomes,
            self.stream_time,
        )

    def _apply(self, table: LiveTable) -> None:
        """Apply the next record of a table."""
        fault = self.tables.apply(table)
        self._plan.steps += 1
        if fault is not None and table.reports:
            self.counters[fault.fault] += 1
            self._plan.dead_letters.append(DeadLetter(table.queue.source(), fault.fault, fault.reason))

    def state(self, settings: dict[str, str]) -> State:
        """Return the state record of this moment, with the offsets known so far."""
        prediction, outcome = self._lowest_needed()
        return State(
            partition=self.partition,
            settings=settings,
            stream_time=self.stream_time,
            interactions=self.interactions.position,
            labels=self.labels.position,
            predictions=self.predicted,
            outcomes=self.model.outcomes_learned,
            pending=self.join.pending_count,
            pending_from=prediction,
            outcomes_from=outcome,
            prediction_offset=self.prediction_offsets.floor(prediction),
            outcome_offset=self.outcome_offsets.floor(outcome),
            snapshot=self.snapshot,
            waiting=[SavedLabel.save(early) for early in self.join.early_labels],
            counters=dict(self.counters),
            previous=self.previous,
            earlier=self.earlier,
            published=self.outbox.since if self.outbox else None,
            taken=dict(self.inbox.taken),
            windows=self.inbox.windows or UNSET,
            tables=self.tables.states() or UNSET,
            libraries=self.libraries,
        )

    @classmethod
    def restore(
        cls,
        state: State,
        model: Model,
        settings: JoinSettings,
        *,
        policy: LabelPolicy | None = None,
        sharing: SharingSettings | None = None,
        spilled: SpilledPredictions | None = None,
        tables: Sequence[LiveTable] = (),
        labels: InputDecoder[Label] = LABEL_DECODER,
    ) -> Task:
        """Return the task of a state record: the inverse of `state`.

        Outcomes since the snapshot, waiting predictions and closed events are not in the record. They are
        read from the log: see `pipeline.recovery.restoration.TaskRestorer`.

        Parameters
        ----------
        state
            The last committed state record.
        model
            The model of its snapshot, or one that has learned nothing.
        settings, policy, sharing, spilled, tables
            As for a new task; the tables as they were.
        labels
            Decodes the labels that wait for their interaction.
        """
        task = cls(
            state.partition,
            model,
            settings,
            state.interactions,
            state.labels,
            policy=policy,
            sharing=sharing,
            spilled=spilled,
            tables=tables,
        )
        task.stream_time = state.stream_time
        task.predicted = state.predictions
        known = {*task.counters, Fault.PAST.value}
        task.counters.update({name: count for name, count in state.counters.items() if name in known})
        task.prediction_offsets = OffsetIndex(state.prediction_offset)
        task.outcome_offsets = OffsetIndex(state.outcome_offset)
        task.snapshot, task.previous = state.snapshot, state.previous
        task.earlier, task.libraries = state.earlier, state.libraries
        task.inbox = _inbox(state.partition, sharing, state)
        if sharing is not None:
            since = state.outcomes if state.published is None else state.published
            task.outbox = Outbox(state.partition, sharing, since, state.stream_time)
        task.join.wait_for_interactions([saved.restore(labels) for saved in state.waiting])
        return task

    def snapshot_written(self, reference: SnapshotReference) -> None:
        """Note the snapshot that was written last; the one before it stays known as the previous one."""
        self.previous, self.snapshot = self.snapshot, reference

    def _lowest_needed(self) -> tuple[int, int]:
        """Return the first predictions and outcomes that a restart needs, apart from the model's."""
        number, outcome = self.join.lowest_needed(self.predicted * self._stride, self.model.outcomes_learned)
        prediction = number // self._stride
        return prediction, min(outcome, self.outbox.since) if self.outbox else outcome

    def note_offsets(self, batch: Batch, prediction_offset: int | None, outcome_offset: int | None) -> None:
        """Note the offsets at which the first prediction and the first outcome of a batch were written."""
        prediction, outcome = self._lowest_needed()
        if prediction_offset is not None:
            self.prediction_offsets.add(batch.predictions.first, prediction_offset)
            self.prediction_offsets.forget(prediction)
        if outcome_offset is not None:
            self.outcome_offsets.add(batch.outcomes.first, outcome_offset)
            self.outcome_offsets.forget(outcome)


def _fitting(merged: Merged, interactions: RecordQueue, max_steps: int) -> int:
    """Return how many merged messages have so many items and labels, at least one."""
    steps = np.ones(len(merged.kinds), dtype=np.int64)
    steps[merged.kinds == INTERACTION] = interactions.item_counts(merged.interactions)
    return max(1, int(np.searchsorted(np.cumsum(steps), max_steps, side="right")))


def _inbox(partition: int, sharing: SharingSettings | None, state: State | None = None) -> Inbox:
    """Return the inbox of a new task, or of the task of a state record."""
    taken = {} if state is None else state.taken
    if sharing is None or sharing.align is None:
        return Inbox(partition, taken)
    windows, stream_time = ({}, NO_TIMESTAMP) if state is None else (state.windows or {}, state.stream_time)
    return AlignedInbox(partition, sharing, taken, windows, stream_time)
