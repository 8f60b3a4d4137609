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

from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from forks.jit import ZERO, njit
from pipeline.join.actions import (
    NONE,
    Action,
    ActionLog,
    Flags,
    Floats,
    Ids,
    Integers,
    Kinds,
    Known,
    Limits,
    Message,
    Messages,
    Waiting,
)
from pipeline.records.texts import Texts

Heap: TypeAlias = list[tuple[int, int]]

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


class _Due(NamedTuple):
    """Entries that may be due: those of a table, and those that these messages made."""

    order: Integers
    deadlines: Integers
    own: int
    """Entries that these messages may make. Entries of the table are numbered behind them."""
    gone: Flags
    """Which entries are in the table no longer."""
    heap: Heap
    """The deadlines and numbers of those that these messages made."""


class _Closed(NamedTuple):
    """Closed events."""

    due: _Due
    own_symbols: Integers
    """The symbols of those that these messages closed."""
    symbols: Integers
    """Those of the table's entries."""


# One function, because calls with so many tables cost more than what they do, and values that go with them
# would have to come back.
@njit(cache=True, nogil=True, allocates=True)
def join_messages(  # noqa: PLR0912, PLR0915 - see above
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

    >>> ids, none = Ids.of(Texts.of_ids([7], [[1]])), np.empty(0, dtype=np.int64)
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
    kinds, numbers, times, first_rows, interaction_symbols, label_symbols = messages[:6]
    label_sizes, label_values, interaction_ids, label_ids = messages[6:]
    pending_of, early_of = known.pending.copy(), known.early.copy()
    closed_until, closed_at = known.closed_until.copy(), known.closed_at.copy()
    closed_due, closed_values = known.closed_due, known.closed_values.copy()
    same_closed, same_pending, same_early = known[6:]
    pending_deadlines, pending_symbols, pending_order, complete, pending_count = pending
    early_deadlines, early_symbols, early_order, _, early_bytes = early
    closed_deadlines, closed_symbols, closed_order, _, closed_count = closed
    window, early_window, most_pending, most_early, most_closed = limits[:5]
    corrections, max_steps, max_outcomes = limits[5:]
    n, m, pending_entries = len(interaction_symbols), len(label_symbols), len(pending_deadlines)
    room = 3 * len(kinds) + n + m + pending_entries + len(early_deadlines)
    out_kinds = np.empty(room, dtype=np.uint8)
    out_sources, out_targets = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    tracked = most_closed < closed_count + n + pending_entries
    most_outcomes = n + pending_entries + (m if corrections else 0)
    closed_gone = np.zeros(most_outcomes + len(closed_deadlines), dtype=np.bool_)
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
    pending_due = _Due(pending_order, pending_deadlines, n, pending_gone, opened)
    early_due = _Due(early_order, early_deadlines, m, early_gone, waiting)
    own_closed = _Due(closed_order, closed_deadlines, most_outcomes, closed_gone, remembered)
    closed_table = _Closed(own_closed, own_closed_symbols, closed_symbols)
    pending_head = early_head = closed_head = ZERO
    done = actions = steps = outcomes = ZERO
    while done < len(kinds) and steps < max_steps:
        kind, number, time = kinds[done], numbers[done], times[done]
        if kind == _IS_REJECTED:
            actions = _note(out_kinds, out_sources, actions, _REJECTED, number)
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
                pending_head, first, deadline = _earliest(pending_due, pending_head)
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
                early_head, first, deadline = _earliest(early_due, early_head)
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
                actions = _note(out_kinds, out_sources, actions, _ORPHAN, first)
                continue
            elif phase == _MOVE_TIME:
                if steps >= max_steps:
                    stopped = True
                    break
                stream_time = time
                if tracked:
                    closed_head, closed_count = _forget(
                        closed_table, closed_head, stream_time, closed_count, most_closed, closed_until
                    )
                phase = _TAKE
                continue
            elif phase == _TAKE and kind == _IS_INTERACTION:
                first_row, last = first_rows[number], first_rows[number + 1]
                duplicate = False
                for row in range(first_row, last):
                    symbol = interaction_symbols[row]
                    duplicate |= pending_of[symbol] != NONE or _remembers(closed_until[symbol], stream_time)
                if duplicate:
                    actions = _note(out_kinds, out_sources, actions, _DUPLICATE_INTERACTION, number)
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
                    same = _same_entities(label_ids, label, interaction_ids, row)
                else:
                    same = same_early[row]
                if not same:
                    actions = _note(out_kinds, out_sources, actions, _MISMATCHED, label)
                    continue
                entry = row
            elif phase == _MAKE_ROOM:
                # As many leave, at most, as have come.
                if item == last or pending_count <= most_pending:
                    break
                item += 1
                pending_head, first, deadline = _earliest(pending_due, pending_head)
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
                answered = not waits and _remembers(closed_until[symbol], stream_time)
                if answered and not corrections:
                    refused = _DUPLICATE_LABEL if closed_at[symbol] != NONE else _LATE
                    actions = _note(out_kinds, out_sources, actions, refused, number)
                    break
                if waits or answered:
                    if answered:
                        target = closed_targets[symbol]
                    if target >= n + pending_entries:
                        same = same_closed[number]
                    elif target >= n:
                        same = same_pending[number]
                    else:
                        same = _same_entities(label_ids, number, interaction_ids, target)
                    if not same:
                        actions = _note(out_kinds, out_sources, actions, _MISMATCHED, number)
                        break
                    if answered and (
                        time < closed_at[symbol] or label_values[number] == closed_values[symbol]
                    ):
                        actions = _note(out_kinds, out_sources, actions, _DUPLICATE_LABEL, number)
                        break
                    entry, label, corrects = target, number, answered
                elif early_of[symbol] != NONE:
                    actions = _note(out_kinds, out_sources, actions, _DUPLICATE_LABEL, number)
                    break
                else:
                    actions = _note(out_kinds, out_sources, actions, _EARLY, number)
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
                    closed_table, closed_head, stream_time, closed_count + 1, most_closed, closed_until
                )
            outcomes += 1
        if stopped:
            break
        if kind != _IS_TIME:
            steps += count
        done += 1
    log = out_kinds[:actions], out_sources[:actions], out_targets[:actions]
    return ActionLog(log[0], log[1], log[2], closed_gone, done, stream_time, steps)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    none, ids = np.empty(0, dtype=np.int64), Ids.of(Texts.of_ids([], [[]]))
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


