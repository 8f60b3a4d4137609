"""The join loop: what becomes of each message, of each prediction and of each early label, in their order.

It goes once through the merged messages of a partition, compiled, and writes a log of actions. Of the tables
it knows only what these messages, and time as it passes in them, can touch. The tables themselves are changed
afterwards, by what the log says (`pipeline.task.planning`).

Stream time moves with the messages. When it moves, predictions whose deadline lies before it expire, by
deadline and number, then early labels are orphans, then closed events are forgotten. A table that is full
loses the entry that is due first.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from enum import IntEnum
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import ZERO, njit, read_only
from pipeline.records.texts import Texts

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]
Heap: TypeAlias = list[tuple[int, int]]

NONE: Final = -1
"""No symbol, no prediction, no label; a closed event that is not remembered."""


class Message(IntEnum):
    """What the next message is."""

    INTERACTION = 0
    LABEL = 1
    REJECTED = 2
    """It cannot be used, and does not move stream time."""
    TIME = 3
    """It is none: stream time moves all the same."""


class Action(IntEnum):
    """What happens."""

    PREDICTED = 0
    """An interaction is predicted."""
    LABELLED = 1
    """A prediction gets its label."""
    EXPIRED = 2
    """A prediction gets no label in time."""
    EVICTED = 3
    """A prediction gets no label, because there is no room for it to wait."""
    DUPLICATE_INTERACTION = 4
    DUPLICATE_LABEL = 5
    LATE = 6
    """A label comes after its prediction has expired."""
    MISMATCHED = 7
    """A label names other entities than its interaction."""
    EARLY = 8
    """A label comes before its interaction."""
    ORPHAN = 9
    """An early label waits no longer."""
    REJECTED = 10
    """A message cannot be used."""


# Plain numbers, for compiled code.
_IS_INTERACTION: Final = int(Message.INTERACTION)
_IS_LABEL: Final = int(Message.LABEL)
_IS_REJECTED: Final = int(Message.REJECTED)
_IS_TIME: Final = int(Message.TIME)
_PREDICTED: Final = int(Action.PREDICTED)
_LABELLED: Final = int(Action.LABELLED)
_EXPIRED: Final = int(Action.EXPIRED)
_EVICTED: Final = int(Action.EVICTED)
_DUPLICATE_INTERACTION: Final = int(Action.DUPLICATE_INTERACTION)
_DUPLICATE_LABEL: Final = int(Action.DUPLICATE_LABEL)
_LATE: Final = int(Action.LATE)
_MISMATCHED: Final = int(Action.MISMATCHED)
_EARLY: Final = int(Action.EARLY)
_ORPHAN: Final = int(Action.ORPHAN)
_REJECTED: Final = int(Action.REJECTED)


class Limits(NamedTuple):
    """The settings of the join, and how many steps are left."""

    window: int
    """How long a prediction waits, in milliseconds."""
    early: int
    """How long a label waits."""
    most_pending: int
    """Predictions that may wait."""
    most_early: int
    """Bytes of early labels."""
    most_closed: int
    """Closed events that are remembered."""
    max_steps: int
    """Messages, predictions that expire and labels that are orphans because time passes."""


class Messages(NamedTuple):
    """Merged messages, of n interactions and m labels that can be used."""

    kinds: NDArray[np.uint8]
    """`Message` of each, shape (messages,)."""
    rows: Integers
    """Its row among the interactions, among the labels, or among what cannot be used."""
    times: Integers
    """In milliseconds."""
    interaction_symbols: Integers
    """The symbol of each interaction's event, shape (n,)."""
    label_symbols: Integers
    """That of each label's event, shape (m,)."""
    label_sizes: Integers
    """Bytes of each label's message."""
    interaction_ids: Texts
    label_ids: Texts


class Waiting(NamedTuple):
    """Entries of a table that these messages or their times can touch, and in which order they are due."""

    deadlines: Integers
    """Of each entry, in milliseconds."""
    symbols: Integers
    """The symbol of each entry's event, `NONE` if no message is of it."""
    order: Integers
    """The entries that may be due, by deadline and number."""
    complete: bool
    """Whether no other entry may be due."""
    size: int
    """What the table holds: entries, and of early labels their bytes."""


