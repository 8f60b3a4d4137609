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
from functools import cache
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import ZERO, njit, read_only
from pipeline.records.places import flagged
from pipeline.records.texts import Texts

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
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
    """A row of an interaction is predicted."""
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
    CORRECTED = 11
    """A prediction that was closed gets another label."""


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
_CORRECTED: Final = int(Action.CORRECTED)

# What is done next with a message.
_EXPIRE, _DROP_EARLY, _MOVE_TIME = 0, 1, 2  # as time moves to it
_TAKE, _JOIN_EARLY, _MAKE_ROOM, _DROP_FOR_ROOM, _DONE = 3, 4, 5, 6, 7


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
    corrections: bool
    """Whether a later label of a closed event is an outcome of its own."""
    max_steps: int
    """Rows of interactions that are predicted, other messages, and, as time passes, predictions that expire
    and labels that are orphans."""
    max_outcomes: int
    """Outcomes of which it is known what other partitions share right before them."""


class Messages(NamedTuple):
    """Merged messages that can be used, with n rows of interactions, and m labels.

    An interaction has one row, or one for each item that was shown together.
    """

    kinds: NDArray[np.uint8]
    """`Message` of each, shape (messages,)."""
    numbers: Integers
    """Its number among the interactions, among the labels, or among what cannot be used."""
    times: Integers
    """In milliseconds."""
    first_rows: Integers
    """The first row of each interaction, and behind them n; shape (interactions + 1,)."""
    interaction_symbols: Integers
    """The symbol of each row's event, shape (n,)."""
    label_symbols: Integers
    """That of each label's event, shape (m,)."""
    label_sizes: Integers
    """Bytes of each label's message."""
    label_values: Floats
    """The value of each label; it is read where labels are corrected."""
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
    closed_at: Integers
    """The time of the label that closed it; `NONE` without one."""
    closed_due: Integers
    """When the prediction of the closed event was due. It is read where labels are corrected, as the next."""
    closed_values: Floats
    """The value of that label; NaN without one."""
    same_closed: Flags
    """Of each label: whether it names the entities of the closed event, shape (m,)."""
    same_pending: Flags
    """Of each label: whether it names the entities of the prediction that waits, shape (m,)."""
    same_early: Flags
    """Of each row: whether the label that waits names its entities, shape (n,)."""


class ActionLog(NamedTuple):
    """What happened, in order."""

    kinds: NDArray[np.uint8]
    """`Action` of each, shape (actions,)."""
    sources: Integers
    """Of a label: its row, or m and the entry of one that waited. Of a prediction: its row. Of any other
    message: its number."""
    targets: Integers
    """The prediction: its row, or n and the entry of one that waited, or n, the number of entries that waited
    and the symbol of a closed event."""
    closed_gone: Flags
    """Which closed events are remembered no longer: of each outcome, as far as there is one, and then of each
    entry of the table. Those whose time has come are not named where there is room for all."""
    messages: int
    """How many messages were processed."""
    stream_time: int
    """After them, in milliseconds."""
    steps: int

    def of(self, *kinds: Action) -> Integers:
        """Return the places of actions of these kinds."""
        return flagged(_wanted(kinds)[self.kinds])


@cache
def _wanted(kinds: tuple[Action, ...]) -> Flags:
    """Return of each kind whether it is one of these."""
    return np.isin(np.arange(len(Action)), [*kinds])


