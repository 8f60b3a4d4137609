"""One partition as a follower holds it: restored, then moved from state record to state record."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from pipeline.errors import StateError
from pipeline.log.outputs import OutcomeChunk
from pipeline.recovery.libraries import arithmetic_of
from pipeline.serving.answers import PartitionFigures, PartitionNotReadyError
from pipeline.serving.served_model import ServedModel
from pipeline.task.state import State

FOLDED_AT_ONCE: Final = 64
"""Outcomes that are learned while requests wait, at most: a fraction of a millisecond, but for a change of
the learner's map."""
RESTORED_AT_ONCE: Final = 500
"""The same while no request can be answered."""
YIELD: Final = 0.0002
"""Seconds left to a request that waits for the model, between two such steps."""
MAX_QUEUED: Final = 20_000
"""Outcomes, and state records, that are read ahead of the model, beside those of one poll."""
PATIENCE: Final = 10.0
"""Seconds after which outcomes that a state record counts are lost, if the topic ends before them. The
transaction that has written both may be committed a moment later in one of the topics."""
RETRY_AFTER: Final = 1.0
"""Seconds after which a request may come again while a model is restored."""
RESTORE_PAUSE: Final = 2.0
"""Seconds until a partition that failed is restored anew."""


class LostOutcomesError(StateError):
    """Outcomes between the model and the log are gone: the model has to be restored from a later snapshot."""


class Restored(NamedTuple):
    """A model that was restored from a snapshot, and the state record that names it."""

    model: ServedModel
    state: State | None
    """None where the group has committed nothing yet."""
    tables: TableFollower


class TableFollower(Protocol):
    """Applies the records of live tables to the rows of a model, as far as a state record says."""

    def poll(self) -> None:
        """Read what is there, without waiting."""

    def apply(self, model: ServedModel, target: dict[str, int]) -> None:
        """Apply some of the records below offsets, by table, that were read."""

    def close(self) -> None:
        """Close the connections."""


class Target(NamedTuple):
    """What a state record says of the model."""

    outcomes: int
    stream_time: int
    tables: dict[str, int]
    same_epoch: bool
    """Whether its settings and its arithmetic are those of the record before."""

    @classmethod
    def of(cls, state: State, *, same_epoch: bool) -> Target:
        """Return what a state record says."""
        tables = {name: table.offset for name, table in (state.tables or {}).items()}
        return cls(state.outcomes, state.stream_time, tables, same_epoch)