class Known(NamedTuple):
    """What the tables say of the events of these messages, by symbol, before any of them."""

    pending: Integers
    """The prediction that waits: n and its entry; `NONE` without one."""
    early: Integers
    """The label that waits: m and its entry; `NONE` without one."""
    closed_until: Integers
    """How long the closed event is remembered; `NONE` if it is not closed."""
    closed_expired: Flags
    """Whether it was closed without a label."""
    same_pending: Flags
    """Of each label: whether it names the entities of the prediction that waits, shape (m,)."""
    same_early: Flags
    """Of each interaction: whether the label that waits names its entities, shape (n,)."""


class ActionLog(NamedTuple):
    """What happened, in order."""

    kinds: NDArray[np.uint8]
    """`Action` of each, shape (actions,)."""
    sources: Integers
    """Of a label: its row, or m and the entry of one that waited. Of another message: its row."""
    targets: Integers
    """The prediction: the row of its interaction, or n and the entry of one that waited."""
    messages: int
    """How many messages were processed."""
    stream_time: int
    """After them, in milliseconds."""
    steps: int

    def of(self, *kinds: Action) -> Integers:
        """Return the places of actions of these kinds."""
        wanted = np.zeros(len(Action), dtype=np.bool_)
        wanted[[*kinds]] = True
        return np.flatnonzero(wanted[self.kinds])


def join_messages(
    messages: Messages,
    known: Known,
    pending: Waiting,
    early: Waiting,
    early_sizes: Integers,
    closed: Waiting,
    limits: Limits,
    stream_time: int,
) -> ActionLog:
    """Go through merged messages, and say what happens.

    It ends before a message for which the steps are used up, or for which more predictions may be due than
    `pending` names.

    Parameters
    ----------
    messages
        The messages.
    known
        What is known of their events.
    pending, early
        Predictions and early labels: those of these events, and those that may be due.
    early_sizes
        Bytes of the messages of these early labels.
    closed
        Closed events that may be forgotten for want of room; none where there is room for all.
    limits
        The settings.
    stream_time
        In milliseconds.

    Examples
    --------
    An interaction at time 10, and its label at 13; the time is 30 then, when nothing waits any longer.

    >>> ids, none = Texts.of_ids([7], [[1]]), np.empty(0, dtype=np.int64)
    >>> one, nothing = np.zeros(1, dtype=np.int64), Waiting(none, none, none, True, 0)
    >>> known = Known(one - 1, one - 1, one - 1, one > 0, one > 0, one > 0)
    >>> kinds = np.array([Message.INTERACTION, Message.LABEL, Message.TIME], dtype=np.uint8)
    >>> merged = Messages(kinds, np.zeros(3, np.int64), np.array([10, 13, 30]), one, one, one, ids, ids)
    >>> found = join_messages(
    ...     merged, known, nothing, nothing, none, nothing, Limits(9, 9, 9, 9, 9, max_steps=9), stream_time=0
    ... )
    >>> [Action(kind).name for kind in found.kinds], found.messages, found.stream_time, found.steps
    (['PREDICTED', 'LABELLED'], 3, 30, 2)
    """
    n, m = len(messages.interaction_symbols), len(messages.label_symbols)
    room = 3 * len(messages.kinds) + n + m + len(pending.deadlines) + len(early.deadlines)
    kinds = np.empty(room, dtype=np.uint8)
    sources, targets = np.empty((2, room), dtype=np.int64)
    tracked = limits.most_closed < closed.size + n + len(pending.deadlines)
    done, actions, time, steps = _run(
        messages.kinds,
        messages.rows,
        messages.times,
        messages.interaction_symbols,
        messages.label_symbols,
        messages.label_sizes,
        read_only(messages.interaction_ids.text),
        messages.interaction_ids.begins,
        messages.interaction_ids.ends,
        read_only(messages.label_ids.text),
        messages.label_ids.begins,
        messages.label_ids.ends,
        known.pending.copy(),
        known.early.copy(),
        known.closed_until.copy(),
        known.closed_expired.copy(),
        known.same_pending,
        known.same_early,
        pending.deadlines,
        pending.symbols,
        pending.order,
        pending.complete,
        pending.size,
        early.deadlines,
        early.symbols,
        early.order,
        early_sizes,
        early.size,
        closed.deadlines,
        closed.symbols,
        closed.order,
        tracked,
        closed.size,
        *limits,
        stream_time,
        kinds,
        sources,
        targets,
    )
    return ActionLog(kinds[:actions], sources[:actions], targets[:actions], done, time, steps)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    none, ids = np.empty(0, dtype=np.int64), Texts.of_ids([], [[]])
    nothing = Waiting(none, none, none, complete=True, size=0)
    flags, kinds = none > 0, none.astype(np.uint8)
    join_messages(
        Messages(kinds, none, none, none, none, none, ids, ids),
        Known(none, none, none, flags, flags, flags),
        nothing,
        nothing,
        none,
        nothing,
        Limits(0, 0, 0, 0, 0, 0),
        stream_time=0,
    )