def join_messages(
    messages: Messages,
    known: Known,
    pending: Waiting,
    early: Waiting,
    early_sizes: Integers,
    early_values: Floats,
    closed: Waiting,
    limits: Limits,
    stream_time: int,
) -> ActionLog:
    """Go through merged messages, and say what happens.

    It ends before a message for which the steps or the outcomes are used up, or for which more predictions
    may be due than `pending` names.

    Parameters
    ----------
    messages
        The messages.
    known
        What is known of their events.
    pending, early
        Predictions and early labels: those of these events, and those that may be due.
    early_sizes, early_values
        Bytes of the messages of these early labels, and their values.
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
    >>> value, no = np.ones(1), one > 0
    >>> known = Known(one - 1, one - 1, one - 1, one - 1, one, value, no, no, no)
    >>> kinds = np.array([Message.INTERACTION, Message.LABEL, Message.TIME], dtype=np.uint8)
    >>> numbers, times, first_rows = np.zeros(3, np.int64), np.array([10, 13, 30]), np.array([0, 1])
    >>> merged = Messages(kinds, numbers, times, first_rows, one, one, one, value, ids, ids)
    >>> limits = Limits(9, 9, 9, 9, 9, corrections=False, max_steps=9, max_outcomes=9)
    >>> found = join_messages(
    ...     merged, known, nothing, nothing, none, value[:0], nothing, limits, stream_time=0
    ... )
    >>> [Action(kind).name for kind in found.kinds], found.messages, found.stream_time, found.steps
    (['PREDICTED', 'LABELLED'], 3, 30, 2)
    """
    n, m = len(messages.interaction_symbols), len(messages.label_symbols)
    room = 3 * len(messages.kinds) + n + m + len(pending.deadlines) + len(early.deadlines)
    kinds = np.empty(room, dtype=np.uint8)
    sources, targets = np.empty((2, room), dtype=np.int64)
    tracked = limits.most_closed < closed.size + n + len(pending.deadlines)
    outcomes = n + len(pending.deadlines) + (m if limits.corrections else 0)
    closed_gone = np.zeros(outcomes + len(closed.deadlines), dtype=np.bool_)
    done, actions, time, steps = _run(
        messages.kinds,
        messages.numbers,
        messages.times,
        messages.first_rows,
        messages.interaction_symbols,
        messages.label_symbols,
        messages.label_sizes,
        messages.label_values,
        read_only(messages.interaction_ids.text),
        messages.interaction_ids.begins,
        messages.interaction_ids.ends,
        read_only(messages.label_ids.text),
        messages.label_ids.begins,
        messages.label_ids.ends,
        known.pending.copy(),
        known.early.copy(),
        known.closed_until.copy(),
        known.closed_at.copy(),
        known.closed_due,
        known.closed_values.copy(),
        known.same_closed,
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
        early_values,
        early.size,
        closed.deadlines,
        closed.symbols,
        closed.order,
        tracked,
        closed.size,
        closed_gone,
        *limits,
        stream_time,
        kinds,
        sources,
        targets,
    )
    return ActionLog(kinds[:actions], sources[:actions], targets[:actions], closed_gone, done, time, steps)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    none, ids = np.empty(0, dtype=np.int64), Texts.of_ids([], [[]])
    nothing = Waiting(none, none, none, complete=True, size=0)
    flags, kinds, values = none > 0, none.astype(np.uint8), none.astype(np.float64)
    join_messages(
        Messages(kinds, none, none, none, none, none, none, values, ids, ids),
        Known(none, none, none, none, none, values, flags, flags, flags),
        nothing,
        nothing,
        none,
        values,
        nothing,
        Limits(0, 0, 0, 0, 0, corrections=False, max_steps=0, max_outcomes=0),
        stream_time=0,
    )


