"""The tables of the join follow the actions of the join loop."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.join.actions import NONE, Action, ActionLog
from pipeline.join.answered_events import AnsweredEvents
from pipeline.join.digests import Digests
from pipeline.join.event_rows import NO_ROW
from pipeline.join.records import EarlyLabel
from pipeline.join.tables import Due
from pipeline.records.inputs import Label
from pipeline.records.places import flagged
from pipeline.records.texts import Texts
from pipeline.task.columns import OutcomeColumns
from pipeline.task.merging import Integers
from pipeline.task.plan import Plan
from pipeline.task.slice import Slice

Flags: TypeAlias = NDArray[np.bool_]

_EARLY: Final = (Action.EARLY,)
_NO_LONGER_EARLY: Final = (Action.LABELLED, Action.MISMATCHED, Action.ORPHAN)
_NO_INTEGERS: Final = np.empty(0, dtype=np.int64)


class TableChanges:
    """What changes in the tables: what waits, what is closed, and which labels are early.

    Parameters
    ----------
    slice_
        The messages, and what the tables know of them.
    log
        What happened.
    plan
        The plan of it.
    own
        The number of each row's prediction, shape (n,).
    sources, targets
        The label and the prediction of each outcome.
    """

    def __init__(  # noqa: PLR0917 - see above
        self, slice_: Slice, log: ActionLog, plan: Plan, own: Integers, sources: Integers, targets: Integers
    ) -> None:
        self._slice, self._log, self._plan, self._own = slice_, log, plan, own
        self._sources, self._targets = sources, targets
        self._join = slice_.join
        self._versions = plan.predictions[0].versions if plan.predictions else _NO_INTEGERS
        self._outcomes = plan.outcomes[0] if plan.outcomes else OutcomeColumns()

    def apply(self, opened: Integers) -> None:
        """Change the tables, given the rows that were predicted."""
        join, targets = self._join, self._targets
        digests, closed_at = self._closed_events()
        corrections = self._plan.corrections.rows
        if len(corrections):
            due, _ = self._times_and_versions(targets[corrections])
            closed_at[corrections] = np.maximum(closed_at[corrections], due + join.window)
        until = closed_at + join.window
        kept = flagged(self._remembered(until))
        numbers = 2 * np.arange(self._plan.outcomes_learned, self._plan.outcomes_learned + len(targets)) + (
            self._sources == NONE
        )
        answers = None if join.answered is None else self._answers(kept)
        self._change_waiting(opened)
        join.closed.remove(self._no_longer_closed())
        join.forget(self._log.stream_time)
        if join.answered is None or answers is None:
            join.closed.append(digests[kept], numbers[kept], until[kept])
        elif len(kept):
            apart = np.searchsorted(kept, corrections[np.isin(corrections, kept)])
            begin = join.answered.append(digests[kept], numbers[kept], until[kept], apart, **answers)
            self._store_prior(join.answered, begin, kept)
        if len(join.closed) > join.max_closed:
            join.forget(self._log.stream_time)
        came = self._log.sources[self._log.of(*_EARLY)]
        if len(came) or len(self._slice.early_rows):
            self._change_early_labels(came)

    # Predictions that wait.

    def _change_waiting(self, opened: Integers) -> None:
        join, n, targets = self._join, self._slice.n, self._targets
        entries = targets[targets >= n] - n
        if join.answered is not None:
            entries = entries[entries < len(self._slice.entries.rows)]
            entries = np.unique(entries)  # some may be closed, and corrected at once
        rows = self._slice.entries.rows[entries]
        join.pending.remove(rows[rows != NO_ROW])
        if join.spilled and (rows == NO_ROW).any():
            join.spilled.remove(self._slice.entries.spilled[entries[rows == NO_ROW]])
        left = np.ones(n, dtype=np.bool_)
        left[targets[targets < n]] = False
        waits = flagged(left[opened])
        rows, ids = opened[waits], self._slice.interaction_ids
        whole = len(rows) == n
        join.pending.open(
            self._slice.digests[0] if whole else self._slice.digests[0][rows],
            self._own[rows],
            self._slice.interaction_times[rows] + join.window,
            self._versions[waits],
            ids if whole else ids.select(rows),
        )

    # Closed events.

    def _remembered(self, until: Integers) -> Flags:
        """Return which outcomes are what is remembered of their events."""
        log, targets = self._log, self._targets
        kept: Flags = (until >= log.stream_time) & ~log.closed_gone[: len(targets)]
        if self._join.answered is not None and len(targets):
            _, from_end = np.unique(targets[::-1], return_index=True)
            last = np.zeros(len(targets), dtype=np.bool_)
            last[len(targets) - 1 - from_end] = True
            kept &= last
        return kept

    def _no_longer_closed(self) -> Integers:
        """Return the rows of closed events for which there is no room, or which have a newer outcome."""
        listed = self._slice.listed_closed
        gone = listed[self._log.closed_gone[len(self._log.closed_gone) - len(listed) :]]
        if self._join.answered is None:
            return gone
        closed = self._targets[self._slice.of_closed(self._targets)]
        if not len(closed):
            return gone
        rows: Integers = np.union1d(gone, self._slice.closed_rows_of(closed))
        return rows

    def _closed_events(self) -> tuple[Digests, Integers]:
        """Return of each outcome the digest of its event, and when it was known."""
        sources = self._sources
        by_label = (sources != NONE) & (sources < self._slice.m)  # the label of an event has its digest
        if by_label.all():
            return self._slice.digests[1][sources], self._slice.label_times[sources]
        digests, closed_at = np.empty((len(sources), 2), np.uint64), np.empty(len(sources), np.int64)
        labels, others = sources[by_label], flagged(~by_label)
        digests[by_label], closed_at[by_label] = (
            self._slice.digests[1][labels],
            self._slice.label_times[labels],
        )
        digests[others], closed_at[others] = self._closed_otherwise(others)
        return digests, closed_at

    def _closed_otherwise(self, outcomes: Integers) -> tuple[Digests, Integers]:
        """Return digest and moment of events that are closed as they expire, or by a label that waited."""
        sources, targets = self._sources[outcomes], self._targets[outcomes]
        n, own = self._slice.n, targets < self._slice.n
        digests, closed_at = np.empty((len(targets), 2), np.uint64), np.empty(len(targets), np.int64)
        digests[own] = self._slice.digests[0][targets[own]]
        closed_at[own] = self._slice.interaction_times[targets[own]] + self._join.window
        entries = targets[~own] - n
        rows, spilled, numbers, waiting = self._slice.entries
        due = Due(waiting.deadlines[entries], numbers[entries], rows[entries], spilled[entries])
        digests[~own], closed_at[~own] = self._join.digests_due(due), due.deadlines
        labelled = flagged(sources != NONE)
        early = self._slice.early_labels
        closed_at[labelled] = [early[row].label.timestamp for row in sources[labelled] - self._slice.m]
        return digests, closed_at

    # What may be corrected.

    def _answers(self, outcomes: Integers) -> dict[str, NDArray[np.generic]]:
        """Return columns of `AnsweredEvents` for some outcomes."""
        sources, targets = self._sources[outcomes], self._targets[outcomes]
        timestamps, versions = self._times_and_versions(targets)
        weights = self._outcomes.weights
        return {
            "versions": versions,
            "timestamps": timestamps,
            "label_times": self._outcomes.label_timestamps[outcomes],
            "predictions": self._outcomes.numbers[outcomes],
            "id_digests": self._id_digests(sources, targets),
            "values": self._outcomes.values[outcomes],
            "weights": np.ones(len(targets)) if weights is None else weights[outcomes],
            "learned": np.full(len(targets), np.nan),
        }

    def _times_and_versions(self, targets: Integers) -> tuple[Integers, Integers]:
        """Return when predictions were made, and how many outcomes there were before them."""
        n, closed = self._slice.n, self._slice.of_closed(targets)
        own, waiting = targets < n, (targets >= n) & ~closed
        timestamps, versions = np.empty((2, len(targets)), dtype=np.int64)
        made = np.empty(n, dtype=np.int64)
        made[flagged(self._own != NONE)] = self._versions
        timestamps[own], versions[own] = self._slice.interaction_times[targets[own]], made[targets[own]]
        entries = targets[waiting] - n
        timestamps[waiting] = self._slice.entries.waiting.deadlines[entries] - self._join.window
        versions[waiting] = self._slice.versions_of(entries)
        if closed.any():
            assert self._join.answered is not None
            rows = self._slice.closed_rows_of(targets[closed])
            timestamps[closed] = self._join.answered.integers("timestamps")[rows]
            versions[closed] = self._join.answered.integers("versions")[rows]
        return timestamps, versions

    def _id_digests(self, sources: Integers, targets: Integers) -> Digests:
        """Return digests of all ids of events, given their outcomes' labels and predictions."""
        digester, m = self._join.digester, self._slice.m
        digests = np.empty((len(sources), 2), dtype=np.uint64)
        by_label = flagged((sources != NONE) & (sources < m))
        by_row = flagged(((sources == NONE) | (sources >= m)) & (targets < self._slice.n))
        digests[by_label] = digester.digests_of_rows(self._slice.label_ids.select(sources[by_label]))
        digests[by_row] = digester.digests_of_rows(self._slice.interaction_ids.select(targets[by_row]))
        others = flagged((sources == NONE) & (targets >= self._slice.n))
        if len(others):
            ids = self._slice.ids_of_waiting(targets[others] - self._slice.n)
            digests[others] = digester.digests_of_rows(Texts.of_id_rows(ids))
        return digests

    def _store_prior(self, table: AnsweredEvents, begin: int, outcomes: Integers) -> None:
        """Keep what the model predicted before the batch for events that are now closed."""
        first = self._outcomes.numbers < self._plan.first
        before = flagged(first[outcomes])
        if len(before):
            places = np.cumsum(first) - 1
            table.store(begin + before, self._plan.prior[0], places[outcomes[before]])

    # Labels that wait.

    def _change_early_labels(self, came: Integers) -> None:
        """Let the labels that wait follow, given those that came."""
        table, m = self._join.early_labels, self._slice.m
        gone = self._log.sources[self._log.of(*_NO_LONGER_EARLY)]
        if (old := gone[gone >= m] - m).size:
            table.remove(self._slice.early_rows[old])
        if len(came := came[~np.isin(came, gone)]):
            table.add(self._slice.digests[1][came], [self._new_early_label(row) for row in came.tolist()])

    def _new_early_label(self, row: int) -> EarlyLabel:
        place = int(self._slice.places[1][row])
        label = self._slice.queues[1].record_at(place)
        assert isinstance(label, Label)
        return EarlyLabel(label, self._slice.queues[1].source_at(place))