# One function, because calls with so many tables cost more than what they do, and values that go with them
# would have to come back.
@njit(cache=True, nogil=True, allocates=True)
def _run(  # noqa: PLR0912, PLR0915 - see above
    kinds: NDArray[np.uint8],
    rows: Integers,
    times: Integers,
    interaction_symbols: Integers,
    label_symbols: Integers,
    label_sizes: Integers,
    interaction_text: Bytes,
    interaction_begins: Integers,
    interaction_ends: Integers,
    label_text: Bytes,
    label_begins: Integers,
    label_ends: Integers,
    pending_of: Integers,
    early_of: Integers,
    closed_until: Integers,
    closed_expired: Flags,
    same_pending: Flags,
    same_early: Flags,
    pending_deadlines: Integers,
    pending_symbols: Integers,
    pending_order: Integers,
    complete: bool,
    pending_count: int,
    early_deadlines: Integers,
    early_symbols: Integers,
    early_order: Integers,
    early_sizes: Integers,
    early_bytes: int,
    closed_deadlines: Integers,
    closed_symbols: Integers,
    closed_order: Integers,
    tracked: bool,
    closed_count: int,
    window: int,
    early_window: int,
    most_pending: int,
    most_early: int,
    most_closed: int,
    max_steps: int,
    stream_time: int,
    out_kinds: NDArray[np.uint8],
    out_sources: Integers,
    out_targets: Integers,
) -> tuple[int, int, int, int]:
    """Write the actions; return the numbers of messages and actions, the time, and the steps."""
    n, m = len(interaction_symbols), len(label_symbols)
    outcomes_room = n + len(pending_deadlines)
    interaction_times, label_times = np.empty(n, dtype=np.int64), np.empty(m, dtype=np.int64)
    pending_gone = np.zeros(n + len(pending_deadlines), dtype=np.bool_)
    early_gone = np.zeros(m + len(early_deadlines), dtype=np.bool_)
    closed_gone = np.zeros(outcomes_room + len(closed_deadlines), dtype=np.bool_)
    own_closed_symbols = np.empty(outcomes_room, dtype=np.int64)
    opened = [(stream_time, n) for _ in range(0)]  # heaps of deadlines and entries
    waiting = [(stream_time, n) for _ in range(0)]
    remembered = [(stream_time, n) for _ in range(0)]
    pending_head = early_head = closed_head = ZERO
    done = actions = steps = outcomes = ZERO
    while done < len(kinds) and steps < max_steps:
        kind, row, time = kinds[done], rows[done], times[done]
        if kind == _IS_REJECTED:
            out_kinds[actions], out_sources[actions] = _REJECTED, row
            actions += 1
            steps += 1
            done += 1
            continue
        phase, entry, label, crowded = 0, NONE, NONE, False
        stopped = False
        # Each turn makes at most one outcome: see `close` below.
        while True:
            entry, label, crowded = NONE, NONE, False
            if phase == 0:
                if time <= stream_time:
                    phase = 3
                    continue
                pending_head, first, deadline = _earliest(
                    pending_order, pending_deadlines, n, pending_gone, pending_head, opened
                )
                if pending_head == len(pending_order) and not complete:
                    stopped = True
                    break
                if first == NONE or (deadline >= time and pending_count <= most_pending):
                    phase = 1
                    continue
                if steps >= max_steps:
                    stopped = True
                    break
                steps += 1
                entry, crowded = first, deadline >= time
            elif phase == 1:
                early_head, first, deadline = _earliest(
                    early_order, early_deadlines, m, early_gone, early_head, waiting
                )
                if first == NONE or (deadline >= time and early_bytes <= most_early):
                    phase = 2
                    continue
                if steps >= max_steps:
                    stopped = True
                    break
                steps += 1
                early_gone[first] = True
                early_bytes -= label_sizes[first] if first < m else early_sizes[first - m]
                symbol = label_symbols[first] if first < m else early_symbols[first - m]
                if symbol != NONE:
                    early_of[symbol] = NONE
                out_kinds[actions], out_sources[actions] = _ORPHAN, first
                actions += 1
                continue
            elif phase == 2:
                if steps >= max_steps:
                    stopped = True
                    break
                stream_time = time
                while tracked:
                    closed_head, first, deadline = _earliest(
                        closed_order, closed_deadlines, outcomes_room, closed_gone, closed_head, remembered
                    )
                    if first == NONE or deadline >= stream_time:
                        break
                    closed_gone[first] = True
                    closed_count -= 1
                phase = 3
                continue
            elif phase == 3:
                if kind == _IS_INTERACTION:
                    symbol = interaction_symbols[row]
                    if pending_of[symbol] != NONE or _remembers(closed_until[symbol], stream_time):
                        out_kinds[actions], out_sources[actions] = _DUPLICATE_INTERACTION, row
                        actions += 1
                        break
                    if pending_count >= most_pending and not complete:
                        pending_head, first, deadline = _earliest(
                            pending_order, pending_deadlines, n, pending_gone, pending_head, opened
                        )
                        if pending_head == len(pending_order):
                            stopped = True
                            break
                    out_kinds[actions], out_sources[actions], out_targets[actions] = _PREDICTED, row, row
                    actions += 1
                    interaction_times[row] = time
                    pending_of[symbol] = row
                    heappush(opened, (time + window, row))
                    pending_count += 1
                    phase = 4
                    label = early_of[symbol]
                    if label == NONE:
                        continue
                    early_of[symbol] = NONE
                    early_gone[label] = True
                    early_bytes -= label_sizes[label] if label < m else early_sizes[label - m]
                    if label < m:
                        same = _same_entities(
                            label_text,
                            label_begins,
                            label_ends,
                            label,
                            interaction_text,
                            interaction_begins,
                            interaction_ends,
                            row,
                        )
                    else:
                        same = same_early[row]
                    if not same:
                        out_kinds[actions], out_sources[actions] = _MISMATCHED, label
                        actions += 1
                        continue
                    entry = row
                elif kind == _IS_LABEL:
                    label_times[row] = time
                    symbol = label_symbols[row]
                    waits = pending_of[symbol]
                    phase = 5
                    if waits != NONE:
                        if waits >= n:
                            same = same_pending[row]
                        else:
                            same = _same_entities(
                                label_text,
                                label_begins,
                                label_ends,
                                row,
                                interaction_text,
                                interaction_begins,
                                interaction_ends,
                                waits,
                            )
                        if not same:
                            out_kinds[actions], out_sources[actions] = _MISMATCHED, row
                            actions += 1
                            break
                        entry, label = waits, row
                    elif _remembers(closed_until[symbol], stream_time):
                        refused = _LATE if closed_expired[symbol] else _DUPLICATE_LABEL
                        out_kinds[actions], out_sources[actions] = refused, row
                        actions += 1
                        break
                    elif early_of[symbol] != NONE:
                        out_kinds[actions], out_sources[actions] = _DUPLICATE_LABEL, row
                        actions += 1
                        break
                    else:
                        out_kinds[actions], out_sources[actions] = _EARLY, row
                        actions += 1
                        early_of[symbol] = row
                        heappush(waiting, (time + early_window, row))
                        early_bytes += label_sizes[row]
                        while True:
                            early_head, first, deadline = _earliest(
                                early_order, early_deadlines, m, early_gone, early_head, waiting
                            )
                            if first == NONE or (deadline >= stream_time and early_bytes <= most_early):
                                break
                            early_gone[first] = True
                            early_bytes -= label_sizes[first] if first < m else early_sizes[first - m]
                            symbol = label_symbols[first] if first < m else early_symbols[first - m]
                            if symbol != NONE:
                                early_of[symbol] = NONE
                            out_kinds[actions], out_sources[actions] = _ORPHAN, first
                            actions += 1
                        break
                else:
                    break
            elif phase == 4:
                phase = 5
                if pending_count <= most_pending:
                    break
                pending_head, first, deadline = _earliest(
                    pending_order, pending_deadlines, n, pending_gone, pending_head, opened
                )
                entry, crowded = first, True
            else:
                break
            # A prediction is closed.
            symbol = interaction_symbols[entry] if entry < n else pending_symbols[entry - n]
            if label == NONE:
                closing = interaction_times[entry] + window if entry < n else pending_deadlines[entry - n]
                out_kinds[actions] = _EVICTED if crowded else _EXPIRED
            else:
                closing = label_times[label] if label < m else early_deadlines[label - m] - early_window
                out_kinds[actions] = _LABELLED
            out_sources[actions], out_targets[actions] = label, entry
            actions += 1
            pending_gone[entry] = True
            pending_count -= 1
            until = closing + window
            if symbol != NONE:
                pending_of[symbol] = NONE
                closed_until[symbol], closed_expired[symbol] = until, label == NONE
            if tracked:
                own_closed_symbols[outcomes] = symbol
                heappush(remembered, (until, outcomes))
                closed_count += 1
                while True:
                    closed_head, first, deadline = _earliest(
                        closed_order, closed_deadlines, outcomes_room, closed_gone, closed_head, remembered
                    )
                    if first == NONE or (deadline >= stream_time and closed_count <= most_closed):
                        break
                    closed_gone[first] = True
                    closed_count -= 1
                    if first < outcomes_room:
                        symbol = own_closed_symbols[first]
                    else:
                        symbol = closed_symbols[first - outcomes_room]
                    if symbol != NONE:
                        closed_until[symbol] = NONE
            outcomes += 1
        if stopped:
            break
        steps += kind != _IS_TIME
        done += 1
    return done, actions, stream_time, steps