# One function, because calls with so many tables cost more than what they do, and values that go with them
# would have to come back.
@njit(cache=True, nogil=True, allocates=True)
def _run(  # noqa: PLR0912, PLR0915 - see above
    kinds: NDArray[np.uint8],
    numbers: Integers,
    times: Integers,
    first_rows: Integers,
    interaction_symbols: Integers,
    label_symbols: Integers,
    label_sizes: Integers,
    label_values: Floats,
    interaction_text: Bytes,
    interaction_begins: Integers,
    interaction_ends: Integers,
    label_text: Bytes,
    label_begins: Integers,
    label_ends: Integers,
    pending_of: Integers,
    early_of: Integers,
    closed_until: Integers,
    closed_at: Integers,
    closed_due: Integers,
    closed_values: Floats,
    same_closed: Flags,
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
    early_values: Floats,
    early_bytes: int,
    closed_deadlines: Integers,
    closed_symbols: Integers,
    closed_order: Integers,
    tracked: bool,
    closed_count: int,
    closed_gone: Flags,
    window: int,
    early_window: int,
    most_pending: int,
    most_early: int,
    most_closed: int,
    corrections: bool,
    max_steps: int,
    max_outcomes: int,
    stream_time: int,
    out_kinds: NDArray[np.uint8],
    out_sources: Integers,
    out_targets: Integers,
) -> tuple[int, int, int, int]:
    """Write the actions; return the numbers of messages and actions, the time, and the steps."""
    n, m, pending_entries = len(interaction_symbols), len(label_symbols), len(pending_deadlines)
    most_outcomes = len(closed_gone) - len(closed_deadlines)
    interaction_times, label_times = np.empty(n, dtype=np.int64), np.empty(m, dtype=np.int64)
    pending_gone = np.zeros(n + pending_entries, dtype=np.bool_)
    early_gone = np.zeros(m + len(early_deadlines), dtype=np.bool_)
    own_closed_symbols = np.empty(most_outcomes, dtype=np.int64)
    closed_targets = n + pending_entries + np.arange(len(pending_of))
    closed_entries = np.full(len(pending_of), NONE)
    for place in range(len(closed_symbols)):
        if closed_symbols[place] != NONE:
            closed_entries[closed_symbols[place]] = most_outcomes + place
    opened = [(stream_time, n) for _ in range(0)]  # heaps of deadlines and entries
    waiting = [(stream_time, n) for _ in range(0)]
    remembered = [(stream_time, n) for _ in range(0)]
    pending_head = early_head = closed_head = ZERO
    done = actions = steps = outcomes = ZERO
    while done < len(kinds) and steps < max_steps:
        kind, number, time = kinds[done], numbers[done], times[done]
        if kind == _IS_REJECTED:
            out_kinds[actions], out_sources[actions] = _REJECTED, number
            actions += 1
            steps += 1
            done += 1
            continue
        phase = _EXPIRE if time > stream_time else _TAKE
        count, first_row, last, item = 1, ZERO, ZERO, ZERO
        stopped = False
        # Each turn makes at most one outcome, at its end.
        while phase != _DONE:
            entry, label, crowded, corrects = NONE, NONE, False, False
            if phase == _EXPIRE:
                pending_head, first, deadline = _earliest(
                    pending_order, pending_deadlines, n, pending_gone, pending_head, opened
                )
                if pending_head == len(pending_order) and not complete:
                    stopped = True
                    break
                if first == NONE or (deadline >= time and pending_count <= most_pending):
                    phase = _DROP_EARLY
                    continue
                if steps >= max_steps or outcomes >= max_outcomes:
                    stopped = True
                    break
                steps += 1
                entry, crowded = first, deadline >= time
            elif phase in (_DROP_EARLY, _DROP_FOR_ROOM):
                early_head, first, deadline = _earliest(
                    early_order, early_deadlines, m, early_gone, early_head, waiting
                )
                moment = time if phase == _DROP_EARLY else stream_time
                if first == NONE or (deadline >= moment and early_bytes <= most_early):
                    phase = _MOVE_TIME if phase == _DROP_EARLY else _DONE
                    continue
                if phase == _DROP_EARLY:
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
            elif phase == _MOVE_TIME:
                if steps >= max_steps:
                    stopped = True
                    break
                stream_time = time
                if tracked:
                    closed_head, closed_count = _forget(
                        closed_order,
                        closed_deadlines,
                        most_outcomes,
                        closed_gone,
                        closed_head,
                        remembered,
                        stream_time,
                        closed_count,
                        most_closed,
                        own_closed_symbols,
                        closed_symbols,
                        closed_until,
                    )
                phase = _TAKE
                continue
            elif phase == _TAKE and kind == _IS_INTERACTION:
                first_row, last = first_rows[number], first_rows[number + 1]
                known = False
                for row in range(first_row, last):
                    symbol = interaction_symbols[row]
                    known |= pending_of[symbol] != NONE or _remembers(closed_until[symbol], stream_time)
                if known:
                    out_kinds[actions], out_sources[actions] = _DUPLICATE_INTERACTION, number
                    actions += 1
                    break
                # Each row can have an outcome, and let another prediction have one for want of room.
                if outcomes + 2 * (last - first_row) > max_outcomes:
                    stopped = True
                    break
                excess = pending_count + last - first_row - most_pending
                if excess > 0 and not complete:
                    # So many of the table may have to leave: are they known?
                    at, left = pending_head, min(excess, last - first_row)
                    while at < len(pending_order) and left > 0:
                        left -= not pending_gone[n + pending_order[at]]
                        at += 1
                    if left > 0:
                        stopped = True
                        break
                for row in range(first_row, last):
                    out_kinds[actions], out_sources[actions], out_targets[actions] = _PREDICTED, row, row
                    actions += 1
                    interaction_times[row] = time
                    pending_of[interaction_symbols[row]] = row
                    heappush(opened, (time + window, row))
                count = last - first_row
                pending_count += count
                item, phase = first_row, _JOIN_EARLY
                continue
            elif phase == _JOIN_EARLY:
                if item == last:
                    item, phase = first_row, _MAKE_ROOM
                    continue
                row = item
                item += 1
                symbol = interaction_symbols[row]
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
            elif phase == _MAKE_ROOM:
                # As many leave, at most, as have come.
                if item == last or pending_count <= most_pending:
                    break
                item += 1
                pending_head, first, deadline = _earliest(
                    pending_order, pending_deadlines, n, pending_gone, pending_head, opened
                )
                entry, crowded = first, True
            elif kind == _IS_LABEL:
                if outcomes >= max_outcomes:
                    stopped = True
                    break
                phase = _DONE
                label_times[number] = time
                symbol = label_symbols[number]
                target = pending_of[symbol]
                waits = target != NONE
                closed = not waits and _remembers(closed_until[symbol], stream_time)
                if closed and not corrections:
                    refused = _DUPLICATE_LABEL if closed_at[symbol] != NONE else _LATE
                    out_kinds[actions], out_sources[actions] = refused, number
                    actions += 1
                    break
                if waits or closed:
                    if closed:
                        target = closed_targets[symbol]
                    if target >= n + pending_entries:
                        same = same_closed[number]
                    elif target >= n:
                        same = same_pending[number]
                    else:
                        same = _same_entities(
                            label_text,
                            label_begins,
                            label_ends,
                            number,
                            interaction_text,
                            interaction_begins,
                            interaction_ends,
                            target,
                        )
                    if not same:
                        out_kinds[actions], out_sources[actions] = _MISMATCHED, number
                        actions += 1
                        break
                    if closed and (time < closed_at[symbol] or label_values[number] == closed_values[symbol]):
                        out_kinds[actions], out_sources[actions] = _DUPLICATE_LABEL, number
                        actions += 1
                        break
                    entry, label, corrects = target, number, closed
                elif early_of[symbol] != NONE:
                    out_kinds[actions], out_sources[actions] = _DUPLICATE_LABEL, number
                    actions += 1
                    break
                else:
                    out_kinds[actions], out_sources[actions] = _EARLY, number
                    actions += 1
                    early_of[symbol] = number
                    heappush(waiting, (time + early_window, number))
                    early_bytes += label_sizes[number]
                    phase = _DROP_FOR_ROOM
                    continue
            else:
                break
            # A prediction gets an outcome.
            if corrects:
                symbol = label_symbols[label]
            else:
                symbol = interaction_symbols[entry] if entry < n else pending_symbols[entry - n]
                pending_gone[entry] = True
                pending_count -= 1
            if entry < n:
                due = interaction_times[entry] + window
            else:
                due = pending_deadlines[entry - n] if entry < n + pending_entries else closed_due[symbol]
            if label == NONE:
                closing = due
                out_kinds[actions] = _EVICTED if crowded else _EXPIRED
            else:
                closing = label_times[label] if label < m else early_deadlines[label - m] - early_window
                out_kinds[actions] = _CORRECTED if corrects else _LABELLED
            out_sources[actions], out_targets[actions] = label, entry
            actions += 1
            # A correction does not shorten how long its event is remembered.
            until = (max(due, closing) if corrects else closing) + window
            if symbol != NONE:
                if corrects and tracked:
                    closed_count -= 1
                    if closed_entries[symbol] != NONE:
                        closed_gone[closed_entries[symbol]] = True
                closed_entries[symbol] = outcomes
                closed_until[symbol], closed_targets[symbol] = until, entry
                closed_at[symbol] = NONE if label == NONE else closing
                closed_values[symbol] = np.nan
                if label != NONE:
                    closed_values[symbol] = label_values[label] if label < m else early_values[label - m]
                if not corrects:
                    pending_of[symbol] = NONE
            if tracked:
                own_closed_symbols[outcomes] = symbol
                heappush(remembered, (until, outcomes))
                closed_head, closed_count = _forget(
                    closed_order,
                    closed_deadlines,
                    most_outcomes,
                    closed_gone,
                    closed_head,
                    remembered,
                    stream_time,
                    closed_count + 1,
                    most_closed,
                    own_closed_symbols,
                    closed_symbols,
                    closed_until,
                )
            outcomes += 1
        if stopped:
            break
        if kind != _IS_TIME:
            steps += count
        done += 1
    return done, actions, stream_time, steps


@njit(cache=True, nogil=True, allocates=True)
def _forget(
    order: Integers,
    deadlines: Integers,
    own: int,
    gone: Flags,
    head: int,
    heap: Heap,
    stream_time: int,
    count: int,
    most: int,
    own_symbols: Integers,
    symbols: Integers,
    until: Integers,
) -> tuple[int, int]:
    """Forget closed events that are due, or for which there is no room; return the place, and what is left.

    The parameters are those of `_earliest`, and the tables of `_run`.
    """
    while True:
        head, first, deadline = _earliest(order, deadlines, own, gone, head, heap)
        if first == NONE or (deadline >= stream_time and count <= most):
            return head, count
        gone[first] = True
        count -= 1
        symbol = own_symbols[first] if first < own else symbols[first - own]
        if symbol != NONE:
            until[symbol] = NONE


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