@njit(cache=True, nogil=True)
def _note(kinds: Kinds, sources: Integers, place: int, kind: int, source: int) -> int:
    """Write an action without a target, and return the next place."""
    kinds[place], sources[place] = kind, source
    return place + 1


@njit(cache=True, nogil=True, allocates=True)
def _forget(
    table: _Closed, head: int, stream_time: int, count: int, most: int, until: Integers
) -> tuple[int, int]:
    """Forget closed events that are due or have no room; return the place, and how many are left."""
    due, own_symbols, symbols = table
    own, gone = due.own, due.gone
    while True:
        head, first, deadline = _earliest(due, head)
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
def _earliest(due: _Due, head: int) -> tuple[int, int, int]:
    """Return the place in the order, and the entry that is due first with its deadline.

    Of equal deadlines, the table's is first.
    """
    order, deadlines, own, gone, heap = due
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
def _same_entities(ids: Ids, row: int, others: Ids, other_row: int) -> bool:
    """Whether two events name the same entities."""
    text, begins, ends = ids
    other, other_begins, other_ends = others
    for column in range(1, begins.shape[0]):
        begin, other_begin = begins[column, row], other_begins[column, other_row]
        size = ends[column, row] - begin
        if other_ends[column, other_row] - other_begin != size:
            return False
        for place in range(size):
            if text[begin + place] != other[other_begin + place]:
                return False
    return True