@njit(cache=True, nogil=True)
def _remembers(until: int, stream_time: int) -> bool:
    return until != NONE and until >= stream_time


@njit(cache=True, nogil=True, allocates=True)
def _earliest(
    order: Integers, deadlines: Integers, own: int, gone: Flags, head: int, heap: Heap
) -> tuple[int, int, int]:
    """Return the place in the order, and the entry that is due first with its deadline.

    Entries of the table come behind the `own` ones, which are in the heap. Of equal deadlines, the table's is
    first.
    """
    while head < len(order) and gone[own + order[head]]:
        head += 1
    while len(heap) > 0 and gone[heap[0][1]]:
        heappop(heap)
    if head < len(order):
        deadline = deadlines[order[head]]
        if len(heap) == 0 or deadline <= heap[0][0]:
            return head, own + order[head], deadline
    if len(heap) > 0:
        return head, heap[0][1], heap[0][0]
    return head, NONE, ZERO


@njit(cache=True, nogil=True)
def _same_entities(
    text: Bytes,
    begins: Integers,
    ends: Integers,
    row: int,
    other: Bytes,
    other_begins: Integers,
    other_ends: Integers,
    other_row: int,
) -> bool:
    """Whether two events name the same entities."""
    for column in range(1, begins.shape[0]):
        begin, other_begin = begins[column, row], other_begins[column, other_row]
        size = ends[column, row] - begin
        if other_ends[column, other_row] - other_begin != size:
            return False
        for place in range(size):
            if text[begin + place] != other[other_begin + place]:
                return False
    return True