class FollowedPartition:
    """The model of a partition, behind a lock, and what is known of what it has to learn yet.

    All but `lend_model` and `figures` is for the follower's own thread.

    Parameters
    ----------
    number
        The partition's number.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.newest: State | None = None
        """The newest state record."""
        self.wants_restoration = True
        """Whether a model has to be restored: at first, after a loss, and when another epoch begins."""
        self.restore_from: State | None = None
        """The state record to restore from; None for the one that the group has committed."""
        self.restore_at = 0.0
        """When to begin, by `time.monotonic`."""
        self.next_state = 0
        """Offset of the next record to read in the topic of state records."""
        self.records_left = 0
        self.folds = 0
        """Outcomes learned since the follower began."""
        self._lock = threading.Lock()
        self._wanted = False
        """Whether a request waits for the model."""
        self._served: ServedModel | None = None
        self._growing: ServedModel | None = None
        self._tables: dict[int, TableFollower] = {}
        self._failure: str | None = None
        self._reason: str | None = None
        self._targets: deque[Target] = deque()
        self._queue: deque[OutcomeChunk] = deque()
        self._queued = 0
        self._read_to = 0
        """Offset up to which the outcomes are read."""
        self._starved_since: float | None = None
        self._end: tuple[float, int] | None = None
        """When the end of the outcomes was asked for, and where it was, until all below is learned."""
        self._current_at: float | None = None

    # What other threads call.

    @contextmanager
    def lend_model(self) -> Iterator[ServedModel]:
        """Lend the model, which learns nothing inside the block.

        Raises
        ------
        PartitionNotReadyError
            It is not restored, or cannot follow.
        """
        if not self._lock.acquire(blocking=False):
            self._wanted = True
            self._lock.acquire()
        try:
            if self._failure is not None:
                raise PartitionNotReadyError(self.number, self._failure, RESTORE_PAUSE)
            if self._served is None:
                left = f", {self.records_left:,} records are left" if self.records_left else ""
                raise PartitionNotReadyError(self.number, f"it is being restored{left}", RETRY_AFTER)
            yield self._served
        finally:
            self._lock.release()

    # What the follower's thread calls.

    def figures(self) -> PartitionFigures:
        """Return where the partition is."""
        served = self._served
        return PartitionFigures(
            partition=self.number,
            state="failed" if self._failure else "restoring" if served is None else "following",
            reason=self.reason,
            model_version=served.outcomes_learned if served else 0,
            epoch=served.epoch if served else 0,
            as_of=served.as_of if served else -1,
            lag=self._lag(served),
            current_at=self._current_at,
            records_left=self.records_left,
            settings=dict(served.settings) if served else {},
            challengers=served.challengers if served else (),
        )

    def _lag(self, served: ServedModel | None) -> int:
        outcomes_learned = served.outcomes_learned if served else 0
        known = max(outcomes_learned, self.newest.outcomes if self.newest else 0)
        if self._queue:
            known = max(known, self._queue[-1].outcomes.sequences[-1] + 1)
        unread = max(0, self._end[1] - self._read_to) if self._end else 0
        return known - outcomes_learned + unread

    @property
    def following(self) -> bool:
        """Whether the model that answers is the one that learns."""
        return self._served is not None and self._growing is None

    @property
    def reason(self) -> str | None:
        """Why it failed, or is restored anew."""
        return self._failure or self._reason

    @property
    def read_to(self) -> int:
        """Offset up to which the outcomes are read."""
        return self._read_to

    @property
    def full(self) -> bool:
        """Whether no more is to be read for now."""
        return self._queued > MAX_QUEUED or len(self._targets) > MAX_QUEUED

    @property
    def has_room(self) -> bool:
        """Whether there is room again."""
        return self._queued < MAX_QUEUED // 2 and len(self._targets) < MAX_QUEUED // 2

    def fail(self, reason: str) -> None:
        """Answer no more, and restore anew a moment later."""
        with self._lock:
            self._failure = reason
        self.restart(reason, pause=RESTORE_PAUSE)

    def restart(self, reason: str | None, *, pause: float = 0.0) -> None:
        """Restore anew from what the group has committed; the model that is there answers meanwhile."""
        self._reason, self.restore_from = reason, None
        self.wants_restoration, self.restore_at = True, time.monotonic() + pause
        self._forget_log()

    def close(self) -> None:
        """Close the connections of tables."""
        while self._tables:
            self._tables.popitem()[1].close()

    def _forget_log(self) -> None:
        """Forget what was read and not learned, and a model that was being restored."""
        self._queue.clear()
        self._targets.clear()
        self._queued, self._starved_since, self._end = 0, None, None
        if self._growing is not None:
            self._close_tables(self._growing)
            self._growing = None

    def _close_tables(self, model: ServedModel) -> None:
        self._tables.pop(id(model)).close()

    def restored(self, found: Restored, read_from: int) -> None:
        """Go on with a model that was restored: it learns what its state record counts, and then answers.

        Parameters
        ----------
        found
            The model.
        read_from
            Offset from which outcomes are read now.
        """
        later = self._targets if self.restore_from is not None else deque[Target]()
        self._targets = deque()
        self._forget_log()
        self.wants_restoration, self._read_to = False, read_from
        self._growing = found.model
        self._tables[id(found.model)] = found.tables
        if found.state is not None:
            self._targets.append(Target.of(found.state, same_epoch=True))
            if self.restore_from is None:
                self.newest = found.state
        self._targets.extend(later)
        self.restore_from = None
        if found.state is None:
            self._serve()

    def note_state(self, state: State) -> None:
        """Note the next state record."""
        before = self.newest
        self.newest = state
        if before is None and (model := self._growing or self._served) is not None:
            same = _key(state) == (model.settings, model.epoch, model.arithmetic)
        else:
            same = before is not None and _key(state) == _key(before)
        self._targets.append(Target.of(state, same_epoch=same))

    def note_outcomes(self, chunk: OutcomeChunk) -> None:
        """Note the next outcomes."""
        self._queue.append(chunk)
        self._queued += len(chunk.outcomes)
        self._read_to = chunk.offsets[-1] + 1
        self._starved_since = None

    def note_end(self, offset: int) -> None:
        """Note that the outcomes are read up to their end, which is at this offset."""
        self._read_to = max(self._read_to, offset)
        self._starved_since = self._starved_since or time.monotonic()

    def note_committed_end(self, asked_at: float, offset: int) -> None:
        """Note where the committed outcomes ended when that was asked for."""
        if self._end is None:
            self._end = asked_at, offset

    def advance(self) -> bool:
        """Learn the next outcomes, as far as state records say; return whether more is left to do.

        Raises
        ------
        StateError
            The outcomes do not follow on the model.
        """
        model = self._growing or self._served
        if model is None or self.wants_restoration:
            return False
        if not self._targets:
            self._note_current(model)
            return False
        target = self._targets[0]
        if not target.same_epoch:
            self._begin_epoch()
        elif target.outcomes < model.outcomes_learned:
            self.restart(
                f"the group has gone back from {model.outcomes_learned} outcomes to {target.outcomes}"
            )
        elif target.outcomes == model.outcomes_learned:
            return self._reach(model, target)
        elif self._fold(model, target.outcomes):
            self.records_left = target.outcomes - model.outcomes_learned if self._growing else 0
            return True
        else:
            self._refuse_starvation(model, target)
        return False

    def _begin_epoch(self) -> None:
        """Restore the model of another epoch; the one that is there only answers meanwhile."""
        self.restore_from, self.wants_restoration, self.restore_at = self.newest, True, 0.0
        self._targets.clear()

    def _fold(self, model: ServedModel, end: int) -> bool:
        """Learn some of the outcomes below a sequence; return whether there were any."""
        while self._queue:
            outcomes, _ = chunk = self._queue[0]
            sequences = outcomes.sequences
            begin = bisect_left(sequences, model.outcomes_learned)
            if begin == len(outcomes):  # learned already
                self._drop(chunk)
                continue
            if sequences[begin] > model.outcomes_learned:
                raise self._lost(model.outcomes_learned, sequences[begin])
            at_once = FOLDED_AT_ONCE if model is self._served else RESTORED_AT_ONCE
            stop = min(begin + at_once, begin + end - model.outcomes_learned, len(outcomes))
            with self._lock:
                try:
                    model.fold(outcomes[begin:stop])
                except ValueError as error:
                    raise StateError(
                        f"partition {self.number}: the outcomes from {sequences[begin]} on cannot be "
                        f"learned: {error}. `forks audit` tells which records were changed"
                    ) from error
            self.folds += stop - begin
            if stop == len(outcomes):
                self._drop(chunk)
            if self._wanted:  # else this thread would mostly have the lock again before the other wakes
                self._wanted = False
                time.sleep(YIELD)
            return True
        return False

    def _drop(self, chunk: OutcomeChunk) -> None:
        self._queue.popleft()
        self._queued -= len(chunk.outcomes)

    def _reach(self, model: ServedModel, target: Target) -> bool:
        """Stand at a state record once the tables are as it says; return whether more can be done at once."""
        tables, before = self._tables[id(model)], model.versions
        if target.tables != before:
            tables.poll()
            with self._lock:
                tables.apply(model, target.tables)
            if target.tables != model.versions:
                return model.versions != before
        with self._lock:
            model.as_of = target.stream_time
        self._targets.popleft()
        if model is self._growing:
            self._serve()
        return True

    def _serve(self) -> None:
        """Answer with the restored model, which has learned what its state record counts."""
        before = self._served
        with self._lock:
            self._served, self._growing, self._failure = self._growing, None, None
        self._reason, self.records_left = None, 0
        if before is not None:
            self._close_tables(before)

    def _refuse_starvation(self, model: ServedModel, target: Target) -> None:
        """Raise if the topic ends before outcomes that a state record counts."""
        since = self._starved_since
        if since is not None and time.monotonic() - since > PATIENCE:
            raise self._lost(model.outcomes_learned, target.outcomes)

    def _lost(self, begin: int, end: int) -> LostOutcomesError:
        return LostOutcomesError(
            f"outcomes {begin} to {end - 1} of partition {self.number} are not in the log any more: a later "
            "snapshot is needed"
        )

    def _note_current(self, model: ServedModel) -> None:
        """Note that the model has learned all that was committed when the end was asked for."""
        if self._end is None or self._growing is not None:
            return
        asked_at, offset = self._end
        while self._queue and self._queue[0].outcomes.sequences[-1] < model.outcomes_learned:
            self._drop(self._queue[0])
        if self._read_to >= offset and not (self._queue and self._queue[0].offsets[0] < offset):
            self._current_at, self._end = asked_at, None


def _key(state: State) -> tuple[dict[str, str], int, str]:
    """Return what tells one epoch from another.

    Where another arithmetic begins, the worker has gone on from a snapshot, and may differ in the last bits
    from a model that learned all outcomes before.
    """
    return state.settings, len(state.earlier), arithmetic_of(state)
